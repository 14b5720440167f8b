// @ts-check
/** East, north and up of one station through time, below each other on one scale. */

import { svg } from "/dashboard/dom.js";
import { f } from "/dashboard/elements/km-map.js";
import { AXES, plain, step } from "/dashboard/physics/waves/record-section.js";
import { largest } from "/dashboard/physics/waves/waves.js";

const WIDTH = 420, LEFT = 14, RIGHT = 8, TOP = 20, EACH = 88, BOTTOM = 36;
const BASE = TOP + 3 * EACH;

/**
 * @param {string} title
 * @param {ArrayLike<number>[]} values of each component, (sample,)
 * @param {number[]} times s
 * @param {[number, number]} span s, from and to
 * @param {{name: string, time: number}[]} guides
 * @param {string} unit
 */
export function stationSeries(title, values, times, [from, to], guides, unit) {
  const most = Math.max(...values.map(largest)) || 1, x = (/** @type {number} */ t) => LEFT + ((WIDTH - LEFT - RIGHT) * (t - from)) / (to - from);
  const peaks = values.map((one) => largest(one));
  const inside = times.map((_, i) => i).filter((i) => times[i] >= from - 1e-9 && times[i] <= to + 1e-9);
  const ticks = [], every = step((to - from) / 6);
  for (let t = Math.ceil(from / every - 1e-9) * every; t <= to + 1e-9; t += every) ticks.push(t);
  return svg("svg", {
    class: "chart station", viewBox: `0 0 ${WIDTH} ${BASE + BOTTOM}`, role: "img", "data-from": from, "data-to": to,
    "aria-label": `${title}. Largest: ${AXES.map((name, i) => `${name} ${peaks[i].toPrecision(3)}`).join(", ")} ${unit}`,
  },
  AXES.flatMap((name, axis) => {
    const zero = TOP + EACH * (axis + 0.5), y = (/** @type {number} */ i) => zero - (0.46 * EACH * values[axis][i]) / most;
    return [svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: zero, y2: zero }),
      svg("path", { class: `trace ${name}`, d: `M${inside.map((i) => `${f(x(times[i]))} ${f(y(i))}`).join("L")}` }),
      svg("text", { class: "largest", x: WIDTH - RIGHT, y: f(zero - 0.36 * EACH), "text-anchor": "end" }, `${name}, at most ${peaks[axis].toPrecision(3)}`)];
  }),
  guides.filter(({ time }) => time >= from && time <= to).flatMap(({ name, time }) => [
    svg("path", { class: `guide ${name}`, d: `M${f(x(time))} ${TOP}V${BASE}` }),
    svg("text", { class: `guide ${name}`, x: f(x(time)), y: 13, "text-anchor": "middle" }, name)]),
  svg("line", { class: "now", y1: TOP, y2: BASE }),
  ticks.flatMap((t) => [svg("line", { class: "axis", x1: f(x(t)), x2: f(x(t)), y1: BASE, y2: BASE + 4 }),
    svg("text", { x: f(x(t)), y: BASE + 17, "text-anchor": t < from + every / 9 ? "start" : "middle" }, plain(t))]),
  svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: BASE + 32, "text-anchor": "middle" }, `s after slip begins · ${unit}`));
}

/** Move the line to another time. @param {any} chart @param {number} now s */
export function markStation(chart, now) {
  const line = chart.querySelector(".now"), { from, to } = chart.dataset;
  const x = f(LEFT + ((WIDTH - LEFT - RIGHT) * (now - from)) / (to - from));
  line.setAttribute("x1", x);
  line.setAttribute("x2", x);
  line.toggleAttribute("hidden", now < Number(from) || now > Number(to));
}
