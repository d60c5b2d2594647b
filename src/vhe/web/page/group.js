"use strict";
// Several selected vertices: those inside a lasso and single ones, their neighbours, the shortest path between two,
// and tables of them. The address has the corners of the lasso, the ids of single vertices and the number of
// times that neighbours were added.

const MAX_ROWS = 200; // vertices in the list

// The selected vertices that an address describes, in increasing order.
const groupOf = (state, map, network, names) => {
  const corners = (state.lasso ?? "").split(",").map(Number);
  const found = new Set(corners.length >= 6 && corners.every(Number.isFinite) ? map.inside(corners) : []);
  for (const i of names.split(state.set)) found.add(i);
  for (let hop = 0; hop < clamp(Number(state.near) || 0, 0, 9); hop++) {
    for (const i of [...found]) for (const j of network.neighbours(i)) found.add(j);
  }
  return [...found].sort((a, b) => a - b);
};

// The path between the two vertices of a group, if the address asks for it; null if there is none.
const pathOf = (state, group, network) => (state.path && group.length === 2 ? shortestPath(network, ...group) : []);

const groupRecords = (data, network, numbers) => numbers.map((i) => ({
  id: data.ids[i],
  label: data.labels[data.label[i]] ?? null,
  degree: network.degree[i],
  ...(data.uncertainty ? { uncertainty: data.uncertainty[i] } : {}),
  text: data.texts[i],
}));

// A field that starts like a formula is text for spreadsheets, too.
const csvField = (value) => {
  const text = String(value ?? "").replace(/^[=+\-@\t\r]/, "'$&");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

const csv = (records) => [Object.keys(records[0]), ...records.map(Object.values)]
  .map((fields) => `${fields.map(csvField).join(",")}\r\n`).join("");

// The panel's content for a group; `row(i, number)` makes a row of a list.
const groupElements = (data, network, row, group, path) => {
  const inside = new Set(group), count = (many, one, several) => `${many.toLocaleString("en")} ${many === 1 ? one : several}`;
  const links = group.reduce((sum, i) => sum + network.neighbours(i).filter((j) => inside.has(j)).length, 0) / 2;
  const shown = path?.length ? path : group, records = () => groupRecords(data, network, shown);
  const clear = () => address.go({ set: null, lasso: null, near: null, path: null }, { focus: true });
  const onPath = Boolean(address.state.path) && group.length === 2;
  const facts = path?.length ? count(path.length - 1, "link", "links") : `${count(links, "link", "links")} inside`;
  const near = () => address.go({ near: String((Number(address.state.near) || 0) + 1), path: null, view: null }, { frame: true });
  return [
    button("close", "×", clear, "Clear selection"),
    element("h3", { tabIndex: -1, textContent: path?.length ? "Shortest path" : `${count(group.length, "vertex", "vertices")} selected` }),
    element("p", { className: "facts", textContent: path ? facts : "" }),
    ...(path ? [] : [message("error", "No path connects these two vertices.")]),
    ...(group.length < 2 ? [message("note", "Shift-click a point, drag a lasso, or choose “Add to selection” on the card of another vertex.")] : []),
    element("div", { className: "row", role: "group", ariaLabel: "Selection" },
      ...(group.length === 2 ? [button(onPath ? "main" : "", "Shortest path",
        () => address.go({ path: onPath ? null : "shortest", view: null }, { frame: true }))] : []),
      button("", "Add neighbours", near),
      button("", "CSV", () => download("vertices.csv", "text/csv", csv(records())), "Save as CSV"),
      button("", "JSON", () => download("vertices.json", "application/json", JSON.stringify(records(), null, 1)), "Save as JSON")),
    ...list(path?.length ? "Vertices of the path" : "Vertices", "links", shown.slice(0, MAX_ROWS).map((i) => row(i, network.degree[i]))),
    ...(shown.length > MAX_ROWS ? [message("note", `The first ${MAX_ROWS} are listed; exported tables contain all.`)] : []),
  ];
};
