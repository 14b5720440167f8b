// @ts-check
/** What was tried for smoothness and sparsity, and how well data held out were predicted. */

import { h, svg } from "/dashboard/dom.js";
import { css, table } from "/dashboard/elements/colours.js";
import { fixed } from "/dashboard/format.js";

const WIDTH = 440, HEIGHT = 240, LEFT = 58, RIGHT = 14, TOP = 12, BOTTOM = 44;

/** @param {number} v */
const short = (v) => (v === 0 ? "0" : Math.abs(Math.log10(Math.abs(v))) < 3 ? String(Number(v.toPrecision(3))) : v.toExponential(1));

/**
 * @param {import("/dashboard/slip/result.js").SlipResult} result
 * @param {(smoothness: number, sparsity: number) => void} [pick] the slip of a point is asked for
 */
export function scores(result, pick) {
  const { smoothness, sparsity, score, error, chosen } = result.scores();
  if (score.length < 2) return h("p.sub", {}, "The smoothness was given: nothing was tried.");
  const several = new Set(sparsity).size > 1;
  // zero stands left of the least that is not
  const positive = smoothness.filter((v) => v > 0).map(Math.log10);
  const least = Math.min(...positive), most = Math.max(...positive);
  const place = (/** @type {number} */ v) => (v > 0 ? Math.log10(v) : least - 0.5);
  const from = smoothness.includes(0) ? least - 0.5 : least, wide = most - from || 1;
  const x = (/** @type {number} */ v) => LEFT + 8 + ((WIDTH - LEFT - RIGHT - 16) * (place(v) - from)) / wide;
  const low = Math.min(...score), high = Math.max(...score), range = Math.log(high / low) || 1;
  const y = (/** @type {number} */ v) => TOP + (HEIGHT - TOP - BOTTOM) * (0.9 - 0.8 * Math.max(-0.1, Math.min(1.1, Math.log(v / low) / range)));
  const kinds = [...new Set(sparsity)].sort((a, b) => a - b), colours = table("one");
  const colour = (/** @type {number} */ mu) => (several ? css(colours[Math.round((200 * kinds.indexOf(mu)) / Math.max(kinds.length - 1, 1))]) : "currentColor");
  const marks = score.flatMap((value, i) => {
    const words = `smoothness ${short(smoothness[i])}, sparsity ${short(sparsity[i])}: ${fixed(value, 3)} ± ${fixed(error[i], 3)}`;
    const [cx, cy] = [x(smoothness[i]), y(value)];
    return [
      several ? null : svg("path", { class: "bar", d: `M${cx.toFixed(1)} ${y(value + error[i]).toFixed(1)}V${y(Math.max(value - error[i], 1e-9)).toFixed(1)}` }),
      svg("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: pick ? 5 : 3.5, fill: colour(sparsity[i]), ...(pick ? {
        role: "button", tabindex: i ? -1 : 0, "aria-label": `Show the slip at ${words}`,
        onclick: () => pick(smoothness[i], sparsity[i]), onkeydown: press,
      } : {}) }, svg("title", {}, words)),
    ];
  });
  const ticks = [];
  for (let p = Math.ceil(least); p <= most; p += Math.max(1, Math.ceil((most - least) / 7))) {
    ticks.push(svg("text", { x: x(10 ** p).toFixed(1), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, `1e${p}`));
  }
  for (const value of [low, high]) ticks.push(svg("text", { x: LEFT - 4, y: (y(value) + 4).toFixed(1), "text-anchor": "end" }, short(value)));
  return h("figure.scores", {},
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: pick ? "group" : "img", "aria-label": `Score against smoothness, ${score.length} points; ${short(chosen.smoothness)} was chosen` },
      svg("path", { class: "axis", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` }),
      svg("path", { class: "chosen", d: `M${x(chosen.smoothness).toFixed(1)} ${TOP}V${HEIGHT - BOTTOM}` }),
      ...marks.filter((mark) => mark !== null), ...ticks,
      svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 6, "text-anchor": "end" }, "smoothness")),
    h("figcaption", {}, `Mean square of residual over sigma of data held out; least ${fixed(low, 2)}. The line is what was chosen, smoothness ${short(chosen.smoothness)}`,
      several ? `, sparsity ${short(chosen.sparsity)}; lighter points are sparser.` : "; bars are standard errors.",
      pick ? " Click a point: the data are inverted with its weights, and the slip is shown beside." : ""));
}

/** One tab stop for all points, arrows inside. @param {KeyboardEvent} event */
function press(event) {
  const here = /** @type {SVGElement} */ (event.target), step = /** @type {Record<string, number>} */ ({ ArrowRight: 1, ArrowLeft: -1 })[event.key];
  if (event.key === "Enter" || event.key === " ") here.dispatchEvent(new MouseEvent("click"));
  else if (step) {
    // smoother ones are on the right
    const all = /** @type {SVGElement[]} */ ([...(here.parentElement?.querySelectorAll("circle") ?? [])])
      .sort((a, b) => Number(a.getAttribute("cx")) - Number(b.getAttribute("cx")));
    const next = all[all.indexOf(here) + step];
    if (!next) return;
    here.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  } else return;
  event.preventDefault();
}
