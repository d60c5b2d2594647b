"use strict";
// The search box: a list of matches below a text field.

// `search(query)` returns matches [{number, name, text}] or a promise of them, null if cancelled;
// `select(number)` is called for the chosen match, `close()` when the list is closed.
const searchBox = (query, found, { search, select, close }) => {
  let matches = [], marked = -1, requests = 0;
  const mark = (k) => {
    marked = k;
    [...found.children].forEach((item, j) => { item.ariaSelected = String(j === k); });
    if (k < 0) return query.removeAttribute("aria-activedescendant");
    query.setAttribute("aria-activedescendant", `match${k}`);
    found.children[k].scrollIntoView({ block: "nearest" });
  };
  const setOpen = (open) => {
    found.hidden = !open;
    query.ariaExpanded = String(open);
  };
  const clear = () => {
    query.value = "";
    requests++;
    matches = [];
    setOpen(false);
    mark(-1);
    close();
  };
  const choose = (k) => {
    const { number } = matches[k];
    clear();
    select(number);
  };
  const update = async () => {
    const words = query.value.trim(), request = ++requests;
    if (!words) return clear();
    const answer = await search(words);
    if (request !== requests || !answer) return;
    matches = answer;
    found.replaceChildren(...matches.map(({ name, text }, k) => {
      const item = element("li", { id: `match${k}`, role: "option" }, idElement("span", "name", name));
      if (text) item.append(element("small", { textContent: text }));
      item.onmousedown = (event) => { event.preventDefault(); choose(k); };
      return item;
    }));
    if (!matches.length) found.append(element("li", { className: "none", textContent: "No matches" }));
    setOpen(true);
    mark(matches.length ? 0 : -1);
  };
  query.oninput = query.onfocus = update;
  query.onblur = () => setOpen(false);
  query.onkeydown = (event) => {
    if (event.key === "Enter" && marked >= 0) choose(marked);
    else if (event.key === "ArrowDown" && matches.length) mark((marked + 1) % matches.length);
    else if (event.key === "ArrowUp" && matches.length) mark((marked + matches.length - 1) % matches.length);
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || (isTyping(event) && !event.target.matches("select"))) return;
    event.preventDefault();
    query.focus();
  });
  return { clear };
};
