"use strict";
// The explorer: the map of a network, and a panel that asks the server about vertices, pairs of
// them, and texts that are not in the network.

const at = (id) => document.getElementById(id);
const detail = at("detail"), pair = at("pair"), placed = at("placed"), legend = at("legend");
const MORE = 30; // suggestions that the longer list shows
const STEPS = [...Array(9).keys()].map((k) => `--s${k}`);

const ask = async (path, options = {}) => {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer; is vhe serve still running?");
  }
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body;
};

const wrong = (error) => element("p", { className: "wrong", textContent: error.message });
const calm = (words) => element("p", { className: "calm", textContent: words });
const percent = (share) => {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  if (share < 1 && share > 0.9995) return "> 99.9 %";
  return `${(100 * share).toFixed(share < 0.0995 || share > 0.995 ? 1 : 0)} %`;
};
const meter = (share) => {
  const made = element("span", { className: "meter" }, element("i"));
  made.style.setProperty("--share", `${Math.round(100 * clamp(share, 0, 1))}%`);
  return made;
};
const chance = (share) => element("span", {}, meter(share), percent(share));

const start = async () => {
  const data = await ask("api/map");
  const network = makeNetwork({ ...data, suggested: [], probability: [] });
  const likely = new Map(); // suggestions that were asked for, by vertex
  network.suggested = (i) => (likely.get(i) ?? []).map((link) => ({ to: link.number }));
  const byLabel = network.colour;
  const map = new NetworkMap(at("map"), network, {
    hovered: (i) => showTip(at("tip"), map, data, i),
    chosen: (i) => choose(i),
  });
  let chosen = -1, asked = 0;

  // ---- tabs

  const tabs = [[at("tab-vertex"), detail], [at("tab-text"), at("text")]];
  const turn = (k) => tabs.forEach(([tab, panel], j) => {
    tab.setAttribute("aria-selected", String(j === k));
    tab.tabIndex = j === k ? 0 : -1;
    panel.hidden = j !== k;
  });
  tabs.forEach(([tab], k) => {
    tab.addEventListener("click", () => turn(k));
    tab.addEventListener("keydown", (event) => {
      if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
      turn(1 - k);
      tabs[1 - k][0].focus();
    });
  });

  // ---- a vertex

  const closeButton = (words, act) => {
    const made = element("button", { type: "button", className: "close", textContent: "×" });
    made.setAttribute("aria-label", words);
    made.addEventListener("click", act);
    return made;
  };

  const paragraph = (text) => {
    const made = element("p", { className: "words", textContent: text.trim() || "No text." });
    if (text.length < 420) return [made];
    made.classList.add("short");
    const more = element("button", { type: "button", className: "more", textContent: "Whole text" });
    more.addEventListener("click", () => { made.classList.remove("short"); more.remove(); });
    return [made, more];
  };

  const row = (i, number, title, open) => vertexRow(map, network, i, number,
    { title, open: open ?? (() => choose(i, { show: true })) });

  const suggestionRows = (i, links) => links.map((link) => row(link.number, chance(link.probability), link.text,
    (button) => compare(i, link.number, button)));

  const overview = () => {
    const most = map.byDegree.slice(0, 16).filter((j) => network.degree[j] > 0);
    detail.replaceChildren(
      calm("Click a point, search, or place a text of your own."),
      ...list("Most linked", "links", most.map((j) => row(j, network.degree[j], data.texts[j]))));
  };

  const describe = (i, vertex) => {
    const facts = element("p", { className: "facts" });
    if (vertex.label !== null) facts.append(element("span", {}, dot(byLabel[i]), String(vertex.label)));
    facts.append(element("span", { textContent: `uncertainty ${vertex.uncertainty.toFixed(3)}` }));
    const links = likely.get(i), more = element("button", { type: "button", className: "more", textContent: "More" });
    more.addEventListener("click", async () => {
      const wide = await ask(`api/vertices/${i}/suggestions?k=${MORE}`);
      likely.set(i, wide.links);
      if (chosen === i) describe(i, vertex);
    });
    detail.replaceChildren(
      closeButton("Clear the selection", () => choose(-1)),
      named("h3", "id", data.ids[i]),
      facts,
      ...paragraph(vertex.text),
      ...list("Suggested links", links.length ? "probability" : "none", suggestionRows(i, links)),
      ...(links.length && links.length < MORE ? [more] : []),
      ...list(`Links (${vertex.links.length})`, "", vertex.links.map((link) => row(link.number, "", link.text))));
  };

  const choose = async (i, { show = false, smoothly = true } = {}) => {
    const mine = ++asked;
    chosen = i;
    closePair();
    map.select(i);
    turn(0);
    setAddress(i < 0 ? null : data.ids[i]);
    if (i < 0) return overview();
    if (show) map.show(i, smoothly);
    try {
      const [vertex, found] = await Promise.all([
        ask(`api/vertices/${i}`), likely.get(i) ? { links: likely.get(i) } : ask(`api/vertices/${i}/suggestions`)]);
      if (mine !== asked) return;
      likely.set(i, found.links);
      detail.scrollTop = 0;
      describe(i, vertex);
      map.redraw();
    } catch (error) {
      if (mine === asked) detail.replaceChildren(wrong(error));
    }
  };

  // ---- a pair

  let pressed = null;
  const closePair = () => {
    if (pair.hidden) return;
    pair.hidden = true;
    map.pair(-1);
    if (pressed) pressed.setAttribute("aria-pressed", "false");
    if (pressed && pair.contains(document.activeElement)) pressed.focus();
    pressed = null;
  };

  const marked = (pieces) => {
    const made = element("p", { className: "words" });
    for (const [text, weight] of pieces) {
      if (!weight) { made.append(text); continue; }
      const mark = element("mark", { textContent: text, className: weight > 0.6 ? "strong" : "" });
      mark.style.setProperty("--weight", (0.14 + 0.56 * weight).toFixed(2));
      made.append(mark);
    }
    return made;
  };

  const side = (end) => {
    const open = element("button", { type: "button" }, named("span", "", data.ids[end.number]));
    open.addEventListener("click", () => choose(end.number, { show: true }));
    const of = element("p", { className: "facts" });
    if (end.label !== null) of.append(element("span", {}, dot(byLabel[end.number]), String(end.label)));
    return element("article", { tabIndex: 0 }, element("h3", {}, open), of, marked(end.pieces));
  };

  const compare = async (i, j, button) => {
    closePair();
    pressed = button;
    map.point(-1);
    button.setAttribute("aria-pressed", "true");
    map.pair(j);
    pair.replaceChildren(element("header", {}, "Reading the words …"));
    pair.hidden = false;
    let shown;
    try {
      const found = await ask(`api/pairs/${i}/${j}`);
      const header = element("header", {},
        element("span", {}, element("strong", { textContent: percent(found.network_probability) }), " likely to be linked"));
      if (found.text_share !== null) {
        header.append(element("span", { className: "split" }, `${percent(found.text_share)} by words`,
          meter(found.text_share), `${percent(found.structure_share)} by links`));
      }
      header.append(closeButton("Close the comparison", closePair));
      shown = [header, element("div", { className: "columns" }, side(found.source), side(found.target))];
    } catch (error) {
      shown = [element("header", {}, closeButton("Close the comparison", closePair)), wrong(error)];
    }
    if (pressed !== button) return;
    pair.replaceChildren(...shown);
  };

  // ---- a text that is not in the network

  const form = at("paste"), words = at("words"), submit = form.querySelector(".main");
  const showPlace = (found) => {
    const near = found.nearest.map((link) => link.number);
    map.select(-1);
    map.welcome({ x: found.x, y: found.y, near });
    map.frame(found.x, found.y, near, true);
    const note = found.known < found.words ? `${found.known.toLocaleString("en")} of ${found.words.toLocaleString("en")} words are known to the model.` : "";
    placed.replaceChildren(
      ...(note ? [calm(note)] : []),
      ...list("Nearest vertices", "probability of a link", found.nearest.map((link) => row(link.number, chance(link.probability),
        `${link.text}\n\nsimilarity ${link.similarity.toFixed(3)}`))));
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!words.value.trim()) return words.focus();
    submit.disabled = true;
    placed.replaceChildren(calm("Looking for its place …"));
    try {
      closePair();
      showPlace(await ask("api/texts", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text: words.value }),
      }));
    } catch (error) {
      placed.replaceChildren(wrong(error));
    }
    submit.disabled = false;
  });
  form.addEventListener("reset", () => { placed.replaceChildren(); map.welcome(null); words.focus(); });
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });

  // ---- colours

  let letGo = buildLegend(legend, map, data);
  const ramp = (values, low, high) => Uint8Array.from(values, (v) => Math.round(8 * clamp((v - low) / Math.max(1e-9, high - low), 0, 1)));
  const scale = (words, low, high) => legend.replaceChildren(element("div", { className: "scale" }, element("span", { textContent: words }), low,
    element("span", { className: "steps" }, ...STEPS.map((name) => {
      const step = element("i");
      step.style.background = `var(${name})`;
      return step;
    })), high));
  const colourings = {
    label() {
      map.paint(byLabel, LABELS);
      letGo = buildLegend(legend, map, data);
    },
    degree() {
      const most = network.degree.reduce((a, b) => Math.max(a, b), 0);
      map.paint(ramp(network.degree.map((d) => 1000 * Math.log1p(d)), 0, 1000 * Math.log1p(most)), STEPS);
      scale("Number of links", 0, most);
    },
    uncertainty() {
      const sorted = Float32Array.from(data.uncertainty).sort();
      const low = sorted[Math.floor(0.02 * sorted.length)], high = sorted[Math.ceil(0.98 * sorted.length) - 1];
      map.paint(ramp(data.uncertainty, low, high), STEPS);
      scale("Uncertainty", low.toFixed(3), high.toFixed(3));
    },
  };
  at("colour").addEventListener("change", (event) => {
    letGo();
    letGo = () => map.light(null);
    colourings[event.target.value]();
  });
  if (!data.labels.length) {
    at("colour").value = "degree";
    at("colour").options[0].disabled = true;
    colourings.degree();
  }

  // ---- search

  let stop = new AbortController();
  const search = searchBox(at("query"), at("found"), {
    async search(text) {
      stop.abort();
      stop = new AbortController();
      try {
        const found = await ask(`api/vertices?${new URLSearchParams({ q: text, limit: 12 })}`, { signal: stop.signal });
        const mask = new Uint8Array(data.ids.length);
        for (const i of found.numbers) mask[i] = 1;
        map.select(-1);
        map.light(found.total ? mask : null);
        return found.vertices.map((hit) => ({ number: hit.number, name: data.ids[hit.number], text: hit.text }));
      } catch (error) {
        if (error.name !== "AbortError") detail.replaceChildren(wrong(error));
        return null;
      }
    },
    take: (i) => choose(i, { show: true }),
    leave() { letGo(); if (map.selected !== chosen) map.select(chosen); },
    none: "No id or text has this.",
  });

  // ---- keys and the address

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (document.activeElement === at("query")) { search.clear(); at("query").blur(); at("map").focus(); }
    else if (!pair.hidden) closePair();
    else if (chosen >= 0) choose(-1);
    else if (map.guest) map.welcome(null);
    else letGo();
  });
  zoomButtons(map);
  walkRows(detail);
  walkRows(placed);
  const follow = (event) => {
    const i = addressed(data.ids);
    if (i !== chosen || !event) choose(i, { show: true, smoothly: event !== undefined });
  };
  addEventListener("hashchange", follow);
  at("waiting").textContent = "";
  follow();
  window.explorer = { map, network, data }; // for those who look with the browser's console
};

start().catch((error) => { at("waiting").textContent = error.message; });
