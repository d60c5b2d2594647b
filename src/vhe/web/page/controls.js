"use strict";
// Elements that the report and the explorer share: lists, the tooltip, the legend, the search box.
// Data of the network are inserted as text, never as markup.

const byId = (id) => document.getElementById(id);

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

const dot = (colour) => element("span", { className: "dot", style: colour < REST ? `--dot: var(--c${colour})` : "" });

const button = (className, textContent, onclick, ariaLabel = null) =>
  element("button", { type: "button", className, textContent, onclick, ariaLabel });

// An id, with line breaks allowed after punctuation.
const idElement = (tag, className, id) => {
  const parts = id.split(/(?<=[._/:-])/).flatMap((part) => [document.createElement("wbr"), part]);
  return element(tag, { className }, ...parts.slice(1));
};

const percent = (share) => {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  if (share < 1 && share > 0.9995) return "> 99.9 %";
  return `${(100 * share).toFixed(share < 0.0995 || share > 0.995 ? 1 : 0)} %`;
};

const meter = (share) => element("span", { className: "meter", style: `--share: ${Math.round(100 * share)}%` }, element("i"));

const showTip = (tip, map, data, i) => {
  tip.hidden = i < 0;
  if (i < 0) return;
  tip.replaceChildren(idElement("div", "id", data.ids[i]));
  if (data.texts[i]) tip.append(element("p", { textContent: data.texts[i] }));
  const [sx, sy] = map.screen(i), box = tip.getBoundingClientRect();
  tip.style.left = `${clamp(sx + 14, 6, Math.max(6, map.w - box.width - 6))}px`;
  tip.style.top = `${sy + 16 + box.height < map.h ? sy + 16 : Math.max(6, sy - 16 - box.height)}px`;
};

const list = (heading, note, rows) => [
  element("h4", { textContent: heading }, element("span", { textContent: note })),
  element("ul", {}, ...rows),
];

// Arrow keys, Home and End move the focus through the rows of all lists in a container.
const addRowKeys = (container) => container.addEventListener("keydown", (event) => {
  if (!event.target.matches("li button")) return;
  const rows = [...container.querySelectorAll("li button")], k = rows.indexOf(event.target);
  const to = { ArrowDown: k + 1, ArrowUp: k - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  rows[clamp(to, 0, rows.length - 1)].focus();
});

const addZoomButtons = (map) => {
  const actions = { in: () => map.zoom(1.6), out: () => map.zoom(1 / 1.6), fit: () => map.fit() };
  for (const zoom of document.querySelectorAll("[data-zoom]")) zoom.onclick = actions[zoom.dataset.zoom];
};

// One button per label, which highlights its vertices. Returns a function that resets the legend.
const buildLegend = (legend, map, labels, colours) => {
  let pinned = null; // the pressed button
  const show = (entry) => map.highlight(entry && Uint8Array.from(colours, (colour) => colour === Number(entry.value)));
  const pin = (entry) => {
    if (pinned) pinned.ariaPressed = "false";
    if (entry) entry.ariaPressed = "true";
    pinned = entry;
    show(pinned);
  };
  const entry = (name, colour) => {
    const count = colours.filter((other) => other === colour).length.toLocaleString("en");
    const made = element("button", { type: "button", value: colour, ariaPressed: "false" }, dot(colour),
      element("span", { textContent: name }), element("span", { textContent: count }));
    made.onmouseenter = () => show(made);
    made.onmouseleave = () => show(pinned);
    made.onclick = () => pin(pinned === made ? null : made);
    return made;
  };
  const others = labels.length - REST, rest = others > 0 ? `${others} more` : "no label";
  const entries = labels.slice(0, REST).map(entry);
  legend.replaceChildren(...entries, ...(labels.length && colours.includes(REST) ? [entry(rest, REST)] : []));
  return () => pin(null);
};

// `search(query)` returns matches [{number, name, text}] or a promise of them, null if cancelled;
// `select(number)` is called for the chosen match, `close()` when the list is closed.
const searchBox = (query, found, { search, select, close }) => {
  let matches = [], marked = -1, requests = 0;
  const mark = (k) => {
    marked = k;
    [...found.children].forEach((item, j) => { item.ariaSelected = String(j === k); });
    if (k < 0) return query.removeAttribute("aria-activedescendant");
    query.setAttribute("aria-activedescendant", `match${k}`);
    found.children[k].scrollIntoView({ block: "nearest" });
  };
  const setOpen = (open) => {
    found.hidden = !open;
    query.ariaExpanded = String(open);
  };
  const clear = () => {
    query.value = "";
    requests++;
    matches = [];
    setOpen(false);
    mark(-1);
    close();
  };
  const choose = (k) => {
    const { number } = matches[k];
    clear();
    select(number);
  };
  const update = async () => {
    const words = query.value.trim(), request = ++requests;
    if (!words) return clear();
    const answer = await search(words);
    if (request !== requests || !answer) return;
    matches = answer;
    found.replaceChildren(...matches.map(({ name, text }, k) => {
      const item = element("li", { id: `match${k}`, role: "option" }, idElement("span", "name", name));
      if (text) item.append(element("small", { textContent: text }));
      item.onmousedown = (event) => { event.preventDefault(); choose(k); };
      return item;
    }));
    if (!matches.length) found.append(element("li", { className: "none", textContent: "No matches" }));
    setOpen(true);
    mark(matches.length ? 0 : -1);
  };
  query.oninput = query.onfocus = update;
  query.onblur = () => setOpen(false);
  query.onkeydown = (event) => {
    if (event.key === "Enter" && marked >= 0) choose(marked);
    else if (event.key === "ArrowDown" && matches.length) mark((marked + 1) % matches.length);
    else if (event.key === "ArrowUp" && matches.length) mark((marked + matches.length - 1) % matches.length);
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.matches("input, textarea, select")) return;
    event.preventDefault();
    query.focus();
  });
  return { clear };
};

// The index of the vertex in the fragment of the URL (#id=ID), or -1.
const vertexInURL = (ids) => {
  const id = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B")).get("id");
  return id === null ? -1 : ids.indexOf(id);
};
const setVertexInURL = (id) => history.replaceState(null, "",
  id === null ? location.pathname + location.search : `#id=${encodeURIComponent(id)}`);
