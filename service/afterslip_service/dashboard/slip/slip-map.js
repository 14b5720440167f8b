// @ts-check
/** Slip of one inversion on a map, with its data. */

import { svg } from "/dashboard/dom.js";
import { css, table } from "/dashboard/elements/colours.js";
import { KmMap, f } from "/dashboard/elements/km-map.js";
import { fixed } from "/dashboard/format.js";
import { contour } from "/dashboard/slip/contours.js";

// pixels of the longest arrow
export const LONGEST = 46;
const CLASSES = 32, NEAR = 14, PIXELS = 3, LINE = 14, LETTER = 6.2;
const KINDS = /** @type {("observed" | "predicted")[]} */ (["observed", "predicted"]);

/**
 * @typedef {object} Look the same for maps side by side
 * @property {string} shade
 * @property {number} most value at the end of the colours
 * @property {number} step between contours, 0: none
 * @property {"horizontal" | "up" | "none"} arrows
 * @property {"observed" | "predicted" | "residual" | "all"} pixels all: beside each other
 * @property {number} epoch yr
 * @property {boolean} rake
 * @property {boolean} resolution
 * @property {string} station
 * @property {number} turn degrees, in three dimensions: 0 is looked at from the south
 * @property {number} tilt degrees: 90 is from above
 * @property {number} longest m, of the longest arrow, observed or predicted
 * @property {number} sight m, at the ends of the colours of lines of sight
 */

export class SlipMap {
  /**
   * @param {import("/dashboard/slip/result.js").SlipResult} result
   * @param {Look} look
   * @param {(name: string) => void} chosen a station was pointed at
   * @param {() => void} moved
   * @param {Look["pixels"]} [pixels] of this map alone
   */
  constructor(result, look, chosen, moved, pixels) {
    this.pixels = pixels;
    this.result = result;
    this.look = look;
    this.map = new KmMap(`Slip of ${result.inversion.name}`, () => this.#marks(), moved);
    this.map.frame(result.frame);
    this.map.element.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (event.buttons) return;
      const box = this.map.element.getBoundingClientRect();
      const station = this.#nearest(event.clientX - box.left, event.clientY - box.top);
      if (station && station !== this.look.station) chosen(station);
    });
  }

  /** @param {number} column @param {number} row @returns {string | null} */
  #nearest(column, row) {
    let best = null, least = NEAR;
    for (const { name, x, y } of this.result.stations) {
      const [a, b] = this.map.toPixel(x, y), away = Math.hypot(a - column, b - row);
      if (away < least) [best, least] = [name, away];
    }
    return best;
  }

  #marks() {
    const { rake, resolution } = this.look;
    // pixels beside each other are compared: what lies below is lines alone
    return [...(this.pixels ? [] : this.#shades()), ...this.#contours(), ...(resolution ? this.#resolution() : []),
      ...(rake && !this.pixels ? this.#rakes() : []), ...this.#stations()];
  }

  /** Triangles by their mean value, those of one colour together. */
  #shades() {
    const { nodes, triangles } = this.result, { shade, most } = this.look;
    const values = this.result.field(shade), colours = table(shade === "slip" ? "slip" : "one");
    /** @type {string[]} */
    const paths = Array(CLASSES).fill("");
    for (const corners of triangles) {
      const mean = corners.reduce((sum, node) => sum + values[node], 0) / 3;
      const row = Math.max(0, Math.min(CLASSES - 1, Math.floor((CLASSES * mean) / (most || 1))));
      paths[row] += this.map.path(corners.map((node) => nodes[node]), true);
    }
    return paths.flatMap((d, i) => {
      const colour = css(colours[Math.round((255 * (i + 0.5)) / CLASSES)]);
      return d ? [svg("path", { d, fill: colour, stroke: colour, "stroke-width": 0.7, class: "shade" })] : [];
    });
  }

  #contours() {
    const { step, most, shade } = this.look;
    if (!step) return [];
    const values = this.result.field(shade);
    let d = "";
    for (let level = step; level < most; level += step) {
      for (const piece of contour(this.result.nodes, this.result.triangles, values, level)) d += this.map.path(piece);
    }
    return [svg("path", { class: "contour", d })];
  }

  #resolution() {
    return this.result.sources.map(({ x, y, resolution }) => {
      const [cx, cy] = this.map.toPixel(x, y);
      return svg("circle", { class: "resolution", cx: f(cx), cy: f(cy), r: f(1 + 8 * Math.sqrt(Math.max(resolution, 0))) },
        svg("title", {}, `resolution ${resolution.toFixed(2)}`));
    });
  }

  /** The motion of the side above, at the unit sources. */
  #rakes() {
    const { nodes, vectors, sources } = this.result;
    const most = Math.max(...vectors.map(([e, n]) => Math.hypot(e, n)), 1e-9);
    const d = sources.map(({ x, y }) => {
      let best = 0, least = Infinity;
      nodes.forEach(([a, b], i) => { const away = (a - x) ** 2 + (b - y) ** 2; if (away < least) [best, least] = [i, away]; });
      return arrow(this.map.toPixel(x, y), vectors[best], 24 / most);
    }).join("");
    return [svg("path", { class: "halo", d }), svg("path", { class: "rake", d })];
  }

  /**
   * The name of the station that is pointed at, and what slip leaves of its data: the table may be out of sight.
   * @param {number[]} at pixels @param {string} name @param {import("/dashboard/slip/result.js").Datum[]} data
   */
  #label([column, row], name, data) {
    const lines = [name, ...data.map(({ component, observed, predicted }) => `${component}: residual ${fixed(1e3 * (observed - predicted), 1)} mm`)];
    const right = column < this.map.width - 12 - LETTER * Math.max(...lines.map(({ length }) => length));
    const top = Math.max(14, Math.min(row - 8, this.map.height - 6 - LINE * (lines.length - 1)));
    return lines.map((words, i) => svg("text", {
      x: f(column + (right ? 12 : -12)), y: f(top + LINE * i), "text-anchor": right ? "start" : "end",
    }, words));
  }

  #stations() {
    const { arrows, epoch, station: chosen, longest, sight, pixels } = this.look;
    const marks = [], both = { observed: "", predicted: "" };
    const colours = table("two");
    for (const { name, x, y, data } of this.result.stations) {
      const at = this.map.toPixel(x, y), now = data.filter((datum) => datum.epoch === epoch);
      const line = now.find(({ axis }) => axis === 3);
      if (line) {
        const kind = this.pixels ?? pixels;
        const value = kind === "residual" ? line.observed - line.predicted : line[kind === "predicted" ? kind : "observed"];
        const fill = css(colours[Math.max(0, Math.min(255, Math.round(127.5 * (1 + value / (sight || 1)))))]);
        marks.push(svg("circle", { class: "sight", cx: f(at[0]), cy: f(at[1]), r: this.pixels ? PIXELS + 1 : PIXELS, fill }));
      } else {
        marks.push(svg("circle", { class: "place", cx: f(at[0]), cy: f(at[1]), r: 2.2 }, svg("title", {}, name)));
        for (const kind of KINDS) {
          // two bars of the vertical stand beside each other
          const from = arrows === "up" ? [at[0] + (kind === "observed" ? -2.5 : 2.5), at[1]] : at;
          if (arrows !== "none" && !this.pixels) both[kind] += arrow(from, vector(now, kind, arrows), LONGEST / (longest || 1));
        }
      }
      if (name === chosen) marks.push(svg("circle", { class: "chosen", cx: f(at[0]), cy: f(at[1]), r: 9 }), ...this.#label(at, name, now));
    }
    return [svg("path", { class: "halo", d: both.observed }), svg("path", { class: "observed", d: both.observed }),
      svg("path", { class: "predicted", d: both.predicted }), ...marks];
  }
}

/** What a station's data of an epoch say of its arrow; what was not observed is not drawn. @param {import("/dashboard/slip/result.js").Datum[]} now @param {"observed" | "predicted"} kind @param {Look["arrows"]} arrows @returns {number[]} east, north on the map */
function vector(now, kind, arrows) {
  const [east, north, up] = [0, 1, 2].map((axis) => now.find((datum) => datum.axis === axis)?.[kind] ?? 0);
  return arrows === "up" ? [0, up] : [east, north];
}

/** Length of the longest arrow, m. @param {import("/dashboard/slip/result.js").Station[]} stations @param {number} epoch @param {Look["arrows"]} arrows */
export function longest(stations, epoch, arrows) {
  const lengths = stations.flatMap(({ data }) => {
    const now = data.filter((datum) => datum.epoch === epoch);
    return KINDS.map((kind) => Math.hypot(...vector(now, kind, arrows)));
  });
  return lengths.reduce((most, length) => Math.max(most, length), 0);
}

/** @param {number[]} from pixels @param {number[]} vector east, north @param {number} scale pixels for one */
function arrow([x, y], [east, north], scale) {
  const dx = east * scale, dy = -north * scale, length = Math.hypot(dx, dy);
  if (length < 1) return "";
  const head = Math.min(5, length / 2) / length, [tx, ty] = [x + dx, y + dy];
  return `M${f(x)} ${f(y)}L${f(tx)} ${f(ty)}M${f(tx - head * (dx - 0.5 * dy))} ${f(ty - head * (dy + 0.5 * dx))}L${f(tx)} ${f(ty)}`
    + `L${f(tx - head * (dx + 0.5 * dy))} ${f(ty - head * (dy - 0.5 * dx))}`;
}
