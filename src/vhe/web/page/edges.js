"use strict";
// All links of the view as thin antialiased lines. A buffer counts the lines that cover each pixel; the colour
// of a pixel follows from its count exactly as if the lines had been drawn over each other.
// Lines are added in random order until the time for a frame is over: while the map moves, a sample is shown
// with the expected density of all lines; at rest, the rest follows in the next frames.

const FRAME_TIME = 7; // milliseconds per frame for lines
const UNIT = 16; // count of a line that covers a pixel completely
const MAX_OPACITY = 0.4; // of a line
const MEAN_SHADE = 0.2; // opacity of all lines, on average over the view; lines are fainter where there are many
const COUNTS = 4096; // larger counts have the same colour

class EdgeLayer {
  constructor({ x, y, links }) {
    const count = links.length >> 1, order = new Uint32Array(count).map((_, k) => k);
    for (let k = count - 1, seed = 1; k > 0; k--) { // Fisher and Yates, with a linear congruential generator
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      const other = Math.floor((seed / 2 ** 32) * (k + 1));
      [order[k], order[other]] = [order[other], order[k]];
    }
    this.count = count;
    this.ends = new Float32Array(4 * count); // x and y of both ends, in drawing order
    order.forEach((k, at) => {
      const i = links[2 * k], j = links[2 * k + 1];
      this.ends.set([x[i], y[i], x[j], y[j]], 4 * at);
    });
    this.cover = new Uint32Array(0);
    this.colours = new Uint32Array(COUNTS);
    this.restart(0);
  }

  restart(pixels) {
    if (this.cover.length === pixels) this.cover.fill(0);
    else this.cover = new Uint32Array(pixels);
    this.next = 0; // lines considered so far
    this.drawn = 0; // pixels covered by them
  }

  get complete() { return this.next === this.count; }

  // Draw the background of a raster: a point (x, y) of the map is at (x * scale + left, y * scale + top).
  paint(raster, scale, left, top, colour, strength) {
    const { width, height } = raster, view = [width, height, scale, left, top].join();
    const { colours } = this;
    if (view !== this.view) {
      this.view = view;
      this.restart(width * height);
    }
    if (!this.complete) this.add(width, height, scale, left + MARGIN, top + MARGIN, performance.now() + FRAME_TIME);
    const { cover } = this;
    const share = Math.max(this.next / Math.max(1, this.count), 0.02), lines = this.drawn / share / cover.length; // per pixel
    const opacity = strength * Math.min(MAX_OPACITY, MEAN_SHADE / Math.max(lines, 1e-9));
    const over = channels(colour), { pixels, background } = raster;
    for (let k = 0; k < COUNTS; k++) {
      colours[k] = packed(blend(background, over, 1 - (1 - opacity) ** (k / UNIT / share)));
    }
    for (let k = 0; k < cover.length; k++) pixels[k] = colours[cover[k] < COUNTS ? cover[k] : COUNTS - 1];
  }

  add(width, height, scale, left, top, deadline) {
    const { ends, count } = this, right = width - 2, bottom = height - 2;
    let k = this.next;
    while (k < count) {
      if ((k & 1023) === 1023 && performance.now() > deadline) { k++; break; }
      const at = 4 * k++;
      const ax = ends[at] * scale + left, ay = ends[at + 1] * scale + top;
      const bx = ends[at + 2] * scale + left, by = ends[at + 3] * scale + top;
      if ((ax < 0 && bx < 0) || (ay < 0 && by < 0) || (ax > right && bx > right) || (ay > bottom && by > bottom)) continue;
      this.line(ax, ay, bx, by, right, bottom, width);
    }
    this.next = k;
  }

  // One pixel per step along the longer axis, shared with the next pixel across it.
  line(ax, ay, bx, by, right, bottom, width) {
    const flat = Math.abs(bx - ax) >= Math.abs(by - ay), forward = flat ? ax <= bx : ay <= by, { cover } = this;
    // Along the longer axis u and across it v, with u increasing.
    const u0 = forward ? (flat ? ax : ay) : (flat ? bx : by), v0 = forward ? (flat ? ay : ax) : (flat ? by : bx);
    const u1 = forward ? (flat ? bx : by) : (flat ? ax : ay), v1 = forward ? (flat ? by : bx) : (flat ? ay : ax);
    const lastU = flat ? right : bottom, lastV = flat ? bottom : right;
    const slope = u1 > u0 ? (v1 - v0) / (u1 - u0) : 0;
    let from = Math.max(0, u0), to = Math.min(lastU, u1);
    if (slope) { // where the line enters and leaves the raster
      const low = u0 - v0 / slope, high = u0 + (lastV - v0) / slope;
      from = Math.max(from, Math.min(low, high));
      to = Math.min(to, Math.max(low, high));
    } else if (v0 < 0 || v0 > lastV) return;
    const first = Math.ceil(from), last = Math.floor(to), along = flat ? 1 : width, across = flat ? width : 1;
    this.drawn += Math.max(0, last - first + 1);
    let v = (v0 + (first - u0) * slope) * 65536;
    const step = slope * 65536;
    for (let u = first; u <= last; u++, v += step) {
      const whole = v >> 16, part = (v >> 12) & 15, at = u * along + whole * across;
      cover[at] += UNIT - part;
      cover[at + across] += part;
    }
  }
}
