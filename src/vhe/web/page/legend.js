"use strict";
// The legend: one button per label, which highlights its vertices.

// Returns a function that resets the legend.
const buildLegend = (legend, map, labels, colours) => {
  let pinned = null; // the pressed button
  const show = (entry) => map.highlight(entry && Uint8Array.from(colours, (colour) => colour === Number(entry.value)));
  const pin = (entry) => {
    if (pinned) pinned.ariaPressed = "false";
    if (entry) entry.ariaPressed = "true";
    pinned = entry;
    show(pinned);
  };
  const entry = (name, colour) => {
    const count = colours.filter((other) => other === colour).length.toLocaleString("en");
    const made = element("button", { type: "button", value: colour, title: name, ariaPressed: "false" }, dot(LABELS[colour]),
      element("span", { textContent: name }), element("span", { textContent: count }));
    made.onmouseenter = () => show(made);
    made.onmouseleave = () => show(pinned);
    made.onclick = () => pin(pinned === made ? null : made);
    return made;
  };
  const others = labels.length - REST, rest = others > 0 ? `${others} more` : "no label";
  const entries = labels.slice(0, REST).map(entry);
  legend.replaceChildren(...entries, ...(labels.length && colours.includes(REST) ? [entry(rest, REST)] : []));
  return () => pin(null);
};
