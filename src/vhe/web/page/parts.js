"use strict";
// Pieces that the report and the explorer share: the network as the map wants it, the legend, the
// search box, lists. Everything a network brings is set as text, never as markup.

const REST = 12; // the colour of what has none of its own
const LABELS = [...Array(REST).keys()].map((k) => `--c${k}`).concat("--rest");

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

const dot = (colour) => {
  const made = element("span", { className: "dot" });
  if (colour < REST) made.style.setProperty("--dot", `var(--c${colour})`);
  return made;
};

// An id that may be broken over lines after a dot, a dash or a slash rather than inside a word.
const named = (tag, className, id) => {
  const pieces = id.split(/(?<=[._/:-])/).flatMap((piece) => [document.createElement("wbr"), piece]);
  return element(tag, { className }, ...pieces.slice(1));
};

// Links as one list a vertex, in two flat arrays: [first[i], first[i + 1]) are those of vertex i.
const adjacency = (pairs, count) => {
  const first = new Int32Array(count + 1), ends = new Int32Array(pairs.length), which = new Int32Array(pairs.length);
  for (const v of pairs) first[v + 1]++;
  for (let i = 0; i < count; i++) first[i + 1] += first[i];
  const next = first.slice();
  for (let k = 0; k < pairs.length; k++) {
    ends[next[pairs[k]]] = pairs[k ^ 1];
    which[next[pairs[k]]++] = k >> 1;
  }
  return { first, ends, which };
};

const makeNetwork = (data) => {
  const count = data.ids.length;
  const links = adjacency(data.links, count), likely = adjacency(data.suggested, count);
  return {
    ids: data.ids,
    x: Float32Array.from(data.x),
    y: Float32Array.from(data.y),
    colour: Uint8Array.from(data.label, (k) => (k < 0 || k >= REST ? REST : k)),
    degree: Int32Array.from(data.ids, (_, i) => links.first[i + 1] - links.first[i]),
    linked: data.links.length > 0,
    regions: data.regions,
    neighbours: (i) => Array.from(links.ends.subarray(links.first[i], links.first[i + 1])),
    suggested(i) {
      const found = [];
      for (let k = likely.first[i]; k < likely.first[i + 1]; k++) {
        found.push({ to: likely.ends[k], probability: data.probability[likely.which[k]] });
      }
      return found.sort((a, b) => b.probability - a.probability);
    },
  };
};

const labelOf = (data, i) => (data.label[i] < 0 ? null : data.labels[data.label[i]]);

// ---- the words beside the vertex that is pointed at

const showTip = (tip, map, data, i) => {
  tip.hidden = i < 0;
  if (i < 0) return;
  tip.replaceChildren(named("div", "id", data.ids[i]));
  if (data.texts[i]) tip.append(element("p", { textContent: data.texts[i] }));
  const sx = map.screenX(i), sy = map.screenY(i), box = tip.getBoundingClientRect();
  tip.style.left = `${clamp(sx + 14, 6, Math.max(6, map.w - box.width - 6))}px`;
  tip.style.top = `${sy + 16 + box.height < map.h ? sy + 16 : Math.max(6, sy - 16 - box.height)}px`;
};

// ---- lists of vertices

// A row names a vertex; pointing at it points on the map. `number` is text or an element.
const vertexRow = (map, network, i, number, { title = "", open }) => {
  const button = element("button", { type: "button", title },
    dot(network.colour[i]),
    named("span", "name", network.ids[i]),
    element("span", { className: "number" }, number));
  button.addEventListener("click", () => open(button));
  button.addEventListener("mouseenter", () => map.point(i));
  button.addEventListener("mouseleave", () => map.point(-1));
  return element("li", {}, button);
};

const list = (heading, note, rows) => [
  element("h4", { textContent: heading }, element("span", { textContent: note })),
  element("ul", {}, ...rows),
];

// Arrows, Home and End walk through the rows of all lists in a place.
const walkRows = (place) => place.addEventListener("keydown", (event) => {
  if (!event.target.matches("li button")) return;
  const rows = [...place.querySelectorAll("li button")], at = rows.indexOf(event.target);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  rows[clamp(to, 0, rows.length - 1)].focus();
});

// ---- the legend: a button a label, which lights its vertices; returns what lets go of them

const buildLegend = (legend, map, data) => {
  let pinned = null;
  const counts = new Int32Array(REST + 1), further = data.labels.length - REST;
  for (const k of data.label) counts[k < 0 || k > REST ? REST : k]++;
  const entry = (name, colour, count, pick) => {
    const mask = Uint8Array.from(data.label, (k) => (pick(k) ? 1 : 0));
    const button = element("button", { type: "button" }, dot(colour), element("span", { textContent: name }),
      element("span", { textContent: count.toLocaleString("en") }));
    button.setAttribute("aria-pressed", "false");
    const preview = (on) => map.light(on ? mask : pinned && pinned.mask);
    button.addEventListener("mouseenter", () => preview(true));
    button.addEventListener("mouseleave", () => preview(false));
    button.addEventListener("click", () => {
      const again = pinned && pinned.button === button;
      if (pinned) pinned.button.setAttribute("aria-pressed", "false");
      pinned = again ? null : { button, mask };
      button.setAttribute("aria-pressed", String(!again));
      preview(!again);
    });
    return button;
  };
  const entries = data.labels.slice(0, REST).map((name, k) => entry(name, k, counts[k], (label) => label === k));
  if (data.labels.length && counts[REST]) {
    entries.push(entry(further > 0 ? `${further} more` : "no label", REST, counts[REST], (label) => label < 0 || label >= REST));
  }
  legend.replaceChildren(...entries);
  return () => {
    if (pinned) pinned.button.setAttribute("aria-pressed", "false");
    pinned = null;
    map.light(null);
  };
};

// ---- the search box

// `search(words)` gives hits, each {number, name, text}, at once or as a promise; `take(number)` has
// the one that was chosen, `leave()` hears that nothing is searched for any more.
const searchBox = (query, found, { search, take, leave, none }) => {
  let hits = [], marked = -1, asked = 0;
  const mark = (k) => {
    marked = k;
    [...found.children].forEach((item, j) => item.setAttribute("aria-selected", String(j === k)));
    if (k < 0) query.removeAttribute("aria-activedescendant");
    else query.setAttribute("aria-activedescendant", `hit${k}`);
    if (k >= 0) found.children[k].scrollIntoView({ block: "nearest" });
  };
  const open = (shown) => {
    found.hidden = !shown;
    query.setAttribute("aria-expanded", String(shown));
  };
  const close = () => {
    asked++;
    hits = [];
    open(false);
    mark(-1);
    leave();
  };
  const choose = (k) => {
    const { number } = hits[k];
    query.value = "";
    close();
    take(number);
  };
  const ask = async () => {
    const words = query.value.trim(), mine = ++asked;
    if (!words) return close();
    const answer = await search(words);
    if (mine !== asked || !answer) return;
    hits = answer;
    found.replaceChildren(...hits.map(({ name, text }, k) => {
      const item = element("li", { id: `hit${k}` }, named("span", "name", name));
      if (text) item.append(element("small", { textContent: text }));
      item.setAttribute("role", "option");
      item.addEventListener("mousedown", (event) => { event.preventDefault(); choose(k); });
      return item;
    }));
    if (!hits.length) found.append(element("li", { className: "none", textContent: none }));
    open(true);
    mark(hits.length ? 0 : -1);
  };
  query.addEventListener("input", ask);
  query.addEventListener("focus", ask);
  query.addEventListener("blur", () => open(false));
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && marked >= 0) choose(marked);
    else if (event.key === "ArrowDown" && hits.length) mark((marked + 1) % hits.length);
    else if (event.key === "ArrowUp" && hits.length) mark((marked + hits.length - 1) % hits.length);
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.matches("input, textarea, select")) return;
    event.preventDefault();
    query.focus();
  });
  return { clear() { query.value = ""; close(); } };
};

const zoomButtons = (map) => {
  const ways = { in: () => map.zoom(1.6), out: () => map.zoom(1 / 1.6), fit: () => map.fit() };
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => ways[button.dataset.zoom]());
  }
};

// Which vertex the address (#id=NAME) names: its number, or -1.
const addressed = (ids) => {
  const wanted = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B")).get("id");
  return wanted === null ? -1 : ids.indexOf(wanted);
};
const setAddress = (id) => history.replaceState(null, "",
  id === null ? location.pathname + location.search : `#id=${encodeURIComponent(id)}`);
