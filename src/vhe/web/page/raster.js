"use strict";
// Discs written straight into pixels. A canvas without a graphics card takes a third of a second
// for sixty thousand of them; this takes a few milliseconds.

const MARGIN = 24; // pixels beyond each edge, so that no disc has to be cut

const channels = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
const packed = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
const blend = (under, over, share) => under.map((u, k) => Math.round(u + (over[k] - u) * share));

class Raster {
  constructor(width, height, ground) {
    this.width = width + 2 * MARGIN;
    this.height = height + 2 * MARGIN;
    this.ground = channels(ground);
    this.image = new ImageData(this.width, this.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.pixels.fill(packed(this.ground));
  }

  // A disc with a thin rim in the colour of the ground, which keeps neighbours apart.
  stamp(radius, rim, colour, strength) {
    const shown = blend(this.ground, channels(colour), strength), reach = Math.min(MARGIN, Math.ceil(radius + rim));
    const offsets = [], colours = [], covers = [];
    for (let dy = -reach; dy <= reach; dy++) {
      for (let dx = -reach; dx <= reach; dx++) {
        const distance = Math.hypot(dx, dy), cover = clamp(radius + rim - distance + 0.5, 0, 1);
        if (!cover) continue;
        offsets.push(dy * this.width + dx);
        colours.push(packed(blend(this.ground, shown, clamp(radius - distance + 0.5, 0, 1))));
        covers.push(Math.round(cover * 256));
      }
    }
    return { offsets: Int32Array.from(offsets), colours: Uint32Array.from(colours), covers: Int32Array.from(covers) };
  }

  put({ offsets, colours, covers }, x, y) {
    const column = Math.round(x) + MARGIN, row = Math.round(y) + MARGIN, { pixels } = this;
    if (column < 0 || row < 0 || column >= this.width || row >= this.height) return; // what is cut falls into the margin
    const start = row * this.width + column;
    for (let k = 0; k < offsets.length; k++) {
      const at = start + offsets[k], share = covers[k], over = colours[k];
      if (share === 256) { pixels[at] = over; continue; }
      // Red and blue in one multiplication, green in another.
      const under = pixels[at], rest = 256 - share;
      const redBlue = ((over & 0xff00ff) * share + (under & 0xff00ff) * rest) >>> 8;
      const green = ((over & 0x00ff00) * share + (under & 0x00ff00) * rest) >>> 8;
      pixels[at] = (0xff000000 | (redBlue & 0xff00ff) | (green & 0x00ff00)) >>> 0;
    }
  }

  show(pen) { pen.putImageData(this.image, -MARGIN, -MARGIN); }
}
