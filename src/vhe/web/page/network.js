"use strict";
// The network from the JSON data of a page.

const REST = 12; // the colour index of vertices without a coloured label
const LABELS = [...Array(REST).keys()].map((k) => `--c${k}`).concat("--rest"); // CSS variables

const makeNetwork = (data) => {
  const neighbours = data.ids.map(() => []), suggested = data.ids.map(() => []);
  for (let k = 0; k < data.links.length; k++) neighbours[data.links[k]].push(data.links[k ^ 1]); // k ^ 1: the other end
  for (let k = 0; k < data.suggested.length; k++) {
    suggested[data.suggested[k]].push({ number: data.suggested[k ^ 1], probability: data.probability[k >> 1] });
  }
  for (const links of suggested) links.sort((a, b) => b.probability - a.probability);
  return {
    ids: data.ids,
    x: Float32Array.from(data.x),
    y: Float32Array.from(data.y),
    colour: Uint8Array.from(data.label, (k) => (k < 0 || k >= REST ? REST : k)),
    degree: neighbours.map((ends) => ends.length),
    regions: data.regions,
    links: data.links,
    neighbours: (i) => neighbours[i],
    suggested: (i) => suggested[i],
  };
};

// A shortest path between two vertices by breadth-first search, both included; null if there is none.
const shortestPath = (network, from, to) => {
  const before = new Map([[from, -1]]);
  for (let front = [from]; front.length && !before.has(to);) {
    const next = [];
    for (const i of front) {
      for (const j of network.neighbours(i)) {
        if (before.has(j)) continue;
        before.set(j, i);
        next.push(j);
      }
    }
    front = next;
  }
  if (!before.has(to)) return null;
  const path = [];
  for (let i = to; i >= 0; i = before.get(i)) path.unshift(i);
  return path;
};
