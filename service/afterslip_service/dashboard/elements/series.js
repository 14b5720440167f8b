// @ts-check
/** East, north and up against time. */

import { svg } from "/dashboard/dom.js";

const WIDTH = 360, HEIGHT = 230, LEFT = 62, RIGHT = 12, TOP = 12, BOTTOM = 40;
const NAMES = ["east", "north", "up"];

/** @param {number} t yr @param {number} last yr */
const column = (t, last) => LEFT + ((WIDTH - LEFT - RIGHT) * t) / last;

/** Numbers of an axis have room for about eight letters. @param {number} v */
const short = (v) => (v === 0 ? "0" : Math.abs(v) < 1e-3 || Math.abs(v) >= 1e4 ? v.toExponential(2) : v.toPrecision(3));

/** Move the line to another time; the rest stays as drawn. @param {any} chart @param {number} now yr */
export function mark(chart, now) {
  const line = chart.querySelector(".now"), x = column(now, Number(chart.dataset.last));
  line.setAttribute("x1", x);
  line.setAttribute("x2", x);
}

/**
 * @param {number[]} times
 * @param {number[][]} values (time, 3)
 * @param {number} now marked by a line
 * @param {string} [unit]
 * @param {string} [second] unit of times
 */
export function series(times, values, now, unit = "m per m of slip", second = "yr") {
  const all = values.flat();
  let low = Math.min(0, ...all), high = Math.max(0, ...all);
  if (low === high) [low, high] = [-1, 1];
  const last = Math.max(...times, 1e-9);
  const x = (/** @type {number} */ t) => column(t, last);
  const y = (/** @type {number} */ v) => TOP + ((HEIGHT - TOP - BOTTOM) * (high - v)) / (high - low);
  const text = (/** @type {any} */ at, /** @type {string} */ words) => svg("text", at, words);
  const end = values[values.length - 1];
  return svg("svg", {
    class: "chart series", "data-last": last, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `Displacement in ${unit} after ${last} ${second}: ${NAMES.map((name, i) => `${name} ${end[i].toPrecision(4)}`).join(", ")}`,
  },
  // zero only where its number has room
  [low, 0, high].filter((v, i) => i !== 1 || Math.min(y(low) - y(v), y(v) - y(high)) > 14).map((v) => [
    svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(v), y2: y(v) }),
    text({ x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, short(v)),
  ]).flat(),
  svg("line", { class: "now", x1: x(now), x2: x(now), y1: TOP, y2: HEIGHT - BOTTOM }),
  NAMES.map((name, axis) => svg("path", {
    class: name, d: values.map((row, i) => `${i ? "L" : "M"}${x(times[i]).toFixed(1)} ${y(row[axis]).toFixed(1)}`).join(""),
  })),
  text({ x: LEFT, y: HEIGHT - 22, "text-anchor": "middle" }, "0"),
  text({ x: WIDTH - RIGHT, y: HEIGHT - 22, "text-anchor": "end" }, `${Number(last.toPrecision(6))}`),
  text({ x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, `${second} after the event`));
}
