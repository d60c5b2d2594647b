"use strict";
// Pointers, wheel and keys on the map: move, zoom, select, and the lasso that selects several vertices.

const MAX_CORNERS = 60; // of a lasso, which is part of the address

const addGestures = (map) => {
  const { canvas } = map, fingers = new Map();
  let travelled = 0;
  const position = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const adds = (event) => event.shiftKey || event.ctrlKey || event.metaKey || map.lassoMode;

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, position(event));
    if (fingers.size === 1) travelled = 0;
    map.setLasso(fingers.size === 1 && (event.shiftKey || map.lassoMode) ? [position(event)] : null);
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = position(event), before = fingers.get(event.pointerId);
    if (!before) return map.setHover(map.at(...now, 12));
    travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (travelled < 4) return;
    fingers.set(event.pointerId, now);
    map.setHover(-1);
    if (map.lasso) return map.setLasso([...map.lasso, now]);
    canvas.classList.add("dragging");
    if (fingers.size === 2) {
      const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
      const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
      map.zoom(apart(now) / Math.max(1, apart(before)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    }
    map.move((before[0] - now[0]) / fingers.size, (before[1] - now[1]) / fingers.size);
  });
  const lift = (event) => {
    const polygon = map.lasso, last = fingers.delete(event.pointerId) && event.type === "pointerup" && fingers.size === 0;
    map.setLasso(null);
    canvas.classList.remove("dragging");
    if (last && travelled < 4) map.onSelect(map.at(...position(event), 14), adds(event));
    else if (last && polygon) {
      const every = Math.ceil(polygon.length / MAX_CORNERS);
      map.onLasso(polygon.filter((_, k) => k % every === 0).flatMap((point) => map.toMap(point).map(Math.round)));
    }
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => map.setHover(-1));
  canvas.addEventListener("wheel", (event) => {
    // When the whole map is in view, scrolling down scrolls the page instead of zooming out.
    if (event.deltaY > 0 && map.scale <= map.fitScale) return;
    event.preventDefault();
    const step = event.deltaMode === 1 ? event.deltaY * 30 : event.deltaY;
    map.zoom(Math.exp(-clamp(step, -240, 240) * 0.0022), ...position(event));
  }, { passive: false });
  canvas.addEventListener("blur", () => map.setHover(-1));

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = Math.min(map.w, map.h) / 8;
    const keys = {
      ArrowLeft: () => map.move(-step, 0), ArrowRight: () => map.move(step, 0),
      ArrowUp: () => map.move(0, -step), ArrowDown: () => map.move(0, step),
      Enter: () => map.onSelect(map.hover >= 0 ? map.hover : map.at(map.w / 2, map.h / 2, map.w), adds(event)),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    // After a key the vertex nearest to the centre is under the pointer.
    if (event.key !== "Enter") map.setHover(map.at(map.w / 2, map.h / 2, step));
  });
  document.addEventListener("keydown", (event) => {
    const factor = { "+": 1.4, "=": 1.4, "-": 1 / 1.4 }[event.key];
    if (isTyping(event)) return;
    if (factor) map.zoom(factor);
    else if (event.key === "0") map.fit();
  });
};

// The buttons on the map. `onEdges(shown)` is called when the button for all links is pressed.
const addMapButtons = (map, onEdges) => {
  const actions = { in: () => map.zoom(1.6), out: () => map.zoom(1 / 1.6), fit: () => map.fit() };
  for (const zoom of document.querySelectorAll("[data-zoom]")) zoom.onclick = actions[zoom.dataset.zoom];
  const lasso = byId("lasso"), edges = byId("edges");
  lasso.onclick = () => {
    map.lassoMode = !map.lassoMode;
    lasso.ariaPressed = String(map.lassoMode);
    map.canvas.classList.toggle("lasso", map.lassoMode);
  };
  edges.onclick = () => onEdges(edges.ariaPressed !== "true");
};
