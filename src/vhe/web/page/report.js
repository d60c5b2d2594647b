"use strict";
// The report: all data are in the page.

const data = JSON.parse(byId("network").textContent);
const network = makeNetwork(data);
const lowerIds = data.ids.map((id) => id.toLowerCase());

// Ids that contain the query, ranked as `Explorer.search` ranks them.
const searchIds = (words) => {
  const query = words.toLowerCase(), ranked = [];
  lowerIds.forEach((id, i) => {
    const last = id.slice(id.lastIndexOf(".") + 1);
    const ranks = [id === query, last === query, last.startsWith(query), id.startsWith(query), id.includes(query)];
    if (ranks.includes(true)) ranked.push([ranks.indexOf(true), i]);
  });
  ranked.sort((a, b) => a[0] - b[0] || network.degree[b[1]] - network.degree[a[1]] || a[1] - b[1]);
  const numbers = ranked.map(([, i]) => i);
  return { numbers, shown: numbers.slice(0, 8).map((number) => ({ number })) };
};

const { map } = openPage(data, network, {
  readVertex: (i) => ({ text: data.texts[i], suggestions: network.suggested(i) }),
  search: searchIds,
});
address.start();
