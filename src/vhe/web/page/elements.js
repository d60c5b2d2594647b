"use strict";
// Elements that the report and the explorer share. Data of the network are inserted as text, never as markup.

const byId = (id) => document.getElementById(id);

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

const dot = (variable) => element("span", { className: "dot", style: `--dot: var(${variable})` });

const button = (className, textContent, onclick, ariaLabel = null) =>
  element("button", { type: "button", className, textContent, onclick, ariaLabel });

const message = (className, textContent) => element("p", { className, textContent });

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
  if (!event.target.matches("li > button")) return;
  const rows = [...container.querySelectorAll("li > button")], k = rows.indexOf(event.target);
  const to = { ArrowDown: k + 1, ArrowUp: k - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  rows[clamp(to, 0, rows.length - 1)].focus();
});

// Whether a key press is text for a form field or a shortcut of the browser.
const isTyping = (event) => event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=range]), textarea, select");

const narrow = matchMedia("(max-width: 640px)"); // one column: what was chosen may be out of sight

// Move the focus to what the user has just opened.
const focusOn = (target) => {
  target.focus({ preventScroll: true });
  if (narrow.matches) target.scrollIntoView({ block: "start" });
};

const download = (name, type, text) => {
  const url = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
};
