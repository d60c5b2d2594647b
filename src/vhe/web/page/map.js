"use strict";
// The map: all vertices on one canvas, with the links and names of what is selected.

const MAX_GROUP_LINKS = 2000; // vertices of a group whose links are drawn
const MAX_GROUP_NAMES = 30;

class NetworkMap extends MapView {
  // network: as `makeNetwork` returns it; a colour is an index into `palette`, names of CSS variables
  // onHover(i), onSelect(i, add), onLasso(corners): called for gestures; onView(place): after the user has moved the view
  constructor(canvas, network, { onHover, onSelect, onLasso, onView }) {
    super(canvas, network.x, network.y);
    Object.assign(this, { network, onHover, onSelect, onLasso, onView });
    this.selected = -1;
    this.hover = -1;
    this.highlighted = null; // Uint8Array: vertices to emphasise while the others fade
    this.partner = -1; // the other vertex of the compared pair
    this.newText = null; // {x, y, near}: position and nearest vertices of an embedded text
    this.group = []; // several selected vertices, and a mask of them
    this.groupMask = null;
    this.path = []; // vertices of a path through the group
    this.lassoMode = false; // whether dragging draws a lasso
    this.lasso = null; // points of the lasso that is being drawn
    this.edges = null; // EdgeLayer, while all links are shown
    this.palette = LABELS;
    const hash = (i) => Math.imul(i, 2654435761) >>> 0;
    this.order = [...network.x.keys()].sort((a, b) => hash(a) - hash(b)); // mixed: no label always covers another
    this.byDegree = [...this.order].sort((a, b) => network.degree[b] - network.degree[a]);
    this.readColours();
    const buttons = canvas.parentElement.querySelector(".zoom");
    this.buttons = [buttons.offsetLeft, buttons.offsetTop, buttons.offsetLeft + buttons.offsetWidth, buttons.offsetTop + buttons.offsetHeight];
    const resize = () => { if (this.measure()) this.draw(); }; // immediately: a resized canvas is blank
    new ResizeObserver(resize).observe(canvas);
    theme.listeners.push(() => { this.readColours(); this.redraw(); });
    resize();
    addGestures(this);
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    this.colours = this.palette.map(read);
    for (const name of ["ink", "soft", "link", "accent", "surface"]) this[name] = read(`--${name}`);
    this.font = getComputedStyle(document.body).fontFamily;
  }

  // colour[i] is an index into `palette`.
  setColours(colour, palette) {
    this.network.colour = colour;
    this.palette = palette;
    this.readColours();
    this.redraw();
  }

  // New coordinates of all vertices, and names of their regions.
  setLayout(x, y, regions) {
    const { place } = this;
    Object.assign(this.network, { x, y, regions });
    this.setCoordinates(x, y);
    [this.w, this.fitScale] = []; // measure again
    this.measure();
    this.place = place;
    if (this.edges) this.edges = new EdgeLayer(this.network);
  }

  // Bring a vertex and most of its neighbours into view.
  showVertex(i, smoothly) {
    const near = [...this.network.neighbours(i), ...this.network.suggested(i).map((link) => link.number)];
    this.frame(this.x[i], this.y[i], near, smoothly);
  }

  showEdges(shown) {
    if (shown === Boolean(this.edges)) return;
    this.edges = shown ? new EdgeLayer(this.network) : null;
    this.redraw();
  }

  setGroup(numbers, path) {
    [this.group, this.path] = [numbers, path];
    this.groupMask = numbers.length ? new Uint8Array(this.x.length) : null;
    for (const i of numbers) this.groupMask[i] = 1;
    this.redraw();
  }

  highlight(mask) { this.highlighted = mask; this.redraw(); }
  select(i) { this.selected = i; this.partner = -1; this.redraw(); }
  setPartner(j) { this.partner = j; this.redraw(); }
  setNewText(newText) { this.newText = newText; this.redraw(); }
  setLasso(points) { this.lasso = points; this.redraw(); }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  draw() {
    const { order, group } = this, context = this.canvas.getContext("2d"), focused = this.selected >= 0 || this.newText;
    const grown = (this.scale / this.fitScale) ** 0.4, mask = this.highlighted ?? this.groupMask;
    const radius = clamp(clamp(165 / Math.sqrt(order.length), 1, 4.5) * grown, 1, 6.5);
    this.drawVertices(context, radius, focused || mask ? 0.22 : 1, focused ? 0.5 : 1, mask);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const occupied = [this.buttons], zoomedIn = this.scale >= this.fitScale * 1.8;
    const named = this.path.length || (group.length && group.length <= MAX_GROUP_NAMES && mask === this.groupMask); // by drawGroup
    if (group.length && !focused) this.drawGroup(context, radius, occupied);
    if (focused) this.drawLinks(context, radius, occupied);
    else if (zoomedIn && !named) this.drawNames(context, radius, occupied, mask);
    else if (!mask) this.drawRegions(context, occupied);
    if (this.newText) this.drawNewText(context);
    if (this.hover >= 0) this.drawRing(context, this.hover, radius + 2.5);
    if (this.lasso) this.drawLasso(context);
    if (this.byUser) this.onView(this.place);
  }

  // All links if they are shown, and all vertices; those of the mask a second time, on top.
  drawVertices(context, radius, opacity, maskOpacity, mask) {
    const { network, order } = this, { width, height } = this.canvas;
    if (!this.raster?.fits(width, height, this.surface)) this.raster = new Raster(width, height, this.surface);
    const { raster } = this, scale = this.scale * this.ratio, { px, py, kind } = this.inOrder();
    const left = (this.w * this.ratio) / 2 - this.cx * scale, top = (this.h * this.ratio) / 2 - this.cy * scale;
    // Vertices without links are smaller.
    const stamps = (share) => this.colours.flatMap((colour) => [network.degree[this.byDegree[0]] ? 0.72 : 1, 1].map((size) =>
      raster.stamp(radius * size * this.ratio, radius > 1.5 ? 0.6 * this.ratio : 0, colour, share)));
    if (this.edges) {
      this.edges.paint(raster, scale, left, top, this.link, opacity < 1 ? 0.4 : 1);
      if (!this.edges.complete) this.redraw();
    } else raster.clear();
    const faded = stamps(opacity);
    for (let k = 0; k < px.length; k++) raster.put(faded[kind[k]], px[k] * scale + left, py[k] * scale + top);
    if (mask) {
      const bright = stamps(maskOpacity);
      for (let k = 0; k < px.length; k++) if (mask[order[k]]) raster.put(bright[kind[k]], px[k] * scale + left, py[k] * scale + top);
    }
    raster.show(context);
  }

  // Coordinates and kinds of the vertices in drawing order; the kind selects the stamp.
  inOrder() {
    const { x, y, colour, degree } = this.network;
    if (this.drawn?.x !== x || this.drawn.colour !== colour) {
      const from = (values) => Float32Array.from(this.order, (i) => values[i]);
      const kind = Uint8Array.from(this.order, (i) => 2 * colour[i] + (degree[i] ? 1 : 0));
      this.drawn = { x, colour, px: from(x), py: from(y), kind };
    }
    return this.drawn;
  }

  circle(context, i, radius) {
    context.beginPath();
    context.arc(...this.screen(i), radius, 0, 2 * Math.PI);
  }

  fillDisc(context, i, radius, occupied) {
    this.circle(context, i, radius);
    context.fillStyle = this.colours[this.network.colour[i]];
    context.fill();
    const [x, y] = this.screen(i);
    occupied.push([x - radius, y - radius, x + radius, y + radius]);
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
    for (const j of [...suggested, ...links, ...marked]) this.fillDisc(context, j, radius, occupied);
    for (const j of marked) this.drawRing(context, j, radius + 2.5);
    for (const j of marked) this.drawName(context, j, radius, occupied, true);
    for (const j of [...links, ...suggested].slice(0, 40)) if (j !== this.partner) this.drawName(context, j, radius, occupied, false);
  }

  // The links inside a group of vertices, and the path through it.
  drawGroup(context, radius, occupied) {
    const { group, groupMask, path, network } = this;
    if (group.length <= MAX_GROUP_LINKS) {
      for (const i of group) {
        const ends = network.neighbours(i).filter((j) => j > i && groupMask[j]);
        this.drawLines(context, this.screen(i), ends, { alpha: 0.35 });
      }
    }
    path.slice(1).forEach((j, k) => this.drawLines(context, this.screen(path[k]), [j], { width: 2.6, alpha: 1, colour: this.accent }));
    const marked = path.length ? path : group.length <= MAX_GROUP_NAMES ? group : [];
    for (const i of marked) {
      this.fillDisc(context, i, radius, occupied);
      this.drawRing(context, i, radius + 2.5);
    }
    for (const i of marked) this.drawName(context, i, radius, occupied, true);
  }

  drawLasso(context) {
    const outline = new Path2D(`M ${this.lasso.map((point) => point.join(" ")).join(" L ")} Z`);
    context.globalAlpha = 0.1;
    context.fillStyle = this.accent;
    context.fill(outline, "evenodd");
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
    context.strokeStyle = this.accent;
    context.stroke(outline);
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

  // The names of the regions.
  drawRegions(context, occupied) {
    context.font = `600 13px ${this.font}`;
    for (const region of this.network.regions) {
      const textWidth = context.measureText(region.name).width;
      const [sx, sy] = this.toScreen(region);
      const places = [clamp(sx - textWidth / 2, 4, this.w - textWidth - 4), this.buttons[2] + 4]; // or beside the buttons
      places.some((left) => this.drawText(context, region.name, left, sy, textWidth, 18, this.ink, occupied));
    }
  }

  // The ids of the vertices with the highest degree, as many as fit into the view.
  drawNames(context, radius, occupied, mask) {
    const limit = Math.round((this.w * this.h) / 14000);
    for (let k = 0, tried = 0; k < this.byDegree.length && occupied.length < limit && tried < 600; k++) {
      const i = this.byDegree[k];
      if (mask && !mask[i]) continue;
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
}
