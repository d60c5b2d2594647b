"use strict";
// The network as typed arrays, from the JSON data of a page.

const REST = 12; // the colour index of vertices without a coloured label
const LABELS = [...Array(REST).keys()].map((k) => `--c${k}`).concat("--rest"); // CSS variables

// Adjacency lists in compressed form: the neighbours of i are ends[first[i]] to ends[first[i + 1] - 1],
// and `pair` is the index of the corresponding pair.
const adjacency = (pairs, count) => {
  const first = new Int32Array(count + 1), ends = new Int32Array(pairs.length), pair = new Int32Array(pairs.length);
  for (const i of pairs) first[i + 1]++;
  for (let i = 0; i < count; i++) first[i + 1] += first[i];
  const next = first.slice();
  for (let k = 0; k < pairs.length; k++) {
    ends[next[pairs[k]]] = pairs[k ^ 1];
    pair[next[pairs[k]]++] = k >> 1;
  }
  return { first, ends, pair };
};

const makeNetwork = (data) => {
  const count = data.ids.length;
  const links = adjacency(data.links, count), suggested = adjacency(data.suggested, count);
  return {
    ids: data.ids,
    x: Float32Array.from(data.x),
    y: Float32Array.from(data.y),
    colour: Uint8Array.from(data.label, (k) => (k < 0 || k >= REST ? REST : k)),
    degree: Int32Array.from(data.ids, (_, i) => links.first[i + 1] - links.first[i]),
    linked: data.links.length > 0,
    regions: data.regions,
    neighbours: (i) => Array.from(links.ends.subarray(links.first[i], links.first[i + 1])),
    suggested(i) {
      const found = [];
      for (let k = suggested.first[i]; k < suggested.first[i + 1]; k++) {
        found.push({ number: suggested.ends[k], probability: data.probability[suggested.pair[k]] });
      }
      return found.sort((a, b) => b.probability - a.probability);
    },
  };
};
