"use strict";
// The address: the fragment of the URL describes the view, as in #id=p12&with=p40&links=all.
// Everything that the user opens changes the address; listeners then show what it says. Back, forward and
// a link to the page take the same path.

const address = {
  listeners: [], // functions of the state and of `how`; in order of dependence
  state: {}, // strings by name
  waiting: null, // a change that is written when the map has come to rest

  parse() {
    this.state = Object.fromEntries(new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B")));
  },

  write(changes, push) {
    const merged = { ...this.state, ...changes };
    this.state = Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null && value !== ""));
    const pairs = Object.entries(this.state).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    const url = pairs.length ? `#${pairs.join("&")}` : location.pathname + location.search;
    if (url === (location.hash || location.pathname + location.search)) return;
    history[push ? "pushState" : "replaceState"](null, "", url);
  },

  // Open a view. `how.replace`: without a new entry in the history; the other members are for listeners.
  go(changes, how = {}) {
    this.settle();
    this.write(changes, !how.replace);
    this.notify(how);
  },

  // Write a change that nobody needs to be notified of, once no other follows for a moment.
  note(changes) {
    clearTimeout(this.waiting?.timer);
    this.waiting = { changes, timer: setTimeout(() => this.settle(), 250) };
  },

  settle() {
    if (!this.waiting) return;
    clearTimeout(this.waiting.timer);
    this.write(this.waiting.changes, false);
    this.waiting = null;
  },

  notify(how) {
    for (const listener of this.listeners) listener(this.state, how);
  },

  // Show what the address says, now and after each navigation by the browser.
  start() {
    const restore = (first) => {
      clearTimeout(this.waiting?.timer);
      this.waiting = null;
      this.parse();
      this.notify({ restored: true, first });
    };
    addEventListener("hashchange", () => restore(false));
    restore(true);
  },
};

// The change of the address that closes a comparison: in the list of missing links, nothing stays selected.
const closedPair = () => (address.state.tab === "review" ? { id: null, with: null } : { with: null });

// Names of vertices in the address: the id, or @NUMBER if it is empty or another vertex has the same printed id.
const vertexNames = (ids) => {
  const first = new Map();
  ids.forEach((id, i) => { if (!first.has(id)) first.set(id, i); });
  const name = (i) => (ids[i] && first.get(ids[i]) === i ? ids[i] : `@${i}`);
  const number = (text) => {
    if (text === undefined) return -1;
    if (first.has(text)) return first.get(text);
    const given = /^@(\d+)$/.exec(text);
    return given && Number(given[1]) < ids.length ? Number(given[1]) : -1;
  };
  return {
    name,
    number,
    join: (numbers) => numbers.map((i) => encodeURIComponent(name(i))).join(","),
    split: (text) => [...new Set((text ? text.split(",") : []).map((part) => number(decode(part))))].filter((i) => i >= 0),
  };
};

const decode = (text) => {
  try { return decodeURIComponent(text); } catch { return text; }
};
