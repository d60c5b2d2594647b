"use strict";
// The part of the map that is in view: its centre and scale, and conversions between map and screen.

const MAX_ZOOM = 250;

class MapView {
  // x, y: coordinates of the vertices; redraw(): called after each change
  constructor(canvas, x, y) {
    this.canvas = canvas;
    this.byUser = false; // whether the user has moved the view, rather than the page
    this.setCoordinates(x, y);
  }

  setCoordinates(x, y) {
    [this.x, this.y] = [x, y];
    this.width = x.reduce((a, b) => Math.max(a, b), 0);
    this.height = y.reduce((a, b) => Math.max(a, b), 0);
  }

  // Adapt to the size of the canvas; returns whether it has changed.
  measure() {
    const box = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    if (box.width === this.w && box.height === this.h && ratio === this.ratio) return false;
    [this.w, this.h, this.ratio] = [box.width, box.height, ratio];
    this.canvas.width = Math.round(this.w * this.ratio);
    this.canvas.height = Math.round(this.h * this.ratio);
    const untouched = this.fitScale === undefined || this.scale === this.fitScale;
    this.fitScale = Math.max(1e-9, Math.min((this.w - 56) / Math.max(1, this.width), (this.h - 56) / Math.max(1, this.height)));
    if (untouched) this.fit();
    else if (!this.byUser) this.reframe?.(); // what was brought into view stays in view
    return true;
  }

  fit() {
    this.animation = this.reframe = null;
    this.scale = this.fitScale;
    this.cx = this.width / 2;
    this.cy = this.height / 2;
    this.byUser = true;
    this.redraw();
  }

  // Centre and zoom as text, null if the whole map is shown. The zoom is relative to the width of the canvas, because
  // its height changes when a comparison opens.
  get place() {
    if (this.scale === this.fitScale && this.cx === this.width / 2 && this.cy === this.height / 2) return null;
    return `${Math.round(this.cx)},${Math.round(this.cy)},${((this.scale * Math.max(1, this.width)) / this.w).toPrecision(4)}`;
  }

  set place(text) {
    const [cx, cy, zoom] = (text ?? "").split(",").map(Number);
    this.fit();
    if (cx >= 0 && cy >= 0 && zoom > 0) {
      this.scale = clamp((zoom * this.w) / Math.max(1, this.width), this.fitScale, this.fitScale * MAX_ZOOM);
      [this.cx, this.cy] = [Math.min(cx, this.width), Math.min(cy, this.height)];
    }
    this.byUser = false;
  }

  toScreen({ x, y }) { return [(x - this.cx) * this.scale + this.w / 2, (y - this.cy) * this.scale + this.h / 2]; }
  screen(i) { return this.toScreen({ x: this.x[i], y: this.y[i] }); }
  toMap([sx, sy]) { return [(sx - this.w / 2) / this.scale + this.cx, (sy - this.h / 2) / this.scale + this.cy]; }

  // The vertex nearest to a point of the screen, at most `reach` pixels away, or -1.
  at(sx, sy, reach) {
    const { x, y } = this, [cx, cy] = this.toMap([sx, sy]);
    let nearest = -1, closest = (reach / this.scale) ** 2;
    for (let i = 0; i < x.length; i++) { // less than a millisecond for 100,000 vertices
      const distance = (x[i] - cx) ** 2 + (y[i] - cy) ** 2;
      if (distance <= closest) { closest = distance; nearest = i; }
    }
    return nearest;
  }

  // The vertices inside a polygon of points of the map, [x, y, x, y, ...] (even-odd rule).
  inside(corners) {
    const found = [], count = corners.length >> 1;
    for (let i = 0; i < this.x.length; i++) {
      const x = this.x[i], y = this.y[i];
      let odd = false;
      for (let k = 0, j = count - 1; k < count; j = k++) {
        const ax = corners[2 * k], ay = corners[2 * k + 1], bx = corners[2 * j], by = corners[2 * j + 1];
        if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
      }
      if (odd) found.push(i);
    }
    return found;
  }

  zoom(factor, sx = this.w / 2, sy = this.h / 2) {
    const before = this.scale;
    this.scale = clamp(before * factor, this.fitScale, this.fitScale * MAX_ZOOM);
    const moved = 1 / before - 1 / this.scale;
    this.move((sx - this.w / 2) * moved * this.scale, (sy - this.h / 2) * moved * this.scale);
  }

  move(dx, dy) {
    this.animation = null;
    this.cx = clamp(this.cx + dx / this.scale, 0, this.width);
    this.cy = clamp(this.cy + dy / this.scale, 0, this.height);
    this.byUser = true;
    this.redraw();
  }

  // Bring a point and most of the vertices in `near` into view, immediately or animated.
  frame(x, y, near, smoothly) {
    this.reframe = () => this.frame(x, y, near, false);
    const apart = near.map((j) => Math.max(Math.abs(this.x[j] - x) / this.w, Math.abs(this.y[j] - y) / this.h)).sort((a, b) => a - b);
    const most = apart.length ? apart[Math.floor(0.75 * (apart.length - 1))] : 0;
    this.glide(x, y, clamp(0.36 / Math.max(1e-9, most), this.fitScale * 1.8, this.fitScale * (apart.length ? 30 : 7)), smoothly);
  }

  // Bring all of some vertices into view.
  frameAll(numbers, smoothly) {
    this.reframe = () => this.frameAll(numbers, false);
    const [[left, right], [top, bottom]] = [this.x, this.y].map((values) => numbers.reduce(
      ([low, high], i) => [Math.min(low, values[i]), Math.max(high, values[i])], [Infinity, -Infinity]));
    const most = clamp(Math.sqrt(this.x.length) / 2, 6, 40); // so that vertices between them remain in view
    const scale = Math.min((this.w - 120) / Math.max(1, right - left), (this.h - 120) / Math.max(1, bottom - top));
    this.glide((left + right) / 2, (top + bottom) / 2, clamp(scale, this.fitScale, this.fitScale * most), smoothly);
  }

  glide(x, y, scale, smoothly) {
    const from = [this.cx, this.cy, Math.log(this.scale)], to = [x, y, Math.log(scale)];
    const set = (share) => {
      const [cx, cy, logScale] = from.map((value, k) => value + (to[k] - value) * share);
      [this.cx, this.cy, this.scale] = [cx, cy, Math.exp(logScale)];
      this.redraw();
    };
    this.animation = null;
    this.byUser = false;
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
}
