// @ts-check
/** Displacement at a place through time: a chart and a table. */

import { h } from "/dashboard/dom.js";
import { series } from "/dashboard/elements/series.js";
import { YEAR } from "/dashboard/physics/viscoelastic/greens.js";

// besides the output times, for smooth curves
const POINTS = 100;

/**
 * @param {any} curve @param {{nodes: number[], weights: number[]}} place on the surface
 * @param {import("/dashboard/physics/viscoelastic/greens.js").Greens} greens
 * @param {number} step of the output times, marked @param {boolean} change only since the event
 * @param {string} [title] of the campaign, where there are two
 */
export function placeSeries(curve, place, { times, until }, step, change, title) {
  const even = Array.from({ length: POINTS + 1 }, (_, i) => (until * i) / POINTS);
  const dense = [...new Set([...even, ...times])].sort((a, b) => a - b);
  const first = change ? curve.series(place, [0])[0] : [0, 0, 0];
  const less = (/** @type {number[]} */ row) => row.map((v, i) => v - first[i]);
  const output = curve.series(place, times).map(less);
  const { errors } = curve, names = ["yr", "east", "north", "up", ...(errors ? ["error"] : [])];
  return h("div", {}, title ? h("h3", {}, title) : null,
    series(dense.map((t) => t / YEAR), curve.series(place, dense).map(less), times[step] / YEAR),
    h("div.scroll", { tabindex: 0, role: "region", "aria-label": title ? `Table of ${title}` : "Table" }, h("table", {},
      h("thead", {}, h("tr", {}, names.map((name, i) => h(`th.${i ? name : "year"}`, { scope: "col" }, name)))),
      h("tbody", {}, times.map((t, i) => h("tr", { "aria-current": i === step && "true" },
        h("td", {}, String(Number((t / YEAR).toPrecision(4)))),
        output[i].map((/** @type {number} */ v) => h("td", { "data-value": v }, v.toExponential(4))),
        errors && ((/** @type {number} */ v) => h("td", { "data-error": v }, v.toExponential(1)))(errors.near(place, t, change))))))));
}
