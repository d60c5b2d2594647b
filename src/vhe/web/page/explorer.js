"use strict";
// The explorer: the server answers requests about vertices, pairs of vertices, and new texts.

const MORE = 30; // suggestions in the longer list
const STEPS = [...Array(9).keys()].map((k) => `--s${k}`);

const request = async (path, options = {}) => {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("No connection to the server. Is vhe serve running?");
  }
  const body = await response.json();
  if (!response.ok) throw new Error(body.error);
  return body;
};

const message = (className, textContent) => element("p", { className, textContent });

const start = async () => {
  const data = await request("api/map");
  const network = makeNetwork({ ...data, suggested: [], probability: [] });
  const labelColours = network.colour;
  const suggestions = new Map(); // by vertex, as received from the server
  network.suggested = (i) => suggestions.get(i) ?? [];
  const readSuggestions = async (i, k) => {
    suggestions.set(i, (await request(`api/vertices/${i}/suggestions?k=${k}`)).links);
    return suggestions.get(i);
  };

  // ---- tabs

  const tabs = [[byId("tab-vertex"), byId("detail")], [byId("tab-text"), byId("text")]];
  const openTab = (k) => tabs.forEach(([tab, panel], j) => {
    tab.ariaSelected = String(j === k);
    tab.tabIndex = j === k ? 0 : -1;
    panel.hidden = j !== k;
  });
  tabs.forEach(([tab], k) => {
    tab.onclick = () => openTab(k);
    tab.onkeydown = (event) => {
      if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
      openTab(1 - k);
      tabs[1 - k][0].focus();
    };
  });

  // ---- comparison of a pair

  const pair = byId("pair");
  let pressed = null;
  const closePair = () => {
    if (pair.hidden) return;
    pair.hidden = true;
    map.setPartner(-1);
    if (pressed) pressed.ariaPressed = "false";
    if (pressed && pair.contains(document.activeElement)) pressed.focus();
    pressed = null;
  };

  const segment = ([text, weight]) => (weight
    ? element("mark", { className: weight > 0.6 ? "strong" : "", style: `--weight: ${(0.14 + 0.56 * weight).toFixed(2)}` }, text)
    : text);

  const contribution = ([name, value]) => element("li", { className: value < 0 ? "against" : "for" },
    `${name} `, element("b", { textContent: `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}` }));

  const side = ({ number, label, segments }) => {
    const open = () => page.select(number, { show: true });
    return element("article", { tabIndex: 0 },
      element("h3", {}, element("button", { type: "button", onclick: open }, idElement("span", "", data.ids[number]))),
      element("p", { className: "facts" }, ...page.labelElements(number, label)),
      element("p", { className: "words" }, ...segments.map(segment)));
  };

  const comparePair = async (i, j, row) => {
    closePair();
    pressed = row;
    row.ariaPressed = "true";
    map.setHover(-1);
    map.setPartner(j);
    pair.replaceChildren(element("header", {}, "Loading the explanation …"));
    pair.hidden = false;
    const close = button("close", "×", closePair, "Close comparison");
    let shown;
    try {
      const found = await request(`api/pairs/${i}/${j}`);
      const header = element("header", {},
        element("span", {}, "probability of a link ", element("strong", { textContent: percent(found.network_probability) })),
        element("span", { className: "split" }, `text ${percent(found.text_share)}`,
          meter(found.text_share), `structure ${percent(found.structure_share)}`),
        element("ul", { className: "parts", ariaLabel: "Contributions to the log odds of a link" },
          ...Object.entries(found.parts).map(contribution)), close);
      shown = [header, element("div", { className: "columns" }, side(found.source), side(found.target))];
    } catch (error) {
      shown = [element("header", {}, close), message("error", error.message)];
    }
    if (pressed === row) pair.replaceChildren(...shown);
  };

  // ---- the page

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
        return { numbers: found.numbers, shown: found.vertices };
      } catch (error) {
        if (error.name === "AbortError") return null;
        throw error;
      }
    },
    hint: "Click a point, search, or embed a text of your own.",
    openSuggestion: comparePair,
    more(i, show) {
      const count = suggestions.get(i).length;
      return count && count < MORE ? [button("more", "More", async () => show(await readSuggestions(i, MORE)))] : [];
    },
    beforeSelect() {
      closePair();
      openTab(0);
    },
    escape() {
      if (!pair.hidden) closePair();
      else if (map.newText && map.selected < 0) map.setNewText(null);
      else return false;
      return true;
    },
  });
  const { map } = page;

  // ---- a text that is not in the network

  const form = byId("new-text"), words = byId("words"), nearest = byId("nearest"), submit = form.querySelector(".main");
  const showNewText = (found) => {
    const near = found.nearest.map((link) => link.number);
    map.select(-1);
    map.setNewText({ x: found.x, y: found.y, near });
    map.frame(found.x, found.y, near, true);
    const [known, total] = [found.known, found.words].map((count) => count.toLocaleString("en"));
    nearest.replaceChildren(
      ...(found.known < found.words ? [message("note", `${known} of ${total} words are in the vocabulary.`)] : []),
      ...list("Likeliest links", "probability of a link", found.nearest.map((link) => page.probabilityRow(link,
        { title: `${link.text}\n\ncosine similarity ${link.similarity.toFixed(3)}` }))));
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!words.value.trim()) return words.focus();
    submit.disabled = true;
    nearest.replaceChildren(message("note", "Embedding the text …"));
    try {
      closePair();
      showNewText(await request("api/texts", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text: words.value }),
      }));
    } catch (error) {
      nearest.replaceChildren(message("error", error.message));
    }
    submit.disabled = false;
  });
  form.addEventListener("reset", () => { nearest.replaceChildren(); map.setNewText(null); words.focus(); });
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  addRowKeys(nearest);

  // ---- colours

  const legend = byId("legend");
  const ramp = (values, low, high) => Uint8Array.from(values, (v) => Math.round(8 * clamp((v - low) / Math.max(1e-9, high - low), 0, 1)));
  const showScale = (name, low, high) => legend.replaceChildren(element("div", { className: "scale" }, element("span", { textContent: name }), low,
    element("span", { className: "steps" }, ...STEPS.map((colour) => element("i", { style: `background: var(${colour})` }))), high));
  const colourBy = {
    label() {
      map.setColours(labelColours, LABELS);
      page.resetLegend = buildLegend(legend, map, data.labels, labelColours);
    },
    degree() {
      const most = network.degree[map.byDegree[0]];
      map.setColours(ramp(network.degree.map(Math.log1p), 0, Math.log1p(most)), STEPS);
      showScale("Degree", 0, most);
    },
    uncertainty() {
      const sorted = Float32Array.from(data.uncertainty).sort();
      const low = sorted[Math.floor(0.02 * sorted.length)], high = sorted[Math.ceil(0.98 * sorted.length) - 1];
      map.setColours(ramp(data.uncertainty, low, high), STEPS);
      showScale("Uncertainty", low.toFixed(3), high.toFixed(3));
    },
  };
  byId("colour").addEventListener("change", (event) => {
    page.resetLegend();
    page.resetLegend = () => map.highlight(null);
    colourBy[event.target.value]();
  });
  if (!data.labels.length) {
    byId("colour").value = "degree";
    byId("colour").options[0].disabled = true;
    colourBy.degree();
  }

  byId("loading").textContent = "";
  window.explorer = { map, network, data }; // for the developer console
};

start().catch((error) => { byId("loading").textContent = error.message; });
