// @ts-check
/** Series of all stations by their distance, as lines through time. */

import { h, put, svg } from "/dashboard/dom.js";
import { f } from "/dashboard/elements/km-map.js";
import { largest } from "/dashboard/physics/waves/waves.js";

const LEFT = 50, TOP = 28, BOTTOM = 40, GAP = 14, LETTER = 6.6, LABEL = 13;
// of the distance from one station to the next, at a gain of 1
const ROOM = 1.5;
export const AXES = ["east", "north", "up"];

/**
 * @typedef {object} Shown
 * @property {ArrayLike<number>} series (station, 3, sample)
 * @property {number[]} times s
 * @property {{name: string, distance: number}[]} stations km
 * @property {number[]} axes which components, one panel each
 * @property {boolean} own each station has its own scale
 * @property {number} gain
 * @property {boolean} even stations lie at equal distances, in their order
 * @property {[number, number]} span s, from and to
 * @property {{name: string, at: (km: number) => number}[]} guides
 * @property {string} unit
 */

export class RecordSection {
  /** @param {(station: number, time: number) => void} picked */
  constructor(picked) {
    /** @type {Shown | null} */
    this.shown = null;
    /** @type {number} */
    this.station = -1;
    this.now = 0;
    this.width = this.height = 0;
    /** of a station, from zero up @type {number[]} */
    this.places = [];
    this.drawing = svg("svg", { role: "img", "aria-label": "Record section" });
    this.hover = h("p.sub.hover", {}, "\u00a0");
    this.element = h("div.record", {
      tabindex: 0, role: "group", "aria-label": "Record section. Up and down choose a station, left and right a time",
      onpointermove: (/** @type {PointerEvent} */ event) => { const at = this.#near(event); if (at) this.#tell(at.station, at.sample, at.axis); },
      onpointerleave: () => this.#untell(),
      onclick: (/** @type {MouseEvent} */ event) => { const at = this.#near(event); if (at && this.shown) picked(at.station, this.shown.times[at.sample]); },
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const { shown } = this, order = this.order, sample = this.sample(this.now);
        const up = { ArrowUp: 1, ArrowDown: -1 }[event.key], on = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!shown || (!up && !on)) return;
        event.preventDefault();
        const next = Math.max(0, Math.min(order.length - 1, order.indexOf(this.station) + (up ?? 0)));
        picked(up || this.station < 0 ? order[next] : this.station, shown.times[Math.max(0, Math.min(shown.times.length - 1, sample + (on ?? 0)))]);
      },
    }, this.drawing);
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.element);
  }

  /** Stations, the nearest first. @returns {number[]} */
  get order() {
    const { stations } = /** @type {Shown} */ (this.shown);
    return stations.map((_, i) => i).sort((a, b) => stations[a].distance - stations[b].distance);
  }

  /** @param {number} time s @returns {number} of the sample next to it */
  sample(time) {
    const { times } = /** @type {Shown} */ (this.shown);
    return Math.max(0, Math.min(times.length - 1, Math.round((time - times[0]) / (times[1] - times[0]))));
  }

  /** @param {Shown} shown */
  show(shown) { this.shown = shown; this.draw(); }

  /** @param {number} station @param {number} time s */
  mark(station, time) {
    const same = this.station === station;
    this.station = station;
    this.now = time;
    if (!same) { this.draw(); return; }
    this.#cursor();
  }

  draw() {
    const { shown } = this;
    if (!shown?.stations.length) return;
    this.element.style.height = `${Math.min(900, Math.max(380, 110 + 26 * shown.stations.length))}px`;
    this.width = Math.round(this.element.clientWidth);
    this.height = Math.round(this.element.clientHeight);
    if (!this.width || !this.height) return;
    const names = Math.min(92, 12 + LETTER * Math.max(...shown.stations.map(({ name }) => name.length)));
    this.right = this.width - names;
    this.#scale();
    this.drawing.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.drawing.setAttribute("aria-label", this.#words());
    this.cursors = shown.axes.map(() => svg("line", { class: "now", y1: TOP, y2: this.height - BOTTOM }));
    put(this.drawing, ...this.#frame(), ...shown.axes.flatMap((axis, panel) => this.#panel(axis, panel)), ...this.#names(), ...this.cursors);
    this.#cursor();
  }

  /** Where stations lie and how large motion is drawn. */
  #scale() {
    const shown = /** @type {Shown} */ (this.shown), { stations, series, times, axes, own, gain, even } = shown;
    const order = this.order, high = this.height - TOP - BOTTOM, count = order.length;
    const near = stations[order[0]].distance, far = stations[order[count - 1]].distance;
    // the largest motion reaches no farther than the panel
    const flat = even || far <= near, room = high / (count - 1 + 2 * ROOM), edge = ROOM * room;
    this.places = stations.map(({ distance }, i) => edge + (flat ? room * order.indexOf(i) : ((high - 2 * edge) * (distance - near)) / (far - near)));
    /** of a distance @type {(km: number) => number} */
    this.toRow = (km) => this.height - BOTTOM - edge - ((high - 2 * edge) * (km - near)) / (far - near || 1);
    this.flat = flat;
    this.near = near;
    this.far = far;
    const most = (/** @type {number} */ i) => Math.max(...axes.map((axis) => largest(Array.prototype.slice.call(series, (3 * i + axis) * times.length, (3 * i + axis + 1) * times.length))));
    const peaks = stations.map((_, i) => most(i));
    this.peak = Math.max(...peaks);
    // pixels of a unit of motion
    this.sizes = peaks.map((peak) => (gain * (own ? 0.5 : ROOM) * room) / ((own ? peak : this.peak) || 1));
  }

  /** @param {number} panel @returns {[number, number]} where its time begins and ends */
  #sides(panel) {
    const count = /** @type {Shown} */ (this.shown).axes.length, right = this.right ?? this.width;
    const wide = (right - LEFT - GAP * (count - 1)) / count;
    return [LEFT + panel * (wide + GAP), LEFT + panel * (wide + GAP) + wide];
  }

  /** @param {number} panel @param {number} time s */
  #toColumn(panel, time) {
    const [left, right] = this.#sides(panel), [from, to] = /** @type {Shown} */ (this.shown).span;
    return left + ((right - left) * (time - from)) / (to - from);
  }

  /** @param {number} station */
  #row(station) { return this.height - BOTTOM - this.places[station]; }

  /** Distances along the left side. */
  #frame() {
    const shown = /** @type {Shown} */ (this.shown), { near = 0, far = 0 } = this, marks = [];
    if (!this.flat) {
      const every = step((far - near) / 5);
      for (let km = Math.ceil(near / every) * every; km <= far; km += every) {
        const row = /** @type {(km: number) => number} */ (this.toRow)(km);
        marks.push(svg("line", { class: "axis", x1: LEFT - 4, x2: LEFT, y1: f(row), y2: f(row) }),
          svg("text", { x: LEFT - 7, y: f(row + 4), "text-anchor": "end" }, plain(km)));
      }
    } else {
      const every = Math.ceil(shown.stations.length / ((this.height - TOP - BOTTOM) / LABEL));
      this.order.forEach((i, k) => {
        if (k % every === 0) marks.push(svg("text", { x: LEFT - 7, y: f(this.#row(i) + 4), "text-anchor": "end" }, plain(shown.stations[i].distance)));
      });
    }
    const middle = (TOP + this.height - BOTTOM) / 2;
    return [...marks, svg("text", { x: 12, y: f(middle), "text-anchor": "middle", transform: `rotate(-90 12 ${f(middle)})` }, "km from the slip")];
  }

  /** @param {number} axis @param {number} panel */
  #panel(axis, panel) {
    const shown = /** @type {Shown} */ (this.shown), [from, to] = shown.span, [left, right] = this.#sides(panel);
    const bottom = this.height - BOTTOM, every = step((to - from) / Math.max(2, Math.min(8, (right - left) / 55)));
    const marks = [svg("rect", { class: "box", x: f(left), y: TOP, width: f(right - left), height: bottom - TOP }),
      svg("text", { x: f((left + right) / 2), y: 12, "text-anchor": "middle", class: "title" }, AXES[axis])];
    for (let t = Math.ceil(from / every - 1e-9) * every; t <= to + 1e-9; t += every) {
      const x = this.#toColumn(panel, t);
      marks.push(svg("line", { class: "axis", x1: f(x), x2: f(x), y1: bottom, y2: bottom + 4 }),
        svg("text", { x: f(x), y: bottom + 17, "text-anchor": "middle" }, plain(t)));
    }
    marks.push(svg("text", { x: f((left + right) / 2), y: this.height - 6, "text-anchor": "middle" }, right - left < 120 ? "s" : "s after slip begins"));
    const lines = this.order.map((i) => svg("path", { class: i === this.station ? "trace chosen" : "trace", d: this.#trace(i, axis, panel) }));
    return [...marks, ...lines, ...this.#guides(panel)];
  }

  /** One line; where many samples share a column, what they reach. @param {number} station @param {number} axis @param {number} panel */
  #trace(station, axis, panel) {
    const { series, times, span: [from, to] } = /** @type {Shown} */ (this.shown);
    const row = this.#row(station), size = /** @type {number[]} */ (this.sizes)[station], start = (3 * station + axis) * times.length;
    const y = (/** @type {number} */ i) => f(Math.max(TOP, Math.min(this.height - BOTTOM, row - size * series[start + i])));
    const first = Math.max(0, this.sample(from)), last = this.sample(to), [left, right] = this.#sides(panel);
    const each = Math.ceil((last - first) / (2 * (right - left))), parts = [];
    for (let i = first; i <= last; i += each) {
      let low = i, high = i;
      for (let k = i; k < Math.min(i + each, last + 1); k += 1) {
        if (series[start + k] < series[start + low]) low = k;
        if (series[start + k] > series[start + high]) high = k;
      }
      for (const k of low === high ? [low] : [Math.min(low, high), Math.max(low, high)]) parts.push(`${f(this.#toColumn(panel, times[k]))} ${y(k)}`);
    }
    return `M${parts.join("L")}`;
  }

  /** @param {number} panel */
  #guides(panel) {
    const { guides, stations, span: [from, to] } = /** @type {Shown} */ (this.shown), { near = 0, far = 0 } = this;
    const steps = Array.from({ length: 61 }, (_, i) => near + ((far - near) * i) / 60);
    return guides.flatMap(({ name, at }) => {
      const points = this.flat ? this.order.map((i) => [at(stations[i].distance), this.#row(i)])
        : steps.map((km) => [at(km), /** @type {(km: number) => number} */ (this.toRow)(km)]);
      const inside = points.filter(([t]) => t >= from && t <= to).map(([t, row]) => [this.#toColumn(panel, t), row]);
      if (!inside.length) return [];
      const [x, y] = inside[inside.length - 1];
      return [svg("path", { class: `guide ${name}`, d: `M${inside.map(([column, row]) => `${f(column)} ${f(row)}`).join("L")}` }),
        svg("text", { class: `guide ${name}`, x: f(x), y: f(y - 8), "text-anchor": "middle" }, name)];
    });
  }

  /** Names beside the lines, none over another. */
  #names() {
    const { stations } = /** @type {Shown} */ (this.shown), right = this.right ?? this.width;
    const order = this.order, rows = order.map((i) => -this.#row(i));
    const room = (this.height - TOP) / order.length >= LABEL;
    const heights = room ? apart(rows, LABEL) : rows;
    let last = -Infinity;
    return order.flatMap((i, k) => {
      const height = Math.min(heights[k], -TOP);
      if (!room && i !== this.station && height - last < LABEL) return [];
      last = height;
      return [svg("path", { class: "axis", d: `M${f(right)} ${f(this.#row(i))}L${f(right + 8)} ${f(-height)}` }),
        svg("text", { class: i === this.station ? "chosen" : null, x: f(right + 10), y: f(4 - height) }, short(stations[i].name))];
    });
  }

  #cursor() {
    this.cursors?.forEach((/** @type {any} */ line, /** @type {number} */ panel) => {
      const x = f(this.#toColumn(panel, this.now)), [from, to] = /** @type {Shown} */ (this.shown).span;
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      line.toggleAttribute("hidden", this.now < from || this.now > to);
    });
  }

  /** The station whose line is next to a place. @param {MouseEvent} event */
  #near(event) {
    const { shown } = this, box = this.drawing.getBoundingClientRect();
    if (!shown || !this.places.length) return null;
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const panel = shown.axes.findIndex((_, i) => this.#sides(i)[1] + GAP / 2 >= x);
    const axis = shown.axes[panel < 0 ? shown.axes.length - 1 : panel], [left, right] = this.#sides(panel < 0 ? shown.axes.length - 1 : panel);
    const [from, to] = shown.span, along = Math.max(0, Math.min(1, (x - left) / (right - left)));
    const sample = this.sample(from + along * (to - from)), sizes = /** @type {number[]} */ (this.sizes);
    const far = (/** @type {number} */ i) => Math.abs(this.#row(i) - sizes[i] * shown.series[(3 * i + axis) * shown.times.length + sample] - y);
    const station = shown.stations.reduce((best, _, i) => (far(i) < far(best) ? i : best), 0);
    return { station, sample, axis };
  }

  /** @param {number} station @param {number} sample @param {number} axis */
  #tell(station, sample, axis) {
    const { stations, series, times, unit, axes } = /** @type {Shown} */ (this.shown);
    const value = series[(3 * station + axis) * times.length + sample];
    put(this.hover, `${stations[station].name}, ${plain(stations[station].distance)} km, ${plain(times[sample])} s: ${value.toPrecision(3)} ${unit} ${AXES[axis]}`);
    const row = this.order.indexOf(station), lines = [...this.drawing.querySelectorAll(".trace")];
    lines.forEach((line, i) => line.classList.toggle("near", i % (lines.length / axes.length) === row));
  }

  #untell() {
    put(this.hover, "\u00a0");
    for (const line of this.drawing.querySelectorAll(".near")) line.classList.remove("near");
  }

  /** For those who do not see it. */
  #words() {
    const { stations, axes, unit } = /** @type {Shown} */ (this.shown), { near = 0, far = 0, peak = 0 } = this;
    return `Record section, ${axes.map((axis) => AXES[axis]).join(", ")}: ${stations.length} stations, ${plain(near)} to ${plain(far)} km from the slip, at most ${peak.toPrecision(3)} ${unit}`;
  }
}

/** Move labels as little as they need, so that none is over another. @param {number[]} places sorted @param {number} least */
export function apart(places, least) {
  // labels that touch are one block around the mean of where they want to be
  /** @type {number[][]} */
  const blocks = [];
  const mean = (/** @type {number[]} */ block) => block.reduce((sum, v) => sum + v, 0) / block.length;
  for (const place of places) {
    blocks.push([place]);
    while (blocks.length > 1) {
      const [first, second] = blocks.slice(-2);
      if (mean(second) - mean(first) >= (least * (first.length + second.length)) / 2) break;
      blocks.splice(-2, 2, [...first, ...second]);
    }
  }
  return blocks.flatMap((block) => block.map((_, i) => mean(block) + least * (i - (block.length - 1) / 2)));
}

/** @param {number} rough @returns {number} a round one above it */
export function step(rough) {
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  return ([1, 2, 5, 10].find((n) => n * power >= rough) ?? 10) * power;
}

export const plain = (/** @type {number} */ v) => String(Number(v.toPrecision(3))).replaceAll("-", "−");
const short = (/** @type {string} */ name) => (name.length > 12 ? `${name.slice(0, 11)}…` : name);
