// @ts-check
/** Residual against iteration: a line for each solve of an attempt. */

import { h, svg } from "/dashboard/dom.js";

const WIDTH = 520, HEIGHT = 220;
const LEFT = 72, RIGHT = 10, TOP = 10, BOTTOM = 40;

/**
 * @typedef {{x: number, y: number}[]} Line
 * @param {any} attempt
 * @returns {Element | null} null where there is nothing to draw
 */
export function convergence(attempt) {
  const stats = attempt.stats ?? {};
  if (attempt.state === "accepted" && !attempt.solves.length && stats.taken) {
    return h("p.dim", {}, `Nothing was solved: all ${stats.taken} sources were copied from other campaigns.`);
  }
  const solved = attempt.solves.length > 0;
  if (solved) return draw(ofSolves(attempt.solves), "iterations, all solves one after the other");
  const counted = attempt.history.some((/** @type {any} */ { iteration }) => iteration > 0);
  const lines = live(attempt.history, counted ? "iteration" : "seconds");
  return draw(lines, counted ? "iteration of each solve, the latest one thick" : "s since the attempt began", attempt.state === "running");
}

/** @param {any[]} solves @returns {Line[]} */
function ofSolves(solves) {
  let before = 0;
  return solves.map(({ curve = [], iterations }) => {
    const line = curve.filter((/** @type {number[]} */ [, r]) => r > 0)
      .map((/** @type {number[]} */ [i, r]) => ({ x: before + i, y: Math.log10(r) }));
    before += iterations;
    return line;
  });
}

/** While it runs there are samples, each solve counted from its own first iteration. @param {any[]} history @param {string} along */
function live(history, along) {
  /** @type {Map<string, Line>} */
  const lines = new Map();
  for (const sample of history) {
    if (!(sample.residual > 0) || !Number.isFinite(sample[along])) continue;
    const key = `${sample.phase} ${sample.solves_done}`;
    if (!lines.has(key)) lines.set(key, []);
    lines.get(key)?.push({ x: sample[along], y: Math.log10(sample.residual) });
  }
  return [...lines.values()];
}

/** @param {Line[]} lines @param {string} along @param {boolean} [latest] whether the last line is the solve under way */
function draw(lines, along, latest = false) {
  if (lines.flat().length < 2) return null;
  const points = lines.flat();
  const low = Math.floor(Math.min(...points.map((p) => p.y)));
  const high = Math.max(low + 1, Math.ceil(Math.max(...points.map((p) => p.y))));
  const last = Math.max(...points.map((p) => p.x), 1e-9);
  const x = (/** @type {number} */ v) => LEFT + ((WIDTH - LEFT - RIGHT) * v) / last;
  const y = (/** @type {number} */ p) => TOP + ((HEIGHT - TOP - BOTTOM) * (high - p)) / (high - low);
  const chart = svg("svg", {
    class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `Residual of ${lines.length} solves, from 1e${high} to 1e${low}`,
  });
  const step = Math.max(1, Math.ceil((high - low) / 5));
  for (let power = low; power <= high; power += step) {
    chart.append(
      svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(power), y2: y(power) }),
      svg("text", { x: LEFT - 6, y: y(power) + 4, "text-anchor": "end" }, `1e${power}`));
  }
  const middle = TOP + (HEIGHT - TOP - BOTTOM) / 2;
  chart.append(
    svg("text", { x: LEFT, y: HEIGHT - 22, "text-anchor": "middle" }, "0"),
    svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 22, "text-anchor": "end" }, last.toFixed(last < 10 ? 1 : 0)),
    svg("text", { x: LEFT + (WIDTH - LEFT - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, along),
    svg("text", { x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, "relative residual"),
    ...lines.filter((line) => line.length).map((line) => {
      const kind = latest ? (line === lines[lines.length - 1] ? "latest" : "earlier") : null;
      // a quick solve is looked at once only
      if (line.length === 1) return svg("circle", { class: kind, cx: x(line[0].x).toFixed(1), cy: y(line[0].y).toFixed(1), r: 2.5 });
      return svg("path", { class: kind, d: line.map((p, i) => `${i ? "L" : "M"}${x(p.x).toFixed(1)} ${y(p.y).toFixed(1)}`).join("") });
    }));
  return chart;
}
