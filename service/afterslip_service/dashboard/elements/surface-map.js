// @ts-check
/** A vector field on the ground: coloured, with arrows, unit sources and a chosen place. */

import { h, put, svg } from "/dashboard/dom.js";
import { coast, drawn } from "/dashboard/elements/coast.js";
import { css, table } from "/dashboard/elements/colours.js";
import { tickStep } from "/dashboard/elements/ticks.js";

// pixels of the longest arrow
export const LONGEST = 34;
const SPACING = 30;

export class SurfaceMap {
  /**
   * @param {import("/dashboard/surface.js").Surface} surface
   * @param {{index: number, label: string, component: string, x: number, y: number}[]} sources
   * @param {(x: number, y: number) => void} picked called with metres
   */
  constructor(surface, sources, picked) {
    this.surface = surface;
    this.sources = sources;
    this.centre = [0, 0];
    this.span = this.metres = 1;
    this.width = this.height = 0;
    /** @type {any} of `Runs` */
    this.pixels = null;
    /** @type {{column: number, row: number, weights: number[], nodes: Int32Array}[]} */
    this.begin = [];
    /** @type {ImageData | null} */
    this.image = null;
    /** @type {"one" | "two" | ""} */
    this.named = "";
    this.canvas = h("canvas", { "aria-hidden": "true" });
    // what a frame changes is apart from what it does not
    this.fixed = svg("g", {});
    this.halo = svg("path", { class: "halo" });
    this.arrow = svg("path", { class: "arrows" });
    this.above = svg("g", {});
    this.over = svg("svg", { role: "img", "aria-label": "Map of the ground in km east and north" },
      this.fixed, this.halo, this.arrow, this.above);
    /** colours of the unit sources by their index, null: none @type {(string | undefined)[] | null} */
    this.shades = null;
    this.element = h("div.map", {
      onclick: (/** @type {MouseEvent} */ event) => {
        const box = this.element.getBoundingClientRect();
        const [x, y] = this.toPlace(event.clientX - box.left, event.clientY - box.top);
        picked(x, y);
      },
    }, this.canvas, this.over);
    this.scale = svg("svg", { class: "colours", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.resized = new ResizeObserver(() => this.lay());
    this.resized.observe(this.element);
    /** @type {any} */
    this.field = null;
    this.source = this.sources[0];
    /** @type {{x: number, y: number} | null} */
    this.place = null;
    /** @type {import("/dashboard/elements/coast.js").Coast | null} */
    this.coast = null;
    this.focus();
  }

  /** Draw the coast too, once it is there; without it the map serves as well. @param {any} frame */
  async frame(frame) {
    this.coast = await coast(frame).catch(() => null);
    if (this.coast) this.draw();
  }

  /** Show the unit sources and what is around them, or the whole surface. @param {boolean} [whole] */
  focus(whole = false) {
    const { west, east, south, north } = this.surface.box;
    const xs = this.sources.map(({ x }) => x), ys = this.sources.map(({ y }) => y);
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const [bottom, top] = [Math.min(...ys), Math.max(...ys)];
    const wide = Math.max(right - left, top - bottom, 10e3) * 2.5;
    this.centre = whole ? [(west + east) / 2, (south + north) / 2] : [(left + right) / 2, (bottom + top) / 2];
    this.span = whole ? Math.max(east - west, north - south) * 1.02 : wide;
    this.lay();
  }

  /** @param {number} factor below 1: closer, around the chosen place */
  zoom(factor) {
    if (this.place) this.centre = [this.place.x, this.place.y];
    this.span *= factor;
    this.lay();
  }

  /** @param {number} x @param {number} y @returns {number[]} */
  toPixel(x, y) {
    return [this.width / 2 + (x - this.centre[0]) / this.metres, this.height / 2 - (y - this.centre[1]) / this.metres];
  }

  /** @param {number} column @param {number} row @returns {[number, number]} */
  toPlace(column, row) {
    return [this.centre[0] + (column - this.width / 2) * this.metres, this.centre[1] - (row - this.height / 2) * this.metres];
  }

  /** Lay the map out anew: its size or its part of the surface is another one. */
  lay() {
    this.width = Math.round(this.element.clientWidth);
    this.height = Math.round(this.element.clientHeight);
    if (!this.width || !this.height) return;
    this.metres = this.span / Math.min(this.width, this.height);
    this.canvas.width = this.width;
    this.canvas.height = this.height;
    this.over.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.pixels = this.surface.raster((x, y) => this.toPixel(x, y),
      (column, row) => this.toPlace(column, row), this.width, this.height);
    this.begin = this.spots();
    this.image = new ImageData(this.width, this.height);
    this.draw();
  }

  /**
   * @param {Float64Array} values (node, 3)
   * @param {number} axis 0, 1, 2: east, north, up; 3: length
   * @param {number} most value at the end of the colours
   * @param {number} longest horizontal length of the longest arrow
   */
  show(values, axis, most, longest) {
    this.field = { values, axis, most, longest };
    this.move();
  }

  /** Show no field: there is none of the chosen source. */
  clear() {
    this.field = null;
    this.move();
  }

  /** Everything; a frame alone draws what moves. */
  draw() {
    if (!this.pixels) return;
    const [west, south] = this.toPlace(0, this.height), [east, north] = this.toPlace(this.width, 0);
    const shore = this.coast && drawn(this.coast, [west, south, east, north].map((m) => m / 1e3), (x, y) => this.toPixel(1e3 * x, 1e3 * y));
    put(this.fixed, shore ? svg("path", { class: "coast", d: shore }) : null, ...this.ticks());
    this.mark();
    this.move();
  }

  /** Unit sources of the component of the chosen one: those of another stand at the same places. */
  get alike() { return this.sources.filter(({ component }) => component === this.source.component); }

  /** The unit sources and the chosen place. */
  mark() {
    const [cx, cy] = this.toPixel(this.source.x, this.source.y), { shades } = this;
    const marks = this.alike.flatMap(({ index, x, y }) => {
      const [column, row] = this.toPixel(x, y), at = { cx: column, cy: row, r: shades ? 6 : 3 };
      // white alone is not visible where the colours of the field are pale
      return [svg("circle", { class: "rim", ...at }), svg("circle", { class: "source", ...at, fill: shades?.[index] })];
    });
    put(this.above, ...marks, svg("circle", { class: "source chosen", cx, cy, r: shades ? 9 : 7 }), this.place && this.cross(this.place));
  }

  /** What changes with time. */
  move() {
    if (!this.pixels) return;
    if (this.field) this.paint();
    else this.canvas.getContext("2d").clearRect(0, 0, this.width, this.height);
    const arrows = this.field ? this.arrows() : "";
    this.halo.setAttribute("d", arrows);
    this.arrow.setAttribute("d", arrows);
  }

  /** A colour of every pixel. */
  paint() {
    const { values, axis, most } = this.field;
    const colours = this.ramp(axis === 3 ? "one" : "two");
    const out = new Uint32Array(/** @type {ImageData} */ (this.image).data.buffer);
    if (axis === 3) this.lengths(values, out, colours, most > 0 ? 255 / most : 0);
    else this.component(values, axis, out, colours, most > 0 ? 255 / most : 0);
    this.canvas.getContext("2d").putImageData(this.image, 0, 0);
  }

  /** @param {Float64Array} values @param {number} axis @param {Uint32Array} out @param {Uint32Array} colours @param {number} scale */
  component(values, axis, out, colours, scale) {
    const { starts, lengths, faces, weights } = this.pixels, nodes = this.surface.faces;
    for (let run = 0; run < starts.length; run += 1) {
      let now = 0, step = 0, more = 0;
      for (let k = 0, at = 18 * run, node = 6 * faces[run]; k < 6; k += 1, at += 1, node += 1) {
        const value = values[3 * nodes[node] + axis];
        now += weights[at] * value; step += weights[at + 6] * value; more += weights[at + 12] * value;
      }
      for (let pixel = starts[run], end = pixel + lengths[run]; pixel < end; pixel += 1) {
        const share = (scale * now + 255) / 2;
        // half up, as Math.round does
        out[pixel] = colours[share < 0 ? 0 : share > 255 ? 255 : (share + 0.5) | 0];
        now += step; step += more;
      }
    }
  }

  /** @param {Float64Array} values @param {Uint32Array} out @param {Uint32Array} colours @param {number} scale */
  lengths(values, out, colours, scale) {
    const { starts, lengths, faces, weights } = this.pixels, nodes = this.surface.faces;
    for (let run = 0; run < starts.length; run += 1) {
      let east = 0, north = 0, up = 0, eastStep = 0, northStep = 0, upStep = 0, eastMore = 0, northMore = 0, upMore = 0;
      for (let k = 0, at = 18 * run, node = 6 * faces[run]; k < 6; k += 1, at += 1, node += 1) {
        const three = 3 * nodes[node], a = weights[at], b = weights[at + 6], c = weights[at + 12];
        const x = values[three], y = values[three + 1], z = values[three + 2];
        east += a * x; north += a * y; up += a * z;
        eastStep += b * x; northStep += b * y; upStep += b * z;
        eastMore += c * x; northMore += c * y; upMore += c * z;
      }
      for (let pixel = starts[run], end = pixel + lengths[run]; pixel < end; pixel += 1) {
        const share = scale * Math.sqrt(east * east + north * north + up * up);
        out[pixel] = colours[share > 255 ? 255 : (share + 0.5) | 0];
        east += eastStep; north += northStep; up += upStep;
        eastStep += eastMore; northStep += northMore; upStep += upMore;
      }
    }
  }

  /** Colours of a field; the scale below the map shows them. @param {"one" | "two"} name */
  ramp(name) {
    if (this.named !== name) {
      this.named = name;
      this.colours = table(name);
      put(this.scale, ...Array.from(this.colours, (colour, i) =>
        svg("rect", { x: (i * 100) / 256, width: 1, y: 0, height: 4, fill: css(colour) })));
    }
    return /** @type {Uint32Array} */ (this.colours);
  }

  /** Where arrows begin. */
  spots() {
    const { pixels: { starts, lengths, faces }, width } = this, found = [], first = SPACING >> 1;
    for (let run = 0; run < starts.length; run += 1) {
      const row = Math.floor(starts[run] / width), from = starts[run] - row * width;
      if (row % SPACING !== first) continue;
      for (let column = from + ((first - from) % SPACING + SPACING) % SPACING; column < from + lengths[run]; column += SPACING) {
        const weights = this.pixels.at(run, column - from);
        found.push({ column, row, weights, nodes: this.surface.faces.subarray(6 * faces[run], 6 * faces[run] + 6) });
      }
    }
    return found;
  }

  /** One path of all arrows. */
  arrows() {
    const { values, longest } = this.field;
    const steps = [];
    if (!(longest > 0)) return "";
    for (const { column, row, weights, nodes } of this.begin) {
      const [east, north] = [0, 1].map((axis) =>
        weights.reduce((/** @type {number} */ sum, /** @type {number} */ weight, /** @type {number} */ k) => sum + weight * values[3 * nodes[k] + axis], 0));
      const dx = (LONGEST * east) / longest, dy = (-LONGEST * north) / longest;
      const length = Math.hypot(dx, dy);
      if (length < 1.5) continue;
      const head = Math.min(5, length / 2) / length;
      const x = column + dx, y = row + dy;
      steps.push(`M${column} ${row}L${f(x)} ${f(y)}`
        + `M${f(x - head * (dx - 0.5 * dy))} ${f(y - head * (dy + 0.5 * dx))}L${f(x)} ${f(y)}`
        + `L${f(x - head * (dx + 0.5 * dy))} ${f(y - head * (dy - 0.5 * dx))}`);
    }
    return steps.join("");
  }

  /** @param {{x: number, y: number}} place */
  cross({ x, y }) {
    const [column, row] = this.toPixel(x, y);
    const d = `M${f(column - 9)} ${f(row)}h18M${f(column)} ${f(row - 9)}v18`;
    return svg("g", { class: "place" }, svg("path", { class: "halo", d }), svg("path", { d }));
  }

  /** Kilometres along the lower and the left edge. */
  ticks() {
    const [across, along] = [this.width - 80, this.height - 44].map((pixels) => tickStep(this.metres * pixels));
    const found = [];
    const [west, south] = this.toPlace(0, this.height), [east, north] = this.toPlace(this.width, 0);
    for (let x = Math.ceil(west / across) * across; x < east; x += across) {
      const [column] = this.toPixel(x, 0);
      if (column < 50 || column > this.width - 30) continue;
      found.push(svg("path", { class: "tick", d: `M${f(column)} ${this.height}v-6` }),
        svg("text", { x: column, y: this.height - 9, "text-anchor": "middle" }, km(x)));
    }
    for (let y = Math.ceil(south / along) * along; y < north; y += along) {
      const [, row] = this.toPixel(0, y);
      if (row < 14 || row > this.height - 30) continue;
      found.push(svg("path", { class: "tick", d: `M0 ${f(row)}h6` }), svg("text", { x: 9, y: row + 4 }, km(y)));
    }
    return [...found, svg("text", { x: this.width - 6, y: this.height - 24, "text-anchor": "end" }, "km east, north")];
  }
}

const f = (/** @type {number} */ v) => v.toFixed(1);
const km = (/** @type {number} */ v) => String(Math.round(v) / 1000);
