// @ts-check
/** Where everything of a campaign lies, before anything is solved: a map and a section. */

import { h, put, svg } from "/dashboard/dom.js";
import { KmMap, around, f } from "/dashboard/elements/km-map.js";

const NAMED = 60;

export class PlanMap {
  constructor() {
    /** @type {any} */
    this.geometry = null;
    this.map = new KmMap("Map of faults, unit sources, stations and the domain", (map) => this.#marks(map));
    this.section = h("div", {});
    const press = (/** @type {string} */ name, /** @type {() => void} */ act) => h("button", { type: "button", onclick: act }, name);
    this.element = h("div", {}, this.map.element,
      h("div.key", {}, key("fault", "fault, thick at its upper edge"), key("unit", "unit source"), key("station", "station"), key("domain", "domain")),
      this.map.buttons(press("Around the fault", () => this.fit()), press("Whole domain", () => this.fit(true))), this.section);
  }

  /** @param {any} geometry of a plan, km */
  show(geometry) {
    const first = !this.geometry || this.geometry.name !== geometry.name
      || JSON.stringify(this.geometry.faults) !== JSON.stringify(geometry.faults);
    this.geometry = geometry;
    this.map.frame(geometry.frame);
    if (first) this.fit();
    else this.map.redraw();
    put(this.section, section(geometry));
  }

  /** @param {boolean} [whole] */
  fit(whole = false) {
    const { domain, faults, stations } = this.geometry;
    const corners = [[domain.x[0], domain.y[0]], [domain.x[1], domain.y[1]]];
    const near = [...faults.flatMap((/** @type {any} */ fault) => fault.outline), ...stations.map((/** @type {any} */ s) => [s.x, s.y])];
    this.map.fit(around(whole || !near.length ? corners : near, 10));
  }

  /** @param {KmMap} map */
  #marks(map) {
    if (!this.geometry) return [];
    const { domain, faults, bodies, stations } = this.geometry;
    const [x, y] = [domain.x, domain.y];
    const corners = [[x[0], y[0]], [x[1], y[0]], [x[1], y[1]], [x[0], y[1]]];
    const marks = [svg("path", { class: "domain", d: map.path(corners, true) })];
    for (const body of bodies) {
      for (const point of body.top) {
        const [cx, cy] = map.toPixel(point[0], point[1]);
        marks.push(svg("circle", { class: "body", cx: f(cx), cy: f(cy), r: 1 }));
      }
    }
    for (const fault of faults) {
      marks.push(svg("path", { class: "fault", d: map.path(fault.outline, true) }, svg("title", {}, fault.name)),
        svg("path", { class: "top", d: map.path(fault.top) }));
      for (const source of fault.sources) {
        const [cx, cy] = map.toPixel(source[0], source[1]);
        marks.push(svg("circle", { class: "unit", cx: f(cx), cy: f(cy), r: 2.5 }));
      }
    }
    const at = stations.map((/** @type {any} */ { x: east, y: north }) => map.toPixel(east, north));
    const names = stations.length <= NAMED ? apart(at, stations.map((/** @type {any} */ { name }) => name)) : [];
    stations.forEach((/** @type {any} */ { name }, /** @type {number} */ i) => {
      const [column, row] = at[i];
      marks.push(svg("path", { class: "station", d: `M${f(column - 4)} ${f(row + 3)}h8l-4 -7z` }, svg("title", {}, name)));
      if (names[i]) marks.push(svg("text", { x: f(column + 6), y: f(row + 4) }, name));
    });
    return marks;
  }
}

/** Which names are written: those that cover no other name and no triangle. @param {number[][]} at px @param {string[]} names */
export function apart(at, names) {
  /** @type {number[][]} */
  const taken = at.map(([x, y]) => [x - 4, y - 4, x + 4, y + 3]);
  return names.map((name, i) => {
    const [x, y] = at[i], box = [x + 6, y - 5, x + 6 + 7 * name.length, y + 5];
    const free = taken.every(([left, top, right, bottom], k) => k === i || left > box[2] || right < box[0] || top > box[3] || bottom < box[1]);
    if (free) taken.push(box);
    return free;
  });
}

/** @param {string} name @param {string} words */
const key = (name, words) => h("span", {}, svg("svg", { viewBox: "0 0 16 12", width: 16, height: 12, "aria-hidden": "true" },
  name === "station" ? svg("path", { class: name, d: "M4 10h8l-4 -7z" })
    : name === "unit" ? svg("circle", { class: name, cx: 8, cy: 6, r: 2.5 })
      : svg("path", { class: name, d: "M1 2h14v8h-14z" })), words);

const WIDTH = 520, LEFT = 44, RIGHT = 8, TOP = 12, BOTTOM = 34;

/** Layers and faults down the dip of the first fault. @param {any} geometry */
function section({ domain, layers, faults, section: place }) {
  const lines = faults.map((/** @type {any} */ { line }) => line).filter((/** @type {any[]} */ line) => line.length);
  if (!lines.length) return null;
  const reach = lines.flat().map((/** @type {number[]} */ [s]) => s), depths = lines.flat().map((/** @type {number[]} */ [, z]) => -z);
  const wide = Math.max(...reach) - Math.min(...reach), middle = (Math.max(...reach) + Math.min(...reach)) / 2;
  // down into the layer below the deepest fault, unless that is far
  const deepest = Math.max(...depths), below = layers.find((/** @type {any} */ layer) => layer.bottom > deepest);
  const enough = Math.min(domain.depth, Math.max(1.5 * deepest, 0.3 * wide, Math.min(1.25 * (below?.bottom ?? 0), 4 * deepest)));
  // all of a domain that is not much deeper; else it is said where the section ends
  const deep = domain.depth <= 2 * enough ? domain.depth : enough, cut = deep < domain.depth;
  // the same scale along and down
  const span = Math.max(1.6 * wide, 2 * deep);
  const scale = (WIDTH - LEFT - RIGHT) / span, height = TOP + deep * scale + BOTTOM;
  const x = (/** @type {number} */ s) => LEFT + (s - middle + span / 2) * scale;
  const y = (/** @type {number} */ depth) => TOP + depth * scale;
  const marks = [];
  let top = 0;
  for (const layer of layers) {
    if (top >= deep) break;
    const bottom = Math.min(layer.bottom, deep), more = layer.bottom > bottom;
    marks.push(svg("rect", { class: layer.creeps ? "layer creeps" : "layer", x: LEFT, width: WIDTH - LEFT - RIGHT, y: f(y(top)), height: f((bottom - top) * scale) }));
    if ((bottom - top) * scale > 14) {
      marks.push(svg("text", { x: WIDTH - RIGHT - 6, y: f(y(bottom) - 5), "text-anchor": "end" }, `${layer.name}${layer.creeps ? ", flows" : ""}${more ? `, down to ${plain(layer.bottom)} km` : ""}`));
    }
    // no layer ends where the section is cut
    if (!more) marks.push(svg("text", { x: LEFT - 6, y: f(y(bottom) + 4), "text-anchor": "end" }, plain(bottom)));
    top = bottom;
  }
  if (cut) marks.push(svg("path", { class: "cut", d: `M${LEFT} ${f(y(deep))}${"l4 -4l4 4".repeat((WIDTH - LEFT - RIGHT) / 8)}` }));
  for (const line of lines) {
    marks.push(svg("path", { class: "top", d: line.map((/** @type {number[]} */ [s, z], /** @type {number} */ i) => `${i ? "L" : "M"}${f(x(s))} ${f(y(-z))}`).join("") }));
  }
  return h("figure.section", {}, svg("svg", { viewBox: `0 0 ${WIDTH} ${f(height)}`, role: "img", "aria-label": "Section down the dip of the first fault" },
    ...marks, svg("text", { x: LEFT - 6, y: TOP + 4, "text-anchor": "end" }, "0"),
    svg("path", { class: "tick", d: `M${f(x(middle - wide / 2))} ${f(height - BOTTOM + 4)}v6H${f(x(middle + wide / 2))}v-6` }),
    svg("text", { x: f(x(middle)), y: f(height - 6), "text-anchor": "middle" }, `${Math.round(10 * wide) / 10} km`)),
  h("figcaption", {}, `Section towards ${Math.round(place.azimuth)}° from north; depths in km${cut ? `. It is cut at ${plain(deep)} km; the domain reaches ${plain(domain.depth)} km` : ""}`));
}

/** @param {number} depth km */
const plain = (depth) => String(Number(depth.toPrecision(3)));
