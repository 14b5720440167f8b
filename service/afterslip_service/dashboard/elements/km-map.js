// @ts-check
/** A map in km east and north, drawn as SVG, that is moved by hand or by keys. */

import { h, put, svg } from "/dashboard/dom.js";
import { coast, drawn } from "/dashboard/elements/coast.js";
import { tickStep } from "/dashboard/elements/ticks.js";

/** @typedef {[number, number, number, number]} Box west, south, east, north, km */

const LEAST = 0.05;

export class KmMap {
  /**
   * @param {string} label what is drawn, for those who do not see it
   * @param {(map: KmMap) => any[]} draw its marks, below the ticks
   * @param {() => void} [moved] called after another part is shown
   */
  constructor(label, draw, moved = () => {}) {
    this.marks = draw;
    this.moved = moved;
    this.centre = [0, 0];
    this.span = 100;
    /** @type {import("/dashboard/elements/coast.js").Coast | null} */
    this.coast = null;
    this.width = this.height = 0;
    this.svg = svg("svg", { role: "img", "aria-label": label });
    this.element = h("div.map.km", {
      tabindex: 0, role: "group", "aria-label": `${label}. Arrows move it, plus and minus change its scale`,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
      onpointerdown: (/** @type {PointerEvent} */ event) => this.#drag(event),
      onwheel: (/** @type {WheelEvent} */ event) => {
        // a wheel alone scrolls the page
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2);
      },
    }, this.svg);
    this.resized = new ResizeObserver(() => this.redraw());
    this.resized.observe(this.element);
  }

  /** Draw the coast too, once it is there; without it the map serves as well. @param {any} frame */
  async frame(frame) {
    const found = await coast(frame).catch(() => null);
    if (found === this.coast) return;
    this.coast = found;
    this.redraw();
  }

  /** @returns {Box} what is shown, km */
  get part() {
    const [wide, high] = [this.width, this.height].map((pixels) => (pixels * this.km) / 2);
    return [this.centre[0] - wide, this.centre[1] - high, this.centre[0] + wide, this.centre[1] + high];
  }

  /** @param {Box} box */
  fit([west, south, east, north]) {
    this.centre = [(west + east) / 2, (south + north) / 2];
    this.box = [east - west, north - south];
    this.span = 0;
    this.redraw();
  }

  /** @param {number} factor below 1: closer */
  zoom(factor) {
    this.span = Math.max(LEAST, this.km * Math.min(this.width, this.height) * factor);
    this.redraw();
    this.moved();
  }

  /** @param {number} east km @param {number} north km */
  toPixel(east, north) {
    return [this.width / 2 + (east - this.centre[0]) / this.km, this.height / 2 - (north - this.centre[1]) / this.km];
  }

  /** Kilometres of a pixel. */
  get km() {
    if (this.span) return this.span / Math.min(this.width, this.height);
    const [wide, high] = this.box ?? [1, 1];
    return 1.12 * Math.max(wide / this.width, high / this.height, LEAST / this.width);
  }

  /** @param {number[][]} points km @param {boolean} [closed] */
  path(points, closed = false) {
    return points.map(([x, y], i) => {
      const [column, row] = this.toPixel(x, y);
      return `${i ? "L" : "M"}${f(column)} ${f(row)}`;
    }).join("") + (closed && points.length ? "Z" : "");
  }

  redraw() {
    this.width = Math.round(this.element.clientWidth);
    this.height = Math.round(this.element.clientHeight);
    if (!this.width || !this.height) return;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    const shore = this.coast && drawn(this.coast, this.part, (x, y) => this.toPixel(x, y));
    put(this.svg, shore ? svg("path", { class: "coast", d: shore }) : null, ...this.marks(this), ...this.#ticks());
  }

  /** @param {string[]} names which buttons follow, e.g. to fit */
  buttons(...names) {
    const press = (/** @type {string} */ name, /** @type {() => void} */ act) => h("button", { type: "button", onclick: act }, name);
    return h("div.buttons", {}, press("Closer", () => this.zoom(0.6)), press("Farther", () => this.zoom(1 / 0.6)), ...names);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const step = 0.1 * this.km * this.width;
    const moves = /** @type {Record<string, number[]>} */ ({
      ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step],
    });
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves[event.key]) this.#move(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(0.8);
    else if (event.key === "-") this.zoom(1.25);
    else return;
    event.preventDefault();
  }

  /** @param {...number} by km */
  #move(...by) {
    this.centre = this.centre.map((v, i) => v + by[i]);
    this.redraw();
    this.moved();
  }

  /** @param {PointerEvent} event */
  #drag(event) {
    if (event.button) return;
    let [x, y] = [event.clientX, event.clientY];
    const go = (/** @type {PointerEvent} */ next) => {
      const [dx, dy] = [next.clientX - x, next.clientY - y];
      if (Math.hypot(dx, dy) < 3) return;
      [x, y] = [next.clientX, next.clientY];
      this.#move(-dx * this.km, dy * this.km);
    };
    const done = () => { removeEventListener("pointermove", go); removeEventListener("pointerup", done); };
    addEventListener("pointermove", go);
    addEventListener("pointerup", done);
  }

  #ticks() {
    const [across, along] = [this.width - 64, this.height - 54].map((pixels) => tickStep(this.km * pixels));
    const [west, south, east, north] = this.part;
    const found = [];
    for (let x = Math.ceil(west / across) * across; x < east; x += across) {
      const [column] = this.toPixel(x, 0);
      if (column < 40 || column > this.width - 24) continue;
      found.push(svg("path", { class: "tick", d: `M${f(column)} ${this.height}v-6` }),
        svg("text", { x: f(column), y: this.height - 9, "text-anchor": "middle" }, plain(x)));
    }
    for (let y = Math.ceil(south / along) * along; y < north; y += along) {
      const [, row] = this.toPixel(0, y);
      if (row < 14 || row > this.height - 40) continue;
      found.push(svg("path", { class: "tick", d: `M0 ${f(row)}h6` }), svg("text", { x: 9, y: f(row + 4) }, plain(y)));
    }
    return [...found, svg("text", { x: this.width - 6, y: this.height - 24, "text-anchor": "end" }, "km east, north")];
  }
}

/** A box around points, with some room. @param {number[][]} points km @param {number} [least] km @returns {Box} */
export function around(points, least = 1) {
  const xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
  const [west, east, south, north] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const room = Math.max(least - (east - west), least - (north - south), 0) / 2;
  return [west - room, south - room, east + room, north + room];
}

export const f = (/** @type {number} */ v) => v.toFixed(1);
const plain = (/** @type {number} */ v) => String(Number(v.toPrecision(6)));
