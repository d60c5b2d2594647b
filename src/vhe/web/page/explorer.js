"use strict";
// The explorer: the server answers requests about vertices, pairs of vertices, and new texts.

const MORE = 30; // suggestions in the longer list
const LAYOUT_POLLING = 2; // seconds

// The tab in view: that of the address, or else the one that shows what is selected.
const openTabs = () => {
  const tabs = ["review", "vertex", "text"].map((name) => ({ name, tab: byId(`tab-${name}`), panel: byId(byId(`tab-${name}`).getAttribute("aria-controls")) }));
  const usual = ({ id, set, lasso }) => (id || set || lasso ? "vertex" : "review");
  const open = (name) => address.go({ tab: name === usual(address.state) ? null : name });
  tabs.forEach(({ name, tab }, k) => {
    tab.onclick = () => open(name);
    tab.onkeydown = (event) => {
      const to = tabs[k + { ArrowLeft: -1, ArrowRight: 1 }[event.key]];
      if (!to) return;
      open(to.name);
      to.tab.focus();
    };
  });
  address.listeners.push((state) => {
    const wanted = tabs.some(({ name }) => name === state.tab) ? state.tab : usual(state);
    for (const { name, tab, panel } of tabs) {
      tab.ariaSelected = String(name === wanted);
      tab.tabIndex = name === wanted ? 0 : -1;
      panel.hidden = name !== wanted;
    }
  });
};

// An address may name vertices that the network does not have, or no longer has.
const reportUnknown = (names) => address.listeners.push(({ id, with: other, set = "" }, { restored }) => {
  const named = [id, other, ...set.split(",").map(decode)].filter(Boolean), unknown = named.filter((name) => names.number(name) < 0);
  if (restored) byId("status").textContent = unknown.length ? `Unknown vertex id: ${unknown.join(", ")}` : "";
});

// A quick layout is replaced by the final one as soon as the server has it.
const followLayout = async (data, map) => {
  const note = byId("layout");
  note.hidden = data.layout !== "quick";
  while (!note.hidden) {
    await pause(LAYOUT_POLLING);
    try {
      if ((await request("api/layout")).layout === "quick") continue;
      const final = await request("api/map"), placed = (values) => Float32Array.from(values.slice(0, data.ids.length));
      map.setLayout(placed(final.x), placed(final.y), final.regions);
      note.hidden = true;
    } catch { /* the server may be restarting */ }
  }
};

const start = async () => {
  const data = await request("api/map");
  loadedVertices = { numbering: data.numbering, count: data.ids.length };
  byId("changed").querySelector("button").onclick = () => location.reload();
  const isKnown = ({ number }) => number < data.ids.length; // vertices that were added later are not on the map
  const network = makeNetwork({ ...data, suggested: [], probability: [] });
  const suggestions = new Map(); // by vertex, as received from the server
  network.suggested = (i) => (address.state.tab === "review" ? [] : suggestions.get(i) ?? []);
  const readSuggestions = async (i, k) => {
    suggestions.set(i, (await request(`api/vertices/${i}/suggestions?k=${k}`)).links.filter(isKnown));
    return suggestions.get(i);
  };

  openTabs();
  let search = new AbortController();
  const page = openPage(data, network, {
    async readVertex(i) {
      const [{ text, label }, links] = await Promise.all([
        request(`api/vertices/${i}`), suggestions.get(i) ?? readSuggestions(i, 10)]);
      return { text, label, suggestions: links };
    },
    async search(words) {
      search.abort();
      search = new AbortController();
      try {
        const found = await request(`api/vertices?${new URLSearchParams({ q: words, limit: 12 })}`, { signal: search.signal });
        return { numbers: found.numbers, shown: found.vertices.filter(isKnown) };
      } catch (error) {
        if (error.name !== "AbortError") showError(error.message);
        return null;
      }
    },
    hint: "Click a point, search, or embed a text of your own.",
    suggestionOptions(i, { number: j, state = "open" }) {
      decisions.remember(i, j, state);
      const open = () => address.go({ id: page.names.name(i), with: page.names.name(j), tab: null }, { focus: true });
      return { open, note: stateElement(state) };
    },
    more(i, show) {
      const count = suggestions.get(i).length;
      return count && count < MORE ? [button("more", "More", async () => show(await readSuggestions(i, MORE)))] : [];
    },
  });

  const detail = byId("detail"), drawPrecision = openPrecision();
  const decisions = makeDecisions(data, {
    current: () => comparison.pair ?? review.current,
    // Space presses a button that has the focus, unless it is a row of the list.
    isActive: ({ key, target }) => (comparison.pair || review.current) && (key !== " " || review.contains(target) || !target.closest("button, a, summary")),
    onChange(i, j, state, undone) {
      for (const vertex of [i, j]) suggestions.delete(vertex);
      comparison.update();
      const row = detail.querySelector(`[data-row="${page.map.selected === i ? j : i}"] .state`);
      if (row && [i, j].includes(page.map.selected)) row.replaceWith(stateElement(state));
      review.decided(i, j, state, undone);
      drawPrecision();
    },
  });
  const review = openReview(data, page, { ...decisions, isKnown, onOpen: () => comparison.attach() });
  const comparison = openComparison(data, page, {
    toolbar: decisions.toolbar,
    rowOf: (i, j) => (detail.hidden ? review.rowOf(i, j) : detail.querySelector(`[data-row="${j}"]`)),
  });
  reportUnknown(page.names);
  openNewText(page, isKnown);
  openColouring(data, network, page);
  drawPrecision();
  address.start();
  followLayout(data, page.map);
  byId("loading").textContent = "";
  window.explorer = { map: page.map, network, data }; // for the developer console
};

start().catch((error) => { byId("loading").textContent = error.message; });
