"use strict";
// Decisions on suggested links: accept, reject, postpone, undo. Each is saved by the server before it is shown.

const DECISIONS = { // the state by key of the keyboard, and how it is written
  a: { state: "accepted", verb: "Accept", sign: "✓" },
  r: { state: "rejected", verb: "Reject", sign: "✕" },
  " ": { state: "postponed", verb: "Postpone", sign: "…" },
};
const keyName = (key) => (key === " " ? "space" : key);
const signOf = (state) => Object.values(DECISIONS).find((decision) => decision.state === state)?.sign ?? "";
const stateElement = (state) => element("span", { className: `state ${state}`, title: state === "open" ? "" : state },
  signOf(state), element("span", { className: "hidden", textContent: state === "open" ? "" : ` ${state}` }));
const pairKey = (i, j) => (i < j ? `${i} ${j}` : `${j} ${i}`);

// `current()` returns the pair [i, j] that keys and buttons decide on, or null;
// `isActive(event)` whether a key press is for it. `onChange(i, j, state, undone)` is called after each decision.
const makeDecisions = (data, { current, isActive, onChange }) => {
  const states = new Map(), made = []; // states by pair; decisions of this visit as [i, j, state before]
  const status = byId("status");
  const stateOf = (i, j) => states.get(pairKey(i, j)) ?? "open";
  const remember = (i, j, state) => states.set(pairKey(i, j), state);

  const save = async (i, j, state, undone) => {
    const path = `api/decisions/${i}/${j}`, { numbering } = data; // the server refuses numbers of an earlier network
    try {
      await (state === "open" ? send("DELETE", `${path}?numbering=${numbering}`) : send("PUT", path, { state, numbering }));
    } catch (error) {
      showError(`Not saved: ${error.message}`);
      return false;
    }
    remember(i, j, state);
    const said = undone ? "Undone" : state[0].toUpperCase() + state.slice(1);
    status.replaceChildren(element("strong", { textContent: `${said}: ` }), `${data.ids[i]} – ${data.ids[j]}`);
    onChange(i, j, state, undone);
    return true;
  };

  const decide = async (state) => {
    const pair = current();
    if (!pair) return;
    const before = stateOf(...pair);
    if (before === state) return onChange(...pair, state, false);
    if (await save(...pair, state, false)) made.push([...pair, before]);
  };

  const undo = async () => {
    const last = made.at(-1);
    if (last) {
      if (await save(...last, true)) made.pop();
      return;
    }
    const pair = current(); // a decision of an earlier visit
    if (pair && stateOf(...pair) !== "open") await save(...pair, "open", true);
    else status.textContent = "No decision to undo.";
  };

  // One at a time: a key that is pressed again waits for the answer of the server.
  let queue = Promise.resolve();
  const enqueue = (action) => { queue = queue.then(action); };

  document.addEventListener("keydown", (event) => {
    if (isTyping(event) || event.repeat || !isActive(event)) return;
    if (event.key === "u") enqueue(undo);
    else if (DECISIONS[event.key]) enqueue(() => decide(DECISIONS[event.key].state));
    else return;
    event.preventDefault();
  });

  const decisionButton = (key, label, pressed, onclick) => element("button", { type: "button", onclick, ariaPressed: pressed, ariaKeyShortcuts: keyName(key) },
    label, element("kbd", { textContent: keyName(key), ariaHidden: "true" }));
  const toolbar = (i, j) => element("div", { className: "decide", role: "group", ariaLabel: "Decision" },
    ...Object.entries(DECISIONS).map(([key, { state, verb }]) =>
      decisionButton(key, verb, String(stateOf(i, j) === state), () => enqueue(() => decide(state)))),
    decisionButton("u", "Undo", null, () => enqueue(undo)));

  return { stateOf, remember, toolbar };
};
