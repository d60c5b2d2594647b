"use strict";
// The ranked missing links of the whole network: a list with filters, which keys move through.

const PAGE = 50; // suggestions per request
const AHEAD = 10; // rows below the current one when more are requested
const POLLING = 1; // seconds between requests while the ranking is computed

const openReview = (data, page, { stateOf, remember, isKnown, onOpen }) => {
  const panel = byId("review"), rows = byId("suggestions"), summary = byId("reviewed"), form = byId("filters");
  let items = [], skipped = 0, current = -1, total = 0, loaded = "", loading = null, calls = 0;

  // ---- the filters, which are part of the address

  form.label.append(...data.labels.map((name) => element("option", { value: name, textContent: name })));
  form.label.closest("label").hidden = !data.labels.length;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => address.go({
    state: form.state.value === "open" ? null : form.state.value, label: form.label.value || null,
    p: Number(form.p.value) > 0 ? form.p.value : null, id: null, with: null,
  }));
  form.p.addEventListener("input", () => { byId("p-value").textContent = `${form.p.value} %`; });
  const readFilters = ({ state = "open", label = "", p = "0" }) => {
    form.state.value = state;
    form.label.value = label;
    form.p.value = p;
    byId("p-value").textContent = `${form.p.value} %`;
  };
  const filter = () => new URLSearchParams({
    state: form.state.value || "open", min_probability: form.p.value / 100, ...(form.label.value ? { label: form.label.value } : {}),
  });

  // ---- rows

  const makeRow = ({ source, target, probability, duplicate }, k) => {
    const made = element("button", { type: "button", tabIndex: -1, onclick: () => open(k, { focus: true }) },
      element("span", { className: "ends" }, ...[source, target].map((end) => element("span", { className: "end" },
        page.vertexDot(end.number), idElement("span", "name", data.ids[end.number]),
        element("small", { textContent: end.text })))),
      element("span", { className: "number" }, percent(probability), meter(probability),
        ...(duplicate ? [element("small", { textContent: "same text", title: "The two texts are nearly the same." })] : []),
        stateElement(stateOf(source.number, target.number))));
    made.onmouseenter = () => page.map.setHover(source.number);
    made.onmouseleave = () => page.map.setHover(-1);
    return element("li", {}, made);
  };
  const rowAt = (k) => rows.children[k]?.querySelector("button");
  const numbers = ({ source, target }) => [source.number, target.number];
  const find = (i, j) => items.findIndex((item) => pairKey(...numbers(item)) === pairKey(i, j));

  const setCurrent = (k) => {
    const before = rowAt(current);
    if (before) [before.tabIndex, before.ariaCurrent] = [-1, null];
    current = k;
    const row = rowAt(k);
    if (row) [row.tabIndex, row.ariaCurrent] = [0, "true"];
    if (items.length - k <= AHEAD) load();
  };

  // ---- loading

  const showSummary = ({ total: count, reviewed }) => {
    const state = form.state.value === "all" ? "suggestions" : form.state.value || "open";
    summary.textContent = `${count.toLocaleString("en")} ${state} · ${reviewed.toLocaleString("en")} reviewed`;
  };
  const load = () => {
    if (loading || (items.length && items.length >= total)) return loading;
    const call = calls, wanted = form.state.value;
    // Suggestions that were decided on since they were loaded are no longer in the server's list of this state.
    const offset = skipped + (wanted === "all" ? items.length : items.filter((item) => stateOf(...numbers(item)) === wanted).length);
    loading = (async () => {
      const found = await request(`api/suggestions?${filter()}&offset=${offset}&limit=${PAGE}`);
      if (call !== calls) return;
      if (found.ready === false) {
        summary.textContent = "Ranking the missing links of the whole network …";
        await pause(POLLING);
        loading = null;
        return call === calls ? load() : undefined;
      }
      const listed = new Set(items.map((item) => pairKey(...numbers(item))));
      const shown = found.items.filter(({ source, target }) => isKnown(source) && isKnown(target));
      const added = shown.filter((item) => !listed.has(pairKey(...numbers(item))));
      skipped += found.items.length - shown.length;
      for (const item of added) remember(...numbers(item), item.state);
      const start = items.length;
      items = items.concat(added);
      total = found.items.length ? found.total + (items.length - offset - found.items.length) : items.length;
      rows.append(...added.map((item, k) => makeRow(item, start + k)));
      showSummary(found);
      byId("no-suggestions").hidden = items.length > 0;
      if (current < 0 && items.length) setCurrent(0);
    })().catch((error) => { if (call === calls) summary.textContent = error.message; }).finally(() => { if (call === calls) loading = null; });
    return loading;
  };
  rows.addEventListener("scroll", () => {
    if (rows.scrollTop + rows.clientHeight > rows.scrollHeight - 400) load();
  });

  const reload = () => {
    calls++;
    [items, skipped, current, total, loading] = [[], 0, -1, 0, null];
    rows.replaceChildren();
    return load();
  };

  // ---- moving and deciding

  const open = (k, how = {}) => {
    if (!items[k]) return;
    setCurrent(k);
    rowAt(k).focus({ preventScroll: true });
    rowAt(k).scrollIntoView({ block: "nearest" });
    const [i, j] = numbers(items[k]).map(page.names.name), opened = address.state.with !== undefined;
    address.go({ id: i, with: j, tab: "review", view: null }, { frame: true, replace: opened, debounce: true, ...how });
  };

  const moves = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 };
  document.addEventListener("keydown", (event) => {
    if (panel.hidden || isTyping(event) || !moves[event.key] || !items.length) return;
    if (event.key.startsWith("Arrow") && !rows.contains(event.target)) return;
    event.preventDefault();
    open(address.state.with || document.activeElement === rowAt(current) ? clamp(current + moves[event.key], 0, items.length - 1) : current);
  });

  address.listeners.push(async (state, how) => {
    if (panel.hidden) return;
    readFilters(state);
    const key = filter().toString();
    if (key !== loaded) {
      loaded = key;
      await reload();
    }
    const i = page.names.number(address.state.id), j = page.names.number(address.state.with), k = i < 0 || j < 0 ? -1 : find(i, j);
    if (k >= 0) setCurrent(k);
    if (k >= 0 && how.restored) rowAt(k).scrollIntoView({ block: "nearest" });
    onOpen();
  });

  return {
    get current() { return panel.hidden || current < 0 ? null : numbers(items[current]); },
    rowOf(i, j) { return panel.hidden ? null : rowAt(find(i, j)); },
    // After a decision: mark its row, and move on to the next one, or back to it if it was undone.
    async decided(i, j, state, undone) {
      const k = find(i, j);
      if (k < 0) return;
      rowAt(k).querySelector(".state").replaceWith(stateElement(state));
      if (!panel.hidden && undone) open(k);
      else if (!panel.hidden && k + 1 < items.length) open(k + 1);
      try {
        showSummary(await request(`api/suggestions?${filter()}&limit=1`));
      } catch (error) { summary.textContent = error.message; }
    },
    contains: (target) => rows.contains(target),
  };
};
