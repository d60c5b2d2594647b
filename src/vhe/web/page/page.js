"use strict";
// The page that the report and the explorer share: the map, and a panel with the selected vertex.

// `readVertex(i)` returns {text, label, suggestions} or a promise of them; suggestions are
// [{number, probability}], and the default of `label` is the one on the map. `search(query)` returns
// {numbers, shown} or a promise of them, null if cancelled: all matching vertices, and those to list as
// [{number, text}]. Options of the explorer:
//   hint: a sentence above the overview
//   openSuggestion(i, j, row): called for a click on a suggested link
//   more(i, show): returns elements below the suggestions; show(suggestions) replaces these
//   beforeSelect(): called before the selection changes
//   escape(): called for the Escape key; returns whether it handled it
const openPage = (data, network, options) => {
  const { readVertex, search, hint = "", openSuggestion } = options;
  const { more = () => [], beforeSelect = () => {}, escape = () => false } = options;
  const detail = byId("detail"), query = byId("query");
  const labelColour = network.colour; // the map may be coloured by something else later
  let selected = -1, requests = 0;
  const map = new NetworkMap(byId("map"), network, {
    onHover: (i) => showTip(byId("tip"), map, data, i),
    onSelect: (i) => select(i),
  });

  const row = (i, number, { title = data.texts[i], open = () => select(i, { show: true }) } = {}) => {
    const made = element("button", { type: "button", title, onmouseenter: () => map.setHover(i), onmouseleave: () => map.setHover(-1) },
      dot(labelColour[i]), idElement("span", "name", network.ids[i]), element("span", { className: "number" }, number));
    made.onclick = () => open(made);
    return element("li", {}, made);
  };
  const probabilityRow = ({ number, probability }, options) =>
    row(number, element("span", {}, meter(probability), percent(probability)), options);

  const labelElements = (i, label = data.labels[data.label[i]] ?? null) => (label === null ? []
    : [element("span", {}, dot(labelColour[i]), String(label))]);

  const textElements = (text) => {
    const words = element("p", { className: "words", textContent: text.trim() || "No text" });
    if (text.length < 420) return [words];
    words.classList.add("short");
    const full = button("more", "Show full text", () => { words.classList.remove("short"); full.remove(); });
    return [words, full];
  };

  const showOverview = () => {
    const most = map.byDegree.slice(0, 16).filter((i) => network.degree[i] > 0);
    detail.replaceChildren(
      ...(hint ? [element("p", { className: "note", textContent: hint })] : []),
      ...(most.length ? list("Highest degree", "links", most.map((i) => row(i, network.degree[i]))) : []));
  };

  const showVertex = (i, vertex) => {
    const links = [...network.neighbours(i)].sort((a, b) => (data.ids[a] < data.ids[b] ? -1 : 1));
    const { text, label, suggestions } = vertex, facts = labelElements(i, label);
    if (data.uncertainty) facts.push(element("span", { textContent: `uncertainty ${data.uncertainty[i].toFixed(3)}` }));
    const open = (j) => openSuggestion && { open: (made) => openSuggestion(i, j, made) };
    detail.replaceChildren(
      button("close", "×", () => select(-1), "Clear selection"),
      idElement("h3", "id", data.ids[i]),
      element("p", { className: "facts" }, ...facts),
      ...textElements(text),
      ...list("Suggested links", suggestions.length ? "probability" : "none",
        suggestions.map((link) => probabilityRow(link, open(link.number)))),
      ...more(i, (again) => { if (selected === i) showVertex(i, { ...vertex, suggestions: again }); }),
      ...list(`Links (${links.length})`, "", links.map((j) => row(j, ""))));
  };

  const select = async (i, { show = false, smoothly = true } = {}) => {
    const request = ++requests;
    selected = i;
    beforeSelect();
    map.select(i);
    setVertexInURL(i < 0 ? null : data.ids[i]);
    detail.scrollTop = 0;
    if (i < 0) return showOverview();
    if (show) map.showVertex(i, smoothly);
    try {
      const vertex = await readVertex(i);
      if (request !== requests) return;
      showVertex(i, vertex);
      map.redraw();
    } catch (error) {
      if (request === requests) showError(error);
    }
  };
  const showError = (error) => detail.replaceChildren(element("p", { className: "error", textContent: error.message }));

  const page = { map, select, row, probabilityRow, labelElements, resetLegend: buildLegend(byId("legend"), map, data.labels, labelColour) };

  const box = searchBox(query, byId("matches"), {
    async search(words) {
      try {
        const found = await search(words);
        if (!found) return null;
        const mask = new Uint8Array(data.ids.length);
        for (const i of found.numbers) mask[i] = 1;
        map.select(-1);
        map.highlight(found.numbers.length ? mask : null);
        return found.shown.map(({ number, text }) => ({ number, name: data.ids[number], text }));
      } catch (error) {
        showError(error);
        return null;
      }
    },
    select(i) {
      map.canvas.focus({ preventScroll: true });
      select(i, { show: true });
    },
    close() {
      page.resetLegend();
      if (map.selected !== selected) map.select(selected);
    },
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (document.activeElement === query) { box.clear(); map.canvas.focus({ preventScroll: true }); }
    else if (escape()) return;
    else if (selected >= 0) select(-1);
    else page.resetLegend();
  });
  addZoomButtons(map);
  addRowKeys(detail);

  const selectFromURL = (event) => {
    const i = vertexInURL(data.ids);
    select(i, { show: true, smoothly: event !== undefined });
    if (i >= 0) byId("workspace").scrollIntoView({ block: "nearest" });
  };
  addEventListener("hashchange", selectFromURL);
  selectFromURL();
  return page;
};
