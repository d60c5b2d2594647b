"use strict";
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

// Vertices sorted into square cells, so that the nearest one is found by looking at a few cells.
class Grid {
  constructor(x, y, width, height) {
    this.x = x;
    this.y = y;
    this.size = Math.max(1, Math.sqrt((width * height) / Math.max(1, x.length / 3)));
    this.columns = Math.floor(width / this.size) + 1;
    this.rows = Math.floor(height / this.size) + 1;
    this.first = new Int32Array(this.columns * this.rows + 1);
    this.items = new Int32Array(x.length);
    for (let i = 0; i < x.length; i++) this.first[this.cell(i) + 1]++;
    for (let c = 0; c < this.columns * this.rows; c++) this.first[c + 1] += this.first[c];
    const next = this.first.slice();
    for (let i = 0; i < x.length; i++) this.items[next[this.cell(i)]++] = i;
  }

  cell(i) {
    return Math.floor(this.y[i] / this.size) * this.columns + Math.floor(this.x[i] / this.size);
  }

  nearest(x, y, reach) {
    const left = clamp(Math.floor((x - reach) / this.size), 0, this.columns);
    const right = clamp(Math.floor((x + reach) / this.size), -1, this.columns - 1);
    const bottom = clamp(Math.floor((y + reach) / this.size), -1, this.rows - 1);
    let best = -1, closest = reach * reach;
    for (let row = clamp(Math.floor((y - reach) / this.size), 0, this.rows); row <= bottom; row++) {
      for (let c = row * this.columns + left; c <= row * this.columns + right; c++) {
        for (let k = this.first[c]; k < this.first[c + 1]; k++) {
          const i = this.items[k], distance = (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2;
          if (distance <= closest) { closest = distance; best = i; }
        }
      }
    }
    return best;
  }
}
