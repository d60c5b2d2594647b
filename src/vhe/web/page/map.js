"use strict";
// The map: every vertex drawn in one pass on a canvas, a grid to find the one under the pointer,
// and the gestures and keys that move the view. It knows nothing of the panel beside it.

class NetworkMap {
  // network: {ids, x, y, colour, degree, linked, neighbours(i), suggested(i), regions}; a colour is a
  // place in `palette`, the names of custom properties of the page
  constructor(canvas, network, { hovered, chosen }) {
    this.canvas = canvas;
    this.network = network;
    this.hovered = hovered;
    this.chosen = chosen;
    this.width = network.x.reduce((a, b) => Math.max(a, b), 1);
    this.height = network.y.reduce((a, b) => Math.max(a, b), 1);
    this.grid = new Grid(network.x, network.y, this.width, this.height);
    this.selected = -1;
    this.hover = -1;
    this.lit = null; // a Uint8Array over the vertices: those to show while the others fade
    this.partner = -1; // the other end of the pair that is looked at
    this.guest = null; // {x, y, near}: where a text that is no vertex lands, and its likely links
    this.palette = LABELS;
    this.order = this.shuffled(); // so that no label always covers another
    this.byDegree = Array.from(this.order).sort((a, b) => network.degree[b] - network.degree[a]);
    this.readColours();
    new ResizeObserver(() => this.resize()).observe(canvas);
    theme.listeners.push(() => { this.readColours(); this.redraw(); });
    this.resize();
    this.listen();
  }

  shuffled() {
    const order = Int32Array.from(this.network.x, (_, i) => i);
    let state = 1;
    for (let i = order.length - 1; i > 0; i--) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const j = Math.floor((state / 4294967296) * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    return order;
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    this.colours = this.palette.map(read);
    this.ink = read("--ink");
    this.soft = read("--soft");
    this.link = read("--link");
    this.accent = read("--accent");
    this.surface = read("--surface");
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
    this.draw(); // at once: a canvas that changes its size is blank
  }

  // Colour every vertex anew: colour[i] is a place in `palette`.
  paint(colour, palette) {
    this.network.colour = colour;
    this.palette = palette;
    this.readColours();
    this.redraw();
  }

  fit() {
    this.gliding = null;
    this.scale = this.fitScale;
    this.cx = this.width / 2;
    this.cy = this.height / 2;
    this.redraw();
  }

  screenX(i) { return (this.network.x[i] - this.cx) * this.scale + this.w / 2; }
  screenY(i) { return (this.network.y[i] - this.cy) * this.scale + this.h / 2; }

  at(sx, sy, reach) {
    const x = (sx - this.w / 2) / this.scale + this.cx, y = (sy - this.h / 2) / this.scale + this.cy;
    return this.grid.nearest(x, y, reach / this.scale);
  }

  zoom(factor, sx = this.w / 2, sy = this.h / 2) {
    const before = this.scale;
    this.scale = clamp(before * factor, this.fitScale, this.fitScale * 250);
    const moved = 1 / before - 1 / this.scale;
    this.move((sx - this.w / 2) * moved * this.scale, (sy - this.h / 2) * moved * this.scale);
  }

  move(dx, dy) {
    this.gliding = null;
    this.cx = clamp(this.cx + dx / this.scale, 0, this.width);
    this.cy = clamp(this.cy + dy / this.scale, 0, this.height);
    this.redraw();
  }

  // Bring a vertex and most of what it is linked with into view, at once or gliding there.
  show(i, smoothly) {
    const { x, y } = this.network, near = [...this.network.neighbours(i), ...this.network.suggested(i).map((link) => link.to)];
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
    const began = performance.now(), token = (this.gliding = {});
    const step = (now) => {
      if (this.gliding !== token) return;
      const t = clamp((now - began) / 350, 0, 1);
      set(t * t * (3 - 2 * t));
      if (t < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  light(mask) { this.lit = mask; this.redraw(); }
  select(i) { this.selected = i; this.partner = -1; this.redraw(); }
  pair(j) { this.partner = j; this.redraw(); }
  welcome(guest) { this.guest = guest; this.redraw(); }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  draw() {
    const { order, lit } = this, pen = this.canvas.getContext("2d"), chosen = this.selected >= 0 || this.guest;
    const grown = (this.scale / this.fitScale) ** 0.4;
    const radius = clamp(clamp(165 / Math.sqrt(order.length), 1, 4.5) * grown, 1, 6.5);
    this.drawVertices(pen, radius, chosen || lit ? 0.22 : 1, chosen ? 0.5 : 1);
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const taken = [], near = this.scale >= this.fitScale * 1.8;
    if (this.selected >= 0) this.drawLinks(pen, radius, taken);
    else if (this.guest) this.drawGuestLinks(pen, radius, taken);
    else if (near) this.drawNames(pen, radius, taken);
    else if (!lit) this.drawRegions(pen, taken);
    if (this.guest) this.drawGuest(pen);
    if (this.hover >= 0) this.ring(pen, this.hover, radius + 2.5);
  }

  // Everything once, in one pass; what is lit a second time, so that it lies on top.
  drawVertices(pen, radius, strength, litStrength) {
    const { network, order, lit } = this, raster = new Raster(this.canvas.width, this.canvas.height, this.surface);
    // A vertex without a link is drawn smaller.
    const stamps = (share) => [network.linked ? 0.72 : 1, 1].map((size) =>
      this.colours.map((colour) => raster.stamp(radius * size * this.ratio, radius > 1.5 ? 0.6 * this.ratio : 0, colour, share)));
    const scale = this.scale * this.ratio;
    const left = (this.w * this.ratio) / 2 - this.cx * scale, top = (this.h * this.ratio) / 2 - this.cy * scale;
    const put = (i, [small, large]) =>
      raster.put((network.degree[i] ? large : small)[network.colour[i]], network.x[i] * scale + left, network.y[i] * scale + top);
    const faded = stamps(strength);
    for (let k = 0; k < order.length; k++) put(order[k], faded);
    if (lit) {
      const bright = stamps(litStrength);
      for (let k = 0; k < order.length; k++) if (lit[order[k]]) put(order[k], bright);
    }
    raster.show(pen);
  }

  disc(pen, i, radius) {
    pen.beginPath();
    pen.arc(this.screenX(i), this.screenY(i), radius, 0, 2 * Math.PI);
    pen.fillStyle = this.colours[this.network.colour[i]];
    pen.fill();
  }

  around(i, radius) {
    const sx = this.screenX(i), sy = this.screenY(i);
    return [sx - radius, sy - radius, sx + radius, sy + radius];
  }

  ring(pen, i, radius) {
    pen.beginPath();
    pen.arc(this.screenX(i), this.screenY(i), radius, 0, 2 * Math.PI);
    pen.lineWidth = 1.6;
    pen.strokeStyle = this.ink;
    pen.stroke();
  }

  rays(pen, sx, sy, ends, { dashes = [], width = 1.2, alpha = 0.6, colour = this.link }) {
    pen.beginPath();
    for (const j of ends) {
      pen.moveTo(sx, sy);
      pen.lineTo(this.screenX(j), this.screenY(j));
    }
    pen.setLineDash(dashes);
    pen.lineWidth = width;
    pen.strokeStyle = colour;
    pen.globalAlpha = alpha;
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  drawLinks(pen, radius, taken) {
    const i = this.selected, links = this.network.neighbours(i), likely = this.network.suggested(i).map((link) => link.to);
    const from = [this.screenX(i), this.screenY(i)], partner = this.partner >= 0 ? [this.partner] : [];
    this.rays(pen, ...from, likely, { dashes: [4, 4], width: 1, alpha: 0.65 });
    this.rays(pen, ...from, links, {});
    this.rays(pen, ...from, partner, { width: 2.6, alpha: 1, colour: this.accent });
    for (const j of [...likely, ...links, ...partner, i]) this.disc(pen, j, radius);
    for (const j of [i, ...partner]) this.ring(pen, j, radius + 2.5);
    for (const j of [...likely, ...links, ...partner, i]) taken.push(this.around(j, radius));
    for (const j of [i, ...partner]) this.name(pen, j, radius, taken, true);
    for (const j of [...links, ...likely].slice(0, 40)) if (j !== this.partner) this.name(pen, j, radius, taken, false);
  }

  guestAt() {
    return [(this.guest.x - this.cx) * this.scale + this.w / 2, (this.guest.y - this.cy) * this.scale + this.h / 2];
  }

  drawGuestLinks(pen, radius, taken) {
    const [sx, sy] = this.guestAt();
    taken.push([sx - 12, sy - 12, sx + 12, sy + 12]);
    this.rays(pen, sx, sy, this.guest.near, { dashes: [4, 4], width: 1, alpha: 0.65 });
    for (const j of this.guest.near) {
      this.disc(pen, j, radius);
      taken.push(this.around(j, radius));
    }
    for (const j of this.guest.near) this.name(pen, j, radius, taken, false);
  }

  drawGuest(pen) {
    const [sx, sy] = this.guestAt(), reach = 9;
    pen.beginPath();
    pen.moveTo(sx, sy - reach);
    pen.lineTo(sx + reach, sy);
    pen.lineTo(sx, sy + reach);
    pen.lineTo(sx - reach, sy);
    pen.closePath();
    pen.lineWidth = 4;
    pen.strokeStyle = this.surface;
    pen.stroke();
    pen.fillStyle = this.accent;
    pen.fill();
  }

  // Write an id beside its vertex unless it would cover another one.
  name(pen, i, radius, taken, bold) {
    const sx = this.screenX(i), sy = this.screenY(i);
    if (sx < 0 || sy < 0 || sx > this.w || sy > this.h) return false;
    const text = this.network.ids[i].length > 44 ? `${this.network.ids[i].slice(0, 42)}…` : this.network.ids[i];
    pen.font = `${bold ? 600 : 400} ${bold ? 12.5 : 11.5}px ${this.font}`;
    const wide = pen.measureText(text).width, gap = radius + 5, colour = bold ? this.ink : this.soft;
    const places = [[sx + gap, sy], [sx - gap - wide, sy], [sx - wide / 2, sy + gap + 6], [sx - wide / 2, sy - gap - 6]];
    return places.some(([left, middle]) => this.write(pen, text, left, middle, wide, 14, colour, taken));
  }

  write(pen, text, left, middle, wide, high, colour, taken) {
    const box = [left - 3, middle - high / 2, left + wide + 3, middle + high / 2];
    if (box[0] < 0 || box[2] > this.w || box[1] < 0 || box[3] > this.h) return false;
    if (taken.some((b) => box[0] < b[2] && box[2] > b[0] && box[1] < b[3] && box[3] > b[1])) return false;
    taken.push(box);
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    pen.lineWidth = 3.5;
    pen.strokeStyle = this.surface;
    pen.strokeText(text, left, middle);
    pen.fillStyle = colour;
    pen.fillText(text, left, middle);
    return true;
  }

  // The names of the labels, each where it is densest.
  drawRegions(pen, taken) {
    pen.font = `600 13px ${this.font}`;
    for (const region of this.network.regions) {
      const wide = pen.measureText(region.name).width;
      const sx = (region.x - this.cx) * this.scale + this.w / 2, sy = (region.y - this.cy) * this.scale + this.h / 2;
      this.write(pen, region.name, clamp(sx - wide / 2, 4, this.w - wide - 4), sy, wide, 18, this.ink, taken);
    }
  }

  // The names of the vertices of most links, as many as the view has room for.
  drawNames(pen, radius, taken) {
    const room = Math.round((this.w * this.h) / 14000);
    for (let k = 0, tried = 0; k < this.byDegree.length && taken.length < room && tried < 600; k++) {
      const i = this.byDegree[k];
      if (this.lit && !this.lit[i]) continue;
      const sx = this.screenX(i), sy = this.screenY(i);
      if (sx < 0 || sy < 0 || sx > this.w || sy > this.h) continue;
      tried++;
      this.name(pen, i, radius, taken, false);
    }
  }

  point(i) {
    if (i === this.hover) return;
    this.hover = i;
    this.canvas.classList.toggle("over", i >= 0);
    this.hovered(i);
    this.redraw();
  }

  listen() {
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
      if (!before) return this.point(this.at(...now, 12));
      const moved = Math.hypot(now[0] - before[0], now[1] - before[1]);
      travelled += moved;
      if (travelled < 4) return;
      canvas.classList.add("dragging");
      this.point(-1);
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
        this.chosen(this.at(...position(event), 14));
      }
      canvas.classList.remove("dragging");
    };
    canvas.addEventListener("pointerup", lift);
    canvas.addEventListener("pointercancel", lift);
    canvas.addEventListener("pointerleave", () => this.point(-1));
    canvas.addEventListener("wheel", (event) => {
      // With everything in view a wheel that zooms out scrolls the page, so that nobody is caught here.
      if (event.deltaY > 0 && this.scale <= this.fitScale) return;
      event.preventDefault();
      const step = event.deltaMode === 1 ? event.deltaY * 30 : event.deltaY;
      this.zoom(Math.exp(-clamp(step, -240, 240) * 0.0022), ...position(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.point(-1));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = Math.min(this.w, this.h) / 8;
    const keys = {
      ArrowLeft: () => this.move(-step, 0), ArrowRight: () => this.move(step, 0),
      ArrowUp: () => this.move(0, -step), ArrowDown: () => this.move(0, step),
      "+": () => this.zoom(1.4), "=": () => this.zoom(1.4), "-": () => this.zoom(1 / 1.4), 0: () => this.fit(),
      Enter: () => this.chosen(this.hover >= 0 ? this.hover : this.at(this.w / 2, this.h / 2, this.w)),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    // Keys move the view, so what they point at is the vertex nearest to the middle.
    if (event.key !== "Enter") this.point(this.at(this.w / 2, this.h / 2, step));
  }
}
