"use strict";
// The map: all vertices on one canvas, and the gestures and keys that move the view.

class NetworkMap {
  // network: as `makeNetwork` returns it; a colour is an index into `palette`, names of CSS variables
  constructor(canvas, network, { onHover, onSelect }) {
    this.canvas = canvas;
    this.network = network;
    this.onHover = onHover;
    this.onSelect = onSelect;
    this.width = network.x.reduce((a, b) => Math.max(a, b), 1);
    this.height = network.y.reduce((a, b) => Math.max(a, b), 1);
    this.selected = -1;
    this.hover = -1;
    this.highlighted = null; // Uint8Array: vertices to emphasise while the others fade
    this.partner = -1; // the other vertex of the compared pair
    this.newText = null; // {x, y, near}: position and nearest vertices of an embedded text
    this.palette = LABELS;
    const hash = (i) => Math.imul(i, 2654435761) >>> 0;
    this.order = [...network.x.keys()].sort((a, b) => hash(a) - hash(b)); // mixed: no label always covers another
    this.byDegree = [...this.order].sort((a, b) => network.degree[b] - network.degree[a]);
    this.readColours();
    new ResizeObserver(() => this.resize()).observe(canvas);
    theme.listeners.push(() => { this.readColours(); this.redraw(); });
    this.resize();
    this.addListeners();
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    this.colours = this.palette.map(read);
    for (const name of ["ink", "soft", "link", "accent", "surface"]) this[name] = read(`--${name}`);
    this.font = getComputedStyle(document.body).fontFamily;
  }

  resize() {
    const box = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    if (box.width === this.w && box.height === this.h && ratio === this.ratio) return;
    const untouched = this.fitScale === undefined || this.scale === this.fitScale;
    [this.w, this.h, this.ratio] = [box.width, box.height, ratio];
    this.canvas.width = Math.round(this.w * this.ratio);
    this.canvas.height = Math.round(this.h * this.ratio);
    this.fitScale = Math.max(1e-9, Math.min((this.w - 56) / this.width, (this.h - 56) / this.height));
    if (untouched) this.fit();
    this.draw(); // immediately: a resized canvas is blank
  }

  // colour[i] is an index into `palette`.
  setColours(colour, palette) {
    this.network.colour = colour;
    this.palette = palette;
    this.readColours();
    this.redraw();
  }

  fit() {
    this.animation = null;
    this.scale = this.fitScale;
    this.cx = this.width / 2;
    this.cy = this.height / 2;
    this.redraw();
  }

  toScreen({ x, y }) { return [(x - this.cx) * this.scale + this.w / 2, (y - this.cy) * this.scale + this.h / 2]; }
  screen(i) { return this.toScreen({ x: this.network.x[i], y: this.network.y[i] }); }

  // The vertex nearest to a point of the screen, at most `reach` pixels away, or -1.
  at(sx, sy, reach) {
    const { x, y } = this.network, cx = (sx - this.w / 2) / this.scale + this.cx, cy = (sy - this.h / 2) / this.scale + this.cy;
    let nearest = -1, closest = (reach / this.scale) ** 2;
    for (let i = 0; i < x.length; i++) { // less than a millisecond for 100,000 vertices
      const distance = (x[i] - cx) ** 2 + (y[i] - cy) ** 2;
      if (distance <= closest) { closest = distance; nearest = i; }
    }
    return nearest;
  }

  zoom(factor, sx = this.w / 2, sy = this.h / 2) {
    const before = this.scale;
    this.scale = clamp(before * factor, this.fitScale, this.fitScale * 250);
    const moved = 1 / before - 1 / this.scale;
    this.move((sx - this.w / 2) * moved * this.scale, (sy - this.h / 2) * moved * this.scale);
  }

  move(dx, dy) {
    this.animation = null;
    this.cx = clamp(this.cx + dx / this.scale, 0, this.width);
    this.cy = clamp(this.cy + dy / this.scale, 0, this.height);
    this.redraw();
  }

  // Bring a vertex and most of its neighbours into view, immediately or animated.
  showVertex(i, smoothly) {
    const { x, y } = this.network, near = [...this.network.neighbours(i), ...this.network.suggested(i).map((link) => link.number)];
    this.frame(x[i], y[i], near, smoothly);
  }

  frame(x, y, near, smoothly) {
    const apart = near.map((j) => Math.max(Math.abs(this.network.x[j] - x) / this.w, Math.abs(this.network.y[j] - y) / this.h)).sort((a, b) => a - b);
    const most = apart.length ? apart[Math.floor(0.75 * (apart.length - 1))] : 0;
    const scale = clamp(0.36 / Math.max(1e-9, most), this.fitScale * 1.8, this.fitScale * (apart.length ? 30 : 7));
    const from = [this.cx, this.cy, Math.log(this.scale)], to = [x, y, Math.log(scale)];
    const set = (share) => {
      const [cx, cy, logScale] = from.map((value, k) => value + (to[k] - value) * share);
      [this.cx, this.cy, this.scale] = [cx, cy, Math.exp(logScale)];
      this.redraw();
    };
    if (!smoothly || matchMedia("(prefers-reduced-motion: reduce)").matches) return set(1);
    const began = performance.now(), token = (this.animation = {});
    const step = (now) => {
      if (this.animation !== token) return;
      const t = clamp((now - began) / 350, 0, 1);
      set(t * t * (3 - 2 * t));
      if (t < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  highlight(mask) { this.highlighted = mask; this.redraw(); }
  select(i) { this.selected = i; this.partner = -1; this.redraw(); }
  setPartner(j) { this.partner = j; this.redraw(); }
  setNewText(newText) { this.newText = newText; this.redraw(); }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  draw() {
    const { order, highlighted } = this, context = this.canvas.getContext("2d"), focused = this.selected >= 0 || this.newText;
    const grown = (this.scale / this.fitScale) ** 0.4;
    const radius = clamp(clamp(165 / Math.sqrt(order.length), 1, 4.5) * grown, 1, 6.5);
    this.drawVertices(context, radius, focused || highlighted ? 0.22 : 1, focused ? 0.5 : 1);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const occupied = [], zoomedIn = this.scale >= this.fitScale * 1.8;
    if (focused) this.drawLinks(context, radius, occupied);
    else if (zoomedIn) this.drawNames(context, radius, occupied);
    else if (!highlighted) this.drawRegions(context, occupied);
    if (this.newText) this.drawNewText(context);
    if (this.hover >= 0) this.drawRing(context, this.hover, radius + 2.5);
  }

  // All vertices in one pass; highlighted ones a second time, on top.
  drawVertices(context, radius, opacity, highlightOpacity) {
    const { network, order, highlighted } = this, raster = new Raster(this.canvas.width, this.canvas.height, this.surface);
    // Vertices without links are smaller.
    const stamps = (share) => [network.degree[this.byDegree[0]] ? 0.72 : 1, 1].map((size) =>
      this.colours.map((colour) => raster.stamp(radius * size * this.ratio, radius > 1.5 ? 0.6 * this.ratio : 0, colour, share)));
    const scale = this.scale * this.ratio;
    const left = (this.w * this.ratio) / 2 - this.cx * scale, top = (this.h * this.ratio) / 2 - this.cy * scale;
    const put = (i, [small, large]) =>
      raster.put((network.degree[i] ? large : small)[network.colour[i]], network.x[i] * scale + left, network.y[i] * scale + top);
    const faded = stamps(opacity);
    for (let k = 0; k < order.length; k++) put(order[k], faded);
    if (highlighted) {
      const bright = stamps(highlightOpacity);
      for (let k = 0; k < order.length; k++) if (highlighted[order[k]]) put(order[k], bright);
    }
    raster.show(context);
  }

  circle(context, i, radius) {
    context.beginPath();
    context.arc(...this.screen(i), radius, 0, 2 * Math.PI);
  }

  drawRing(context, i, radius) {
    this.circle(context, i, radius);
    context.lineWidth = 1.6;
    context.strokeStyle = this.ink;
    context.stroke();
  }

  drawLines(context, [sx, sy], ends, { dashes = [], width = 1.2, alpha = 0.6, colour = this.link }) {
    context.beginPath();
    for (const j of ends) {
      context.moveTo(sx, sy);
      context.lineTo(...this.screen(j));
    }
    context.setLineDash(dashes);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.globalAlpha = alpha;
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  // The links of the selected vertex, or else of the embedded text, with the vertices at their ends.
  drawLinks(context, radius, occupied) {
    const i = this.selected, from = i >= 0 ? this.screen(i) : this.toScreen(this.newText), [sx, sy] = from;
    const links = i >= 0 ? this.network.neighbours(i) : [];
    const suggested = i >= 0 ? this.network.suggested(i).map((link) => link.number) : this.newText.near;
    const partner = this.partner >= 0 ? [this.partner] : [], marked = i >= 0 ? [i, ...partner] : [];
    this.drawLines(context, from, suggested, { dashes: [4, 4], width: 1, alpha: 0.65 });
    this.drawLines(context, from, links, {});
    this.drawLines(context, from, partner, { width: 2.6, alpha: 1, colour: this.accent });
    if (i < 0) occupied.push([sx - 12, sy - 12, sx + 12, sy + 12]);
    for (const j of [...suggested, ...links, ...marked]) {
      this.circle(context, j, radius);
      context.fillStyle = this.colours[this.network.colour[j]];
      context.fill();
      const [x, y] = this.screen(j);
      occupied.push([x - radius, y - radius, x + radius, y + radius]);
    }
    for (const j of marked) this.drawRing(context, j, radius + 2.5);
    for (const j of marked) this.drawName(context, j, radius, occupied, true);
    for (const j of [...links, ...suggested].slice(0, 40)) if (j !== this.partner) this.drawName(context, j, radius, occupied, false);
  }

  drawNewText(context) {
    const [sx, sy] = this.toScreen(this.newText), reach = 9;
    const diamond = new Path2D(`M ${sx} ${sy - reach} l ${reach} ${reach} l ${-reach} ${reach} l ${-reach} ${-reach} Z`);
    context.lineWidth = 4;
    context.strokeStyle = this.surface;
    context.stroke(diamond);
    context.fillStyle = this.accent;
    context.fill(diamond);
  }

  // Write an id beside its vertex unless it would cover something.
  drawName(context, i, radius, occupied, bold) {
    const [sx, sy] = this.screen(i);
    if (sx < 0 || sy < 0 || sx > this.w || sy > this.h) return false;
    const text = this.network.ids[i].length > 44 ? `${this.network.ids[i].slice(0, 42)}…` : this.network.ids[i];
    context.font = `${bold ? 600 : 400} ${bold ? 12.5 : 11.5}px ${this.font}`;
    const textWidth = context.measureText(text).width, gap = radius + 5, colour = bold ? this.ink : this.soft;
    const places = [[sx + gap, sy], [sx - gap - textWidth, sy], [sx - textWidth / 2, sy + gap + 6], [sx - textWidth / 2, sy - gap - 6]];
    return places.some(([left, middle]) => this.drawText(context, text, left, middle, textWidth, 14, colour, occupied));
  }

  drawText(context, text, left, middle, textWidth, textHeight, colour, occupied) {
    const box = [left - 3, middle - textHeight / 2, left + textWidth + 3, middle + textHeight / 2];
    if (box[0] < 0 || box[2] > this.w || box[1] < 0 || box[3] > this.h) return false;
    if (occupied.some((b) => box[0] < b[2] && box[2] > b[0] && box[1] < b[3] && box[3] > b[1])) return false;
    occupied.push(box);
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 3.5;
    context.strokeStyle = this.surface;
    context.strokeText(text, left, middle);
    context.fillStyle = colour;
    context.fillText(text, left, middle);
    return true;
  }

  // The names of the labels.
  drawRegions(context, occupied) {
    context.font = `600 13px ${this.font}`;
    for (const region of this.network.regions) {
      const textWidth = context.measureText(region.name).width;
      const [sx, sy] = this.toScreen(region);
      this.drawText(context, region.name, clamp(sx - textWidth / 2, 4, this.w - textWidth - 4), sy, textWidth, 18, this.ink, occupied);
    }
  }

  // The ids of the vertices with the highest degree, as many as fit into the view.
  drawNames(context, radius, occupied) {
    const limit = Math.round((this.w * this.h) / 14000);
    for (let k = 0, tried = 0; k < this.byDegree.length && occupied.length < limit && tried < 600; k++) {
      const i = this.byDegree[k];
      if (this.highlighted && !this.highlighted[i]) continue;
      const [sx, sy] = this.screen(i);
      if (sx < 0 || sy < 0 || sx > this.w || sy > this.h) continue;
      tried++;
      this.drawName(context, i, radius, occupied, false);
    }
  }

  setHover(i) {
    if (i === this.hover) return;
    this.hover = i;
    this.canvas.classList.toggle("over", i >= 0);
    this.onHover(i);
    this.redraw();
  }

  addListeners() {
    const canvas = this.canvas, fingers = new Map();
    let travelled = 0;
    const position = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, position(event));
      if (fingers.size === 1) travelled = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = position(event), before = fingers.get(event.pointerId);
      if (!before) return this.setHover(this.at(...now, 12));
      const moved = Math.hypot(now[0] - before[0], now[1] - before[1]);
      travelled += moved;
      if (travelled < 4) return;
      canvas.classList.add("dragging");
      this.setHover(-1);
      if (fingers.size === 2) {
        const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
        const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
        this.zoom(apart(now) / Math.max(1, apart(before)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      }
      this.move((before[0] - now[0]) / fingers.size, (before[1] - now[1]) / fingers.size);
      fingers.set(event.pointerId, now);
    });
    const lift = (event) => {
      if (fingers.delete(event.pointerId) && event.type === "pointerup" && travelled < 4 && fingers.size === 0) {
        this.onSelect(this.at(...position(event), 14));
      }
      canvas.classList.remove("dragging");
    };
    canvas.addEventListener("pointerup", lift);
    canvas.addEventListener("pointercancel", lift);
    canvas.addEventListener("pointerleave", () => this.setHover(-1));
    canvas.addEventListener("wheel", (event) => {
      // When the whole map is in view, scrolling down scrolls the page instead of zooming out.
      if (event.deltaY > 0 && this.scale <= this.fitScale) return;
      event.preventDefault();
      const step = event.deltaMode === 1 ? event.deltaY * 30 : event.deltaY;
      this.zoom(Math.exp(-clamp(step, -240, 240) * 0.0022), ...position(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    canvas.addEventListener("blur", () => this.setHover(-1));
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = Math.min(this.w, this.h) / 8;
    const keys = {
      ArrowLeft: () => this.move(-step, 0), ArrowRight: () => this.move(step, 0),
      ArrowUp: () => this.move(0, -step), ArrowDown: () => this.move(0, step),
      "+": () => this.zoom(1.4), "=": () => this.zoom(1.4), "-": () => this.zoom(1 / 1.4), 0: () => this.fit(),
      Enter: () => this.onSelect(this.hover >= 0 ? this.hover : this.at(this.w / 2, this.h / 2, this.w)),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    // After a key the vertex nearest to the centre is under the pointer.
    if (event.key !== "Enter") this.setHover(this.at(this.w / 2, this.h / 2, step));
  }
}
