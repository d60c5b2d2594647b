"use strict";
// The comparison of two vertices: the probability of a link, its parts, and the words of both texts.

// `toolbar(i, j)` returns an element for decisions; `rowOf(i, j)` the button in a list that has opened the pair, or null.
const openComparison = (data, page, { toolbar, rowOf }) => {
  const section = byId("pair"), stage = document.querySelector(".stage");
  let shown = null, pressed = null, requests = 0; // [i, j] of the open pair, and its row

  const segment = ([text, weight]) => (weight
    ? element("mark", { className: weight > 0.6 ? "strong" : "", style: `--weight: ${(0.14 + 0.56 * weight).toFixed(2)}` }, text)
    : text);
  const contribution = ([name, value]) => element("li", { className: value < 0 ? "against" : "for" },
    `${name} `, element("b", { textContent: `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}` }));
  const side = ({ number, label, segments }) => {
    const open = () => page.select(number, { show: true });
    return element("article", { tabIndex: 0, ariaLabel: data.ids[number] },
      element("h3", {}, element("button", { type: "button", onclick: open }, idElement("span", "", data.ids[number]))),
      element("p", { className: "facts" }, ...page.labelElements(number, label)),
      element("p", { className: "words" }, ...segments.map(segment)));
  };
  const close = () => address.go(closedPair());
  const showPath = (i, j) => address.go(
    { id: null, with: null, tab: null, lasso: null, near: null, set: page.names.join([i, j]), path: "shortest", view: null }, { frame: true, focus: true });

  const contents = (i, j, found) => [
    element("header", {},
      element("span", {}, found.linked ? "linked, probability " : "probability of a link ", element("strong", { textContent: percent(found.probability) })),
      element("span", { className: "split" }, `text ${percent(found.text_share)}`,
        meter(found.text_share), `structure ${percent(found.structure_share)}`),
      element("ul", { className: "parts", ariaLabel: "Contributions to the log odds of a link" },
        ...Object.entries(found.parts).filter(([, value]) => Math.abs(value) >= 0.005).map(contribution)),
      button("close", "×", close, "Close comparison")),
    element("div", { className: "row actions" }, ...(found.linked ? [] : [toolbar(i, j)]), button("", "Shortest path", () => showPath(i, j))),
    element("div", { className: "columns" }, side(found.source), side(found.target))];

  const hide = () => {
    if (section.hidden) return;
    const inside = section.contains(document.activeElement);
    section.hidden = true;
    stage.append(section); // out of a list that will be replaced
    if (pressed) pressed.ariaPressed = "false";
    if (inside && pressed?.isConnected) pressed.focus({ preventScroll: true });
    else if (inside) page.map.canvas.focus({ preventScroll: true });
    [shown, pressed] = [null, null];
  };

  // On a narrow screen the comparison opens below its row, elsewhere below the map.
  const attach = () => {
    const [i, j] = shown;
    if (pressed) pressed.ariaPressed = "false";
    pressed = rowOf(i, j);
    if (pressed) pressed.ariaPressed = "true";
    const parent = narrow.matches && pressed ? pressed.parentElement : stage;
    if (section.parentElement !== parent) parent.append(section);
    if (parent !== stage) pressed.scrollIntoView({ block: "nearest" });
  };
  narrow.addEventListener("change", () => { if (shown) attach(); });

  const show = async (i, j, how) => {
    const call = ++requests;
    shown = [i, j];
    page.map.setHover(-1);
    if (section.hidden) section.replaceChildren(element("header", {}, "Loading the explanation …"));
    section.hidden = false;
    attach();
    if (how.debounce) await pause(0.12);
    if (call !== requests) return;
    let elements;
    try {
      elements = contents(i, j, await request(`api/pairs/${i}/${j}`));
    } catch (error) {
      elements = [element("header", {}, button("close", "×", close, "Close comparison")), message("error", error.message)];
    }
    if (call !== requests) return;
    section.replaceChildren(...elements);
    attach(); // the lists may have been replaced in the meantime
    if (how.focus) section.focus({ preventScroll: true });
    if (narrow.matches && !how.first) pressed?.scrollIntoView({ block: "start" });
  };

  address.listeners.push((state, how) => {
    const i = page.names.number(state.id), j = page.names.number(state.with);
    if (i < 0 || j < 0) {
      requests++;
      hide();
    } else if (!shown || shown[0] !== i || shown[1] !== j) show(i, j, how);
    else if (how.focus) section.focus({ preventScroll: true });
  });

  return {
    get pair() { return shown; },
    attach() { if (shown) attach(); },
    // Show a new decision in the toolbar.
    update() { if (shown) section.querySelector(".decide")?.replaceWith(toolbar(...shown)); },
  };
};
