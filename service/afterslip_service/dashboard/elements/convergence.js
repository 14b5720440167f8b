// @ts-check
/** The residual of an attempt over time, on a logarithmic axis. */

import { svg } from "/dashboard/dom.js";

const WIDTH = 460, HEIGHT = 170;
const LEFT = 44, RIGHT = 10, TOP = 10, BOTTOM = 26;

/**
 * @param {{seconds: number, residual: number | null}[]} history
 * @returns {Element | null} null where there is nothing to draw
 */
export function convergence(history) {
  const points = history.filter((p) => Number.isFinite(p.residual) && Number(p.residual) > 0);
  if (points.length < 2) return null;
  const powers = points.map((p) => Math.log10(Number(p.residual)));
  const low = Math.floor(Math.min(...powers)), high = Math.max(low + 1, Math.ceil(Math.max(...powers)));
  const last = Math.max(points[points.length - 1].seconds, 1e-9);
  const x = (/** @type {number} */ s) => LEFT + ((WIDTH - LEFT - RIGHT) * s) / last;
  const y = (/** @type {number} */ p) => TOP + ((HEIGHT - TOP - BOTTOM) * (high - p)) / (high - low);
  const chart = svg("svg", {
    class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `Residual from ${points[0].residual} to ${points[points.length - 1].residual}`,
  });
  const step = Math.max(1, Math.ceil((high - low) / 5));
  for (let power = low; power <= high; power += step) {
    chart.append(
      svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(power), y2: y(power) }),
      svg("text", { x: LEFT - 6, y: y(power) + 4, "text-anchor": "end" }, `1e${power}`),
    );
  }
  chart.append(
    svg("text", { x: LEFT, y: HEIGHT - 8 }, "0 s"),
    svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 8, "text-anchor": "end" }, `${last.toFixed(1)} s`),
    svg("path", { d: points.map((p, i) => `${i ? "L" : "M"}${x(p.seconds)} ${y(powers[i])}`).join("") }),
    ...points.map((p, i) => svg("circle", { cx: x(p.seconds), cy: y(powers[i]), r: 2.5 })),
  );
  return chart;
}
