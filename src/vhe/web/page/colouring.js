"use strict";
// The colours of the map: by label, degree or uncertainty.

const STEPS = [...Array(9).keys()].map((k) => `--s${k}`);

const openColouring = (data, network, page) => {
  const { map } = page, legend = byId("legend"), select = byId("colour"), labelColours = network.colour;
  const ramp = (values, low, high) => Uint8Array.from(values, (v) => Math.round(8 * clamp((v - low) / Math.max(1e-9, high - low), 0, 1)));
  const showScale = (name, low, high) => {
    legend.replaceChildren(element("div", { className: "scale" }, element("span", { textContent: name }), low,
      element("span", { className: "steps" }, ...STEPS.map((colour) => element("i", { style: `background: var(${colour})` }))), high));
    page.resetLegend = () => map.highlight(null);
  };
  const colourBy = {
    label() {
      page.setColours(labelColours, LABELS);
      page.resetLegend = buildLegend(legend, map, data.labels, labelColours);
    },
    degree() {
      const most = network.degree[map.byDegree[0]];
      page.setColours(ramp(network.degree.map(Math.log1p), 0, Math.log1p(most)), STEPS);
      showScale("Degree", 0, most);
    },
    uncertainty() {
      const sorted = Float32Array.from(data.uncertainty).sort();
      const low = sorted[Math.floor(0.02 * sorted.length)], high = sorted[Math.ceil(0.98 * sorted.length) - 1];
      page.setColours(ramp(data.uncertainty, low, high), STEPS);
      showScale("Uncertainty", low.toFixed(3), high.toFixed(3));
    },
  };
  const usual = data.labels.length ? "label" : "degree";
  let shown = "label";
  select.options[0].disabled = !data.labels.length;
  select.addEventListener("change", () => address.go({ colour: select.value === usual ? null : select.value }));
  address.listeners.push(({ colour = usual }) => {
    const wanted = colourBy[colour] && (colour !== "label" || data.labels.length) ? colour : usual;
    select.value = wanted;
    if (wanted === shown) return;
    shown = wanted;
    page.resetLegend();
    colourBy[wanted]();
  });
};
