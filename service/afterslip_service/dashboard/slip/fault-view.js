// @ts-check
/** The faults in three dimensions, coloured by slip, turned by hand or by keys. */

import { h, put, svg } from "/dashboard/dom.js";
import { css, table } from "/dashboard/elements/colours.js";

const WIDTH = 640, HEIGHT = 420, CLASSES = 64, RAD = Math.PI / 180;

export class FaultView {
  /**
   * @param {import("/dashboard/slip/result.js").SlipResult} result
   * @param {import("/dashboard/slip/slip-map.js").Look} look
   * @param {() => void} [moved] it was turned; others of the same look turn with it
   */
  constructor(result, look, moved = () => this.redraw()) {
    this.result = result;
    this.look = look;
    this.moved = moved;
    const used = [...new Set(result.triangles.flat())], at = (/** @type {number} */ axis) => used.map((i) => result.points[i][axis]);
    const ends = [0, 1, 2].map((axis) => [Math.min(...at(axis)), Math.max(...at(axis))]);
    // the ground, too, lies in the middle of what is turned
    ends[2][1] = Math.max(ends[2][1], 0);
    this.ends = ends;
    this.middle = ends.map(([low, high]) => (low + high) / 2);
    this.scale = (0.9 * Math.min(WIDTH, 1.3 * HEIGHT)) / (Math.hypot(...ends.map(([low, high]) => high - low)) || 1);
    this.drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Slip of ${result.inversion.name} on the faults in three dimensions` });
    this.element = h("div.solid", {
      tabindex: 0, role: "group", "aria-label": "Slip in three dimensions. Arrows turn it",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
      onpointerdown: (/** @type {PointerEvent} */ event) => this.#drag(event),
    }, this.drawing);
    this.redraw();
  }

  /** @param {number[]} point km @returns {number[]} column, row, nearness */
  project(point) {
    const [x, y, z] = point.map((v, i) => v - this.middle[i]);
    const { turn, tilt } = this.look;
    const [c, s] = [Math.cos(turn * RAD), Math.sin(turn * RAD)], [ct, st] = [Math.cos(tilt * RAD), Math.sin(tilt * RAD)];
    const right = c * x + s * y, away = c * y - s * x;
    return [WIDTH / 2 + this.scale * right, HEIGHT / 2 - this.scale * (st * away + ct * z), ct * -away + st * z];
  }

  redraw() {
    const { result, look } = this, values = result.field(look.shade);
    const colours = table(look.shade === "slip" ? "slip" : "one");
    const places = result.points.map((point) => this.project(point));
    // the farthest first
    const order = result.triangles.map((corners) => ({ corners, near: corners.reduce((sum, i) => sum + places[i][2], 0) }))
      .sort((a, b) => a.near - b.near);
    /** @type {{row: number, d: string}[]} */
    const paths = [];
    for (const { corners } of order) {
      const mean = corners.reduce((sum, i) => sum + values[i], 0) / 3;
      const row = Math.max(0, Math.min(CLASSES - 1, Math.floor((CLASSES * mean) / (look.most || 1))));
      const d = corners.map((i, k) => `${k ? "L" : "M"}${places[i][0].toFixed(1)} ${places[i][1].toFixed(1)}`).join("") + "Z";
      const last = paths.at(-1);
      // neighbours of one colour are one path
      if (last?.row === row) last.d += d;
      else paths.push({ row, d });
    }
    // from above the ground lies before the faults
    const [ground, edges] = this.#box(), above = look.tilt > 0;
    put(this.drawing, edges, above ? null : ground, ...paths.map(({ row, d }) => {
      const colour = css(colours[Math.round((255 * (row + 0.5)) / CLASSES)]);
      return svg("path", { d, class: "shade", fill: colour, stroke: colour, "stroke-width": 0.7 });
    }), above ? ground : null, ...this.#names());
  }

  /** The ground above the faults, and edges down to their depth. */
  #box() {
    const [[west, east], [south, north], [bottom, top]] = this.ends;
    const line = (/** @type {number[][]} */ points) => points.map((p, i) => { const [x, y] = this.project(p); return `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`; }).join("");
    const corners = [[west, south], [east, south], [east, north], [west, north]];
    return [svg("path", { class: "ground", d: `${line(corners.map(([x, y]) => [x, y, top]))}Z` }),
      svg("path", { class: "edge", d: corners.map(([x, y]) => line([[x, y, top], [x, y, bottom]])).join("") + `${line(corners.map(([x, y]) => [x, y, bottom]))}Z` })];
  }

  #names() {
    const [[west, east], [south, north], [bottom, top]] = this.ends;
    const at = (/** @type {number[]} */ point, /** @type {string} */ words) => { const [x, y] = this.project(point); return svg("text", { x: x.toFixed(1), y: y.toFixed(1), "text-anchor": "middle" }, words); };
    const grow = 0.06 * Math.max(east - west, north - south);
    return [at([(west + east) / 2, north + grow, top], "N"), at([east + grow, (south + north) / 2, top], "E"),
      at([west, south, bottom - grow / 2], `${(top - bottom).toFixed(0)} km deep`)];
  }

  /** @param {number} turn @param {number} tilt degrees */
  #move(turn, tilt) {
    const { look } = this;
    look.turn = (look.turn + turn) % 360;
    look.tilt = Math.max(-10, Math.min(90, look.tilt + tilt));
    this.moved();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const moves = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [-10, 0], ArrowRight: [10, 0], ArrowUp: [0, 10], ArrowDown: [0, -10] });
    if (event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
    this.#move(...moves[event.key]);
    event.preventDefault();
  }

  /** @param {PointerEvent} event */
  #drag(event) {
    if (event.button) return;
    let [x, y] = [event.clientX, event.clientY];
    const go = (/** @type {PointerEvent} */ next) => {
      this.#move((next.clientX - x) / 2, (next.clientY - y) / 2);
      [x, y] = [next.clientX, next.clientY];
    };
    const done = () => { removeEventListener("pointermove", go); removeEventListener("pointerup", done); };
    addEventListener("pointermove", go);
    addEventListener("pointerup", done);
  }
}
