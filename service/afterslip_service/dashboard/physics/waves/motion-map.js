// @ts-check
/** Motion at one time on a map: stations, and the ground where the store has it. */

import { h, svg } from "/dashboard/dom.js";
import { css, table } from "/dashboard/elements/colours.js";
import { KmMap, around, f } from "/dashboard/elements/km-map.js";
import { apart } from "/dashboard/elements/plan-map.js";

const NAMED = 60, NEAR = 14;
const COLOURS = table("two");

/** @typedef {{x: number, y: number}} Place m */

export class MotionMap {
  /**
   * @param {import("/dashboard/physics/waves/waves.js").Waves} waves
   * @param {(station: number) => void} station picked
   * @param {(source: number) => void} source picked
   * @param {() => void} moved
   */
  constructor(waves, station, source, moved) {
    this.waves = waves;
    /** of stations @type {number[]} */
    this.values = [];
    /** of points, row by row @type {Float32Array | null} */
    this.field = null;
    this.most = 1;
    /** unit sources that slip @type {number[]} */
    this.rows = [];
    this.station = -1;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.map = new KmMap("Map of stations, unit sources and motion", (map) => this.#marks(map), moved);
    this.map.element.prepend(this.canvas);
    let down = [0, 0];
    this.map.element.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => { down = [event.clientX, event.clientY]; });
    this.map.element.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      // the end of a drag is no click
      if (Math.hypot(event.clientX - down[0], event.clientY - down[1]) > 3) return;
      const box = this.map.element.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      const [a, b] = [this.#nearest(waves.stations, x, y), this.#nearest(waves.sources, x, y)];
      if (a.far <= Math.min(b.far, NEAR)) station(a.row);
      else if (b.far <= NEAR) source(b.row);
    });
    this.scale = svg("svg", { class: "colours", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
      Array.from(COLOURS, (colour, i) => svg("rect", { x: (i * 100) / 256, width: 1, y: 0, height: 4, fill: css(colour) })));
  }

  /** @param {Place[]} places @param {number} x px @param {number} y px */
  #nearest(places, x, y) {
    let row = -1, far = Infinity;
    places.forEach((place, i) => {
      const [column, line] = this.map.toPixel(place.x / 1e3, place.y / 1e3), away = Math.hypot(column - x, line - y);
      if (away < far) [row, far] = [i, away];
    });
    return { row, far };
  }

  /** @param {boolean} [whole] all of the ground */
  fit(whole = false) {
    const { stations, sources, grid } = this.waves;
    const places = [...sources, ...stations].map(({ x, y }) => [x / 1e3, y / 1e3]);
    if (grid && (whole || !stations.length)) for (const at of [0, -1]) places.push([(grid.x.at(at) ?? 0) / 1e3, (grid.y.at(at) ?? 0) / 1e3]);
    const [w, s, e, n] = around(places, 5), room = 0.06 * Math.max(e - w, n - s);
    this.map.fit([w - room, s - room, e + room, n + room]);
  }

  /** Another time. @param {number[]} values of stations @param {Float32Array | null} field */
  show(values, field) {
    this.values = values;
    this.field = field;
    this.map.redraw();
  }

  /** @param {number} value */
  colour(value) { return COLOURS[Math.max(0, Math.min(255, Math.round(127.5 * (1 + value / this.most))))]; }

  /** @param {KmMap} map */
  #marks(map) {
    this.#paint(map);
    const { sources, stations, grid } = this.waves, slipping = new Set(this.rows), marks = [];
    if (grid) {
      const [w, e, s, n] = [grid.x[0], grid.x.at(-1) ?? 0, grid.y[0], grid.y.at(-1) ?? 0].map((m) => m / 1e3);
      marks.push(svg("path", { class: "domain", d: map.path([[w, s], [e, s], [e, n], [w, n]], true) }));
    }
    for (const { x, y, index } of sources) {
      const [cx, cy] = map.toPixel(x / 1e3, y / 1e3).map(f);
      if (slipping.has(index)) marks.push(svg("circle", { class: "unit slipping", cx, cy, r: 4.5 }));
      else marks.push(svg("circle", { class: "unit", cx, cy, r: 2.5 }));
    }
    const at = stations.map(({ x, y }) => map.toPixel(x / 1e3, y / 1e3));
    const names = stations.length <= NAMED ? apart(at, stations.map(({ name }) => name)) : [];
    stations.forEach(({ name }, i) => {
      const [cx, cy] = at[i].map(f), fill = Number.isFinite(this.values[i]) ? css(this.colour(this.values[i])) : "none";
      if (i === this.station) marks.push(svg("circle", { class: "chosen", cx, cy, r: 10 }));
      marks.push(svg("circle", { class: "sensor", cx, cy, r: 6, fill }, svg("title", {}, name)));
      if (names[i] || i === this.station) marks.push(svg("text", { x: f(at[i][0] + (i === this.station ? 13 : 9)), y: f(at[i][1] + 4) }, name));
    });
    return marks;
  }

  /** The ground, between its points linear. @param {KmMap} map */
  #paint(map) {
    const { canvas, field } = this, { grid } = this.waves, { width, height } = map;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, width, height);
    if (!field || !grid) return;
    const image = new ImageData(width, height), out = new Uint32Array(image.data.buffer);
    const [west, , , north] = map.part, wide = grid.x.length;
    const across = between(grid.x, width, (column) => 1e3 * (west + (column + 0.5) * map.km));
    const down = between(grid.y, height, (row) => 1e3 * (north - (row + 0.5) * map.km));
    for (let row = 0; row < height; row += 1) {
      const line = down.first[row] * wide, b = down.share[row];
      if (line < 0) continue;
      for (let column = 0; column < width; column += 1) {
        const at = line + across.first[column], a = across.share[column];
        if (across.first[column] < 0) continue;
        const lower = field[at] + a * (field[at + 1] - field[at]), upper = field[at + wide] + a * (field[at + wide + 1] - field[at + wide]);
        out[row * width + column] = this.colour(lower + b * (upper - lower));
      }
    }
    context.putImageData(image, 0, 0);
  }
}

/** Of each pixel the point before it, −1 outside, and its share of the way to the next. @param {Float64Array} points even @param {number} count @param {(pixel: number) => number} place m */
function between(points, count, place) {
  const first = new Int32Array(count), share = new Float64Array(count), each = points[1] - points[0];
  for (let pixel = 0; pixel < count; pixel += 1) {
    const at = (place(pixel) - points[0]) / each, inside = at >= 0 && at <= points.length - 1;
    first[pixel] = inside ? Math.min(Math.floor(at), points.length - 2) : -1;
    share[pixel] = at - first[pixel];
  }
  return { first, share };
}
