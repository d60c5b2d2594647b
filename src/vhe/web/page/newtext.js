"use strict";
// A text that is not in the network: its place on the map and its likeliest links.

const openNewText = (page, isKnown) => {
  const { map } = page, form = byId("new-text"), words = byId("words"), nearest = byId("nearest"), submit = form.querySelector(".main");
  let located = null; // {x, y, near} of the text
  const show = (found) => {
    const links = found.nearest.filter(isKnown), near = links.map((link) => link.number);
    located = { x: found.x, y: found.y, near };
    map.select(-1);
    map.setNewText(located);
    map.frame(found.x, found.y, near, true);
    const [known, total] = [found.known, found.words].map((count) => count.toLocaleString("en"));
    nearest.replaceChildren(
      ...(found.known < found.words ? [message("note", `${known} of ${total} words are in the vocabulary.`)] : []),
      ...list("Likeliest links", "probability of a link", links.map((link) => page.probabilityRow(link,
        { title: `${link.text}\n\ncosine similarity ${link.similarity.toFixed(3)}` }))));
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!words.value.trim()) return words.focus();
    submit.disabled = true;
    nearest.replaceChildren(message("note", "Embedding the text …"));
    try {
      if (address.state.id) address.go({ id: null, with: null, tab: "text" });
      show(await send("POST", "api/texts", { text: words.value }));
    } catch (error) {
      nearest.replaceChildren(message("error", error.message));
    }
    submit.disabled = false;
    if (narrow.matches) nearest.scrollIntoView({ block: "nearest" });
  });
  form.addEventListener("reset", () => {
    located = null;
    nearest.replaceChildren();
    map.setNewText(null);
    words.focus();
  });
  // The list of missing links and the selections have the map for themselves.
  address.listeners.push(({ tab, id }) => map.setNewText(tab === "text" || (id && !tab) ? located : null));
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  addRowKeys(nearest);
};
