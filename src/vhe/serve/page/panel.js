"use strict";
// What stands around the map: the legend, the search box, the chosen vertex with its links, and the
// address (#id=NAME) that names it. Everything a network brings is set as text, never as markup.

const data = JSON.parse(document.getElementById("network").textContent);
const REST = 12;

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

const makeNetwork = () => {
  const count = data.ids.length;
  const links = adjacency(data.links, count), likely = adjacency(data.suggested, count);
  const neighbours = (i) => Array.from(links.ends.subarray(links.first[i], links.first[i + 1]));
  const suggested = (i) => {
    const found = [];
    for (let k = likely.first[i]; k < likely.first[i + 1]; k++) {
      found.push({ to: likely.ends[k], probability: data.probability[likely.which[k]] });
    }
    return found.sort((a, b) => b.probability - a.probability);
  };
  return {
    ids: data.ids,
    x: Float32Array.from(data.x),
    y: Float32Array.from(data.y),
    colour: Uint8Array.from(data.label, (k) => (k < 0 || k >= REST ? REST : k)),
    degree: Int32Array.from(data.ids, (_, i) => links.first[i + 1] - links.first[i]),
    linked: data.links.length > 0,
    neighbours,
    suggested,
    regions: data.regions,
  };
};

const network = makeNetwork();
const lower = data.ids.map((id) => id.toLowerCase());
const canvas = document.getElementById("map"), tip = document.getElementById("tip");
const detail = document.getElementById("detail"), legend = document.getElementById("legend");
const query = document.getElementById("query"), found = document.getElementById("found");
const labelOf = (i) => (data.label[i] < 0 ? null : data.labels[data.label[i]]);

const map = new NetworkMap(canvas, network, {
  hovered(i) {
    tip.hidden = i < 0;
    if (i < 0) return;
    tip.replaceChildren(named("div", "id", data.ids[i]));
    if (data.texts[i]) tip.append(element("p", { textContent: data.texts[i] }));
    const sx = map.screenX(i), sy = map.screenY(i), box = tip.getBoundingClientRect();
    tip.style.left = `${clamp(sx + 14, 6, Math.max(6, map.w - box.width - 6))}px`;
    tip.style.top = `${sy + 16 + box.height < map.h ? sy + 16 : Math.max(6, sy - 16 - box.height)}px`;
  },
  chosen(i) { choose(i); },
});

// ---- the chosen vertex

const row = (i, number, title) => {
  const button = element("button", { type: "button", title: data.texts[i] || "" },
    dot(network.colour[i]),
    named("span", "name", data.ids[i]),
    element("span", { className: "number", textContent: number, title: title || "" }));
  button.addEventListener("click", () => choose(i, { show: true }));
  button.addEventListener("mouseenter", () => map.point(i));
  button.addEventListener("mouseleave", () => map.point(-1));
  return element("li", {}, button);
};

const list = (heading, note, rows) => [
  element("h4", { textContent: heading }, element("span", { textContent: note })),
  element("ul", {}, ...rows),
];

const describe = (i) => {
  detail.scrollTop = 0;
  if (i < 0) {
    const most = map.byDegree.slice(0, 14).filter((j) => network.degree[j] > 0);
    detail.replaceChildren(...(most.length ? list("Most linked", "links", most.map((j) => row(j, network.degree[j]))) : []));
    return;
  }
  const close = element("button", { type: "button", className: "close", textContent: "×" });
  close.setAttribute("aria-label", "Clear the selection");
  close.addEventListener("click", () => choose(-1));
  const links = network.neighbours(i).sort((a, b) => (data.ids[a] < data.ids[b] ? -1 : 1));
  const likely = network.suggested(i);
  detail.replaceChildren(close, named("h3", "id", data.ids[i]));
  if (labelOf(i) !== null) {
    detail.append(element("p", { className: "of" }, dot(network.colour[i]), labelOf(i)));
  }
  detail.append(element("p", { className: "words", textContent: data.texts[i] || "No text." }));
  if (likely.length) {
    detail.append(...list("Suggested links", "probability", likely.map((link) => row(link.to, link.probability.toFixed(3)))));
  }
  if (links.length) {
    detail.append(...list(`Links (${links.length})`, "", links.map((j) => row(j, ""))));
  } else {
    detail.append(...list("Links", "none", []));
  }
};

const choose = (i, { show = false, smoothly = true, address = true } = {}) => {
  map.select(i);
  describe(i);
  if (i >= 0 && show) map.show(i, smoothly);
  if (address) history.replaceState(null, "", i < 0 ? location.pathname + location.search : `#id=${encodeURIComponent(data.ids[i])}`);
};

// ---- the legend

const labelMask = (pick) => Uint8Array.from(data.label, (k) => (pick(k) ? 1 : 0));
const buildLegend = () => {
  let pinned = null;
  const counts = new Int32Array(REST + 1), further = data.labels.length - REST;
  for (const k of data.label) counts[k < 0 || k > REST ? REST : k]++;
  const entry = (name, colour, count, pick) => {
    const mask = labelMask(pick);
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
    legend.append(button);
  };
  data.labels.slice(0, REST).forEach((name, k) => entry(name, k, counts[k], (label) => label === k));
  if (data.labels.length && counts[REST]) {
    entry(further > 0 ? `${further} more` : "no label", REST, counts[REST], (label) => label < 0 || label >= REST);
  }
  return () => { // clears what was pinned
    if (pinned) pinned.button.setAttribute("aria-pressed", "false");
    pinned = null;
    map.light(null);
  };
};

// ---- search

let hits = [], marked = -1;
const search = () => {
  const wanted = query.value.trim().toLowerCase();
  if (!wanted) return closeSearch();
  const mask = new Uint8Array(lower.length), ranked = [];
  for (let i = 0; i < lower.length; i++) {
    const at = lower[i].indexOf(wanted);
    if (at < 0) continue;
    mask[i] = 1;
    const last = lower[i].slice(lower[i].lastIndexOf(".") + 1);
    ranked.push([lower[i] === wanted ? 0 : last === wanted ? 1 : last.startsWith(wanted) ? 2 : at === 0 ? 3 : 4, i]);
  }
  ranked.sort((a, b) => a[0] - b[0] || network.degree[b[1]] - network.degree[a[1]] || a[1] - b[1]);
  hits = ranked.slice(0, 8).map(([, i]) => i);
  found.replaceChildren(...hits.map((i, k) => {
    const item = element("li", { id: `hit${k}`, textContent: data.ids[i] });
    item.setAttribute("role", "option");
    item.addEventListener("mousedown", (event) => { event.preventDefault(); take(k); });
    return item;
  }));
  if (!hits.length) found.append(element("li", { className: "none", textContent: "No id contains this." }));
  found.hidden = false;
  query.setAttribute("aria-expanded", "true");
  map.select(-1);
  map.light(ranked.length ? mask : null);
  mark(hits.length ? 0 : -1);
};

const mark = (k) => {
  marked = k;
  [...found.children].forEach((item, j) => item.setAttribute("aria-selected", String(j === k)));
  if (k < 0) query.removeAttribute("aria-activedescendant");
  else query.setAttribute("aria-activedescendant", `hit${k}`);
};

const closeSearch = () => {
  found.hidden = true;
  query.setAttribute("aria-expanded", "false");
  hits = [];
  mark(-1);
  clearLegend();
};

const take = (k) => {
  const i = hits[k];
  query.value = "";
  closeSearch();
  choose(i, { show: true });
};

query.addEventListener("input", search);
query.addEventListener("focus", search);
query.addEventListener("blur", () => { found.hidden = true; query.setAttribute("aria-expanded", "false"); });
query.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && marked >= 0) take(marked);
  else if (event.key === "ArrowDown" && hits.length) mark((marked + 1) % hits.length);
  else if (event.key === "ArrowUp" && hits.length) mark((marked + hits.length - 1) % hits.length);
  else return;
  event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== query) {
    event.preventDefault();
    query.focus();
  } else if (event.key === "Escape") {
    query.value = "";
    closeSearch();
    choose(-1);
  }
});

for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => ({ in: () => map.zoom(1.6), out: () => map.zoom(1 / 1.6), fit: () => map.fit() })[button.dataset.zoom]());
}

// ---- the address

const followAddress = (event) => {
  const wanted = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B")).get("id");
  const i = wanted === null ? -1 : data.ids.indexOf(wanted);
  choose(i, { show: true, smoothly: event !== undefined, address: false });
  if (i >= 0) document.getElementById("atlas").scrollIntoView({ block: "nearest" });
};

const clearLegend = buildLegend();
window.addEventListener("hashchange", followAddress);
followAddress();
