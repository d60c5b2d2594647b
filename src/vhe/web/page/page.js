"use strict";
// The page that the report and the explorer share: the map, and a panel with what is selected.

// `readVertex(i)` returns {text, label, suggestions} or a promise of them; suggestions are
// [{number, probability}], and the default of `label` is the one on the map. `search(query)` returns
// {numbers, shown} or a promise of them, null if there is no answer: all matching vertices, and those to list as
// [{number, text}]. Options of the explorer:
//   hint: a sentence above the overview
//   suggestionOptions(i, link): of the row of a suggested link: open(), note
//   more(i, show): returns elements below the suggestions; show(suggestions) replaces these
const openPage = (data, network, { readVertex, search, hint = "", suggestionOptions = () => ({}), more = () => [] }) => {
  const detail = byId("detail"), query = byId("query"), names = vertexNames(data.ids);
  let selected = -1, group = [], path = [], shownCard = null, requests = 0;
  const map = new NetworkMap(byId("map"), network, {
    onHover: (i) => showTip(byId("tip"), map, data, i),
    onSelect: (i, add) => (add ? i >= 0 && addToGroup(i) : select(i)),
    onLasso: (corners) => address.go({ ...NOTHING, lasso: corners.join(), view: map.place }, { focus: true }),
    onView: (place) => address.note({ view: place }),
  });

  // ---- what is selected

  const NOTHING = { id: null, with: null, set: null, lasso: null, near: null, path: null, tab: null };
  const select = (i, { show = false } = {}) =>
    address.go({ id: i < 0 ? null : names.name(i), with: null, tab: null, view: show ? null : map.place }, { frame: show, focus: true });
  const addToGroup = (i) => {
    const { state } = address, before = names.split(state.set), start = group.length || selected < 0 ? before : [selected];
    const set = start.includes(i) && group.length ? start.filter((j) => j !== i) : [...new Set([...start, i])];
    address.go({ id: null, with: null, tab: null, path: null, set: names.join(set), view: map.place }, { focus: true });
  };

  // ---- elements

  const paintDot = (made) => made.style.setProperty("--dot", `var(${map.palette[network.colour[made.dataset.vertex]]})`);
  const vertexDot = (i) => {
    const made = element("span", { className: "dot" });
    made.dataset.vertex = i;
    paintDot(made);
    return made;
  };
  const setColours = (colour, palette) => {
    map.setColours(colour, palette);
    document.querySelectorAll(".dot[data-vertex]").forEach(paintDot);
  };

  const row = (i, number, { title = data.texts[i], open = () => select(i, { show: true }) } = {}) => {
    const made = element("button", { type: "button", title, onmouseenter: () => map.setHover(i), onmouseleave: () => map.setHover(-1) },
      vertexDot(i), idElement("span", "name", network.ids[i]), element("span", { className: "number" }, number));
    made.dataset.row = i;
    made.onclick = (event) => (event.shiftKey ? addToGroup(i) : open());
    return element("li", {}, made);
  };
  const probabilityRow = ({ number, probability }, { note = "", ...options } = {}) =>
    row(number, element("span", {}, note, meter(probability), percent(probability)), options);

  const labelElements = (i, label = data.labels[data.label[i]] ?? null) => (label === null ? []
    : [element("span", {}, vertexDot(i), String(label))]);

  const textElements = (text) => {
    const words = element("p", { className: "words", textContent: text.trim() || "No text" });
    if (text.length < 420) return [words];
    words.classList.add("short");
    const full = button("more", "Show full text", () => { words.classList.remove("short"); full.remove(); });
    return [words, full];
  };

  // ---- the card: a vertex, several vertices, or an overview

  const overview = () => {
    const most = map.byDegree.slice(0, 16).filter((i) => network.degree[i] > 0);
    return [
      ...(hint ? [message("note", hint)] : []),
      ...(most.length ? list("Highest degree", "links", most.map((i) => row(i, network.degree[i]))) : [])];
  };

  const vertexCard = (i, vertex) => {
    const links = [...network.neighbours(i)].sort((a, b) => (data.ids[a] < data.ids[b] ? -1 : 1));
    const { text, label, suggestions } = vertex, facts = labelElements(i, label);
    if (data.uncertainty) facts.push(element("span", { textContent: `uncertainty ${data.uncertainty[i].toFixed(3)}` }));
    const again = (found) => { if (selected === i) detail.replaceChildren(...vertexCard(i, { ...vertex, suggestions: found })); };
    return [
      button("close", "×", () => select(-1), "Clear selection"),
      idElement("h3", "id", data.ids[i]),
      element("p", { className: "facts" }, ...facts),
      ...textElements(text),
      button("more", "Add to selection", () => addToGroup(i)),
      ...list("Suggested links", suggestions.length ? "probability" : "none",
        suggestions.map((link) => probabilityRow(link, suggestionOptions(i, link)))),
      ...more(i, again),
      ...list(`Links (${links.length})`, "", links.map((j) => row(j, "")))];
  };

  const cardElements = async () => {
    if (selected >= 0) return vertexCard(selected, await readVertex(selected));
    return group.length ? groupElements(data, network, row, group, path) : overview();
  };

  const showCard = async (how) => {
    const { id, set, lasso, near, path: route } = address.state, card = JSON.stringify([id, set, lasso, near, route]);
    if (how.focus && selected < 0 && !group.length) map.canvas.focus({ preventScroll: true });
    if (card === shownCard) return;
    const request = ++requests;
    if (detail.hidden) {
      shownCard = null;
      return detail.replaceChildren();
    }
    shownCard = card;
    let elements;
    try {
      elements = await cardElements();
    } catch (error) {
      elements = [message("error", error.message)];
      shownCard = null;
    }
    if (request !== requests) return;
    detail.replaceChildren(...elements);
    detail.querySelectorAll(".dot[data-vertex]").forEach(paintDot); // the colouring may have changed in the meantime
    detail.scrollTop = 0;
    map.redraw();
    const heading = detail.querySelector("h3");
    if (heading && !how.first && (how.focus || how.restored)) {
      heading.tabIndex = -1;
      focusOn(heading);
    }
    if (how.first && heading && narrow.matches) detail.scrollIntoView({ block: "start" });
  };

  address.listeners.push((state, how) => {
    selected = names.number(state.id);
    group = groupOf(state, map, network, names);
    path = pathOf(state, group, network);
    const partner = selected < 0 ? -1 : names.number(state.with);
    map.showEdges(state.links === "all");
    byId("edges").ariaPressed = String(state.links === "all");
    map.select(selected);
    map.setPartner(partner);
    map.setGroup(path?.length ? path : group, path ?? []);
    const smoothly = !how.first;
    if (how.restored && state.view) map.place = state.view;
    else if (how.restored || how.frame) {
      if (partner >= 0) map.frameAll([selected, partner], smoothly);
      else if (selected >= 0) map.showVertex(selected, smoothly);
      else if (group.length) map.frameAll(path?.length ? path : group, smoothly);
      else if (how.restored) map.place = null;
    }
    if (how.restored && selected >= 0 && !how.first) byId("workspace").scrollIntoView({ block: "nearest" });
    showCard(how);
  });

  const page = {
    map, names, select, row, probabilityRow, labelElements, vertexDot, setColours,
    resetLegend: buildLegend(byId("legend"), map, data.labels, network.colour),
  };

  const box = searchBox(query, byId("matches"), {
    async search(words) {
      const found = await search(words);
      if (!found) return null;
      const mask = new Uint8Array(data.ids.length);
      for (const i of found.numbers) mask[i] = 1;
      map.select(-1);
      map.highlight(found.numbers.length ? mask : null);
      return found.shown.map(({ number, text }) => ({ number, name: data.ids[number], text }));
    },
    select: (i) => select(i, { show: true }),
    close() {
      page.resetLegend();
      if (map.selected !== selected) map.select(selected);
    },
  });

  // Escape closes what was opened last.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const { state } = address;
    if (document.activeElement === query) { box.clear(); map.canvas.focus({ preventScroll: true }); }
    else if (state.with) address.go(closedPair());
    else if (map.newText && selected < 0) map.setNewText(null);
    else if (selected >= 0) select(-1);
    else if (group.length) address.go({ ...NOTHING, tab: state.tab }, { focus: true });
    else page.resetLegend();
  });
  addMapButtons(map, (shown) => address.go({ links: shown ? "all" : null }));
  addRowKeys(detail);
  return page;
};
