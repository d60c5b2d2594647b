"use strict";
// The report: a panel with the chosen vertex and its links, all from the data that the page holds.

const data = JSON.parse(document.getElementById("network").textContent);
const network = makeNetwork(data);
const lower = data.ids.map((id) => id.toLowerCase());
const detail = document.getElementById("detail"), tip = document.getElementById("tip");

const map = new NetworkMap(document.getElementById("map"), network, {
  hovered: (i) => showTip(tip, map, data, i),
  chosen: (i) => choose(i),
});

const row = (i, number) => vertexRow(map, network, i, number,
  { title: data.texts[i], open: () => choose(i, { show: true }) });

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
  const likely = network.suggested(i), label = labelOf(data, i);
  detail.replaceChildren(close, named("h3", "id", data.ids[i]));
  if (label !== null) detail.append(element("p", { className: "of" }, dot(network.colour[i]), label));
  detail.append(element("p", { className: "words", textContent: data.texts[i] || "No text." }));
  if (likely.length) {
    detail.append(...list("Suggested links", "probability", likely.map((link) => row(link.to, link.probability.toFixed(3)))));
  }
  detail.append(...list(`Links${links.length ? ` (${links.length})` : ""}`, links.length ? "" : "none", links.map((j) => row(j, ""))));
};

const choose = (i, { show = false, smoothly = true, address = true } = {}) => {
  map.select(i);
  describe(i);
  if (i >= 0 && show) map.show(i, smoothly);
  if (address) setAddress(i < 0 ? null : data.ids[i]);
};

const byName = (words) => {
  const wanted = words.toLowerCase(), mask = new Uint8Array(lower.length), ranked = [];
  for (let i = 0; i < lower.length; i++) {
    const at = lower[i].indexOf(wanted);
    if (at < 0) continue;
    mask[i] = 1;
    const last = lower[i].slice(lower[i].lastIndexOf(".") + 1);
    ranked.push([lower[i] === wanted ? 0 : last === wanted ? 1 : last.startsWith(wanted) ? 2 : at === 0 ? 3 : 4, i]);
  }
  ranked.sort((a, b) => a[0] - b[0] || network.degree[b[1]] - network.degree[a[1]] || a[1] - b[1]);
  map.select(-1);
  map.light(ranked.length ? mask : null);
  return ranked.slice(0, 8).map(([, i]) => ({ number: i, name: data.ids[i] }));
};

const clearLegend = buildLegend(document.getElementById("legend"), map, data);
const search = searchBox(document.getElementById("query"), document.getElementById("found"), {
  search: byName,
  take: (i) => choose(i, { show: true }),
  leave: clearLegend,
  none: "No id contains this.",
});
zoomButtons(map);
walkRows(detail);

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  search.clear();
  choose(-1);
});

const followAddress = (event) => {
  const i = addressed(data.ids);
  choose(i, { show: true, smoothly: event !== undefined, address: false });
  if (i >= 0) document.getElementById("atlas").scrollIntoView({ block: "nearest" });
};
addEventListener("hashchange", followAddress);
followAddress();
