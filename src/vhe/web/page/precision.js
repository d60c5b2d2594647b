"use strict";
// The precision of reviewed suggestions by predicted probability, as a small chart.

const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, attributes, ...children) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};

const CHART = { left: 40, right: 330, top: 22, bottom: 150 };

const precisionChart = ({ bins }) => {
  const { left, right, top, bottom } = CHART;
  const x = (p) => left + p * (right - left), y = (p) => bottom - p * (bottom - top), text = (at, words) => svg("text", at, words);
  const ticks = [0, 0.5, 1], reviewed = bins.filter((bin) => bin.reviewed);
  const label = reviewed.map((bin) => `${percent(bin.lower)} to ${percent(bin.upper)}: ${bin.accepted} of ${bin.reviewed} accepted`).join("; ");
  return svg("svg", { class: "curve", viewBox: `0 0 346 188`, role: "img", "aria-label": `Precision of reviewed suggestions by predicted probability. ${label}` },
    text({ x: 0, y: 11 }, "Precision"),
    ...ticks.flatMap((p) => [
      svg("line", { class: "grid", x1: left, x2: right, y1: y(p), y2: y(p) }),
      text({ x: left - 7, y: y(p) + 4, "text-anchor": "end" }, `${100 * p} %`),
      text({ x: x(p), y: bottom + 16, "text-anchor": p === 1 ? "end" : "middle" }, `${100 * p} %`)]),
    text({ x: right, y: bottom + 32, "text-anchor": "end" }, "predicted probability"),
    svg("line", { class: "grid", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
    ...reviewed.flatMap((bin) => [
      svg("line", { class: "range", x1: x(bin.predicted), x2: x(bin.predicted), y1: y(bin.low), y2: y(bin.high) }),
      svg("circle", { class: "mark", cx: x(bin.predicted), cy: y(bin.precision), r: 2.5 + Math.min(4, Math.sqrt(bin.reviewed) / 2) },
        svg("title", {}, `${bin.accepted} of ${bin.reviewed} accepted, predicted ${percent(bin.predicted)}`))]));
};

// Returns a function that draws the chart again.
const openPrecision = () => {
  const place = byId("precision");
  return async () => {
    let found;
    try {
      found = await request("api/precision");
    } catch { return; } // the list says so
    place.hidden = !found.reviewed;
    if (!found.reviewed) return;
    byId("precision-share").textContent = `${percent(found.accepted / found.reviewed)} of ${found.reviewed.toLocaleString("en")}`;
    byId("precision-chart").replaceChildren(precisionChart(found));
  };
};
