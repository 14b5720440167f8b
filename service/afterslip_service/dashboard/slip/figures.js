// @ts-check
/** Drawings of slip for print. */

import { standalone, styled, withLegend } from "/dashboard/figure.js";
import { css, table } from "/dashboard/elements/colours.js";
import { caption } from "/dashboard/slip/legend.js";

/** Each drawing as it is shown, with its legend and the name of its file. @param {import("/dashboard/views/slip.js").SlipView} view */
export function figures(view) {
  const { look, legend } = view, ink = getComputedStyle(legend).color;
  const ends = [...legend.querySelectorAll(".ends")].map((scale) => [...scale.children].map(({ textContent }) => textContent ?? ""));
  const lines = ends[0].slice(3);
  const scales = ends.map((words, i) => ({ colours: Array.from(table(i ? "two" : look.shade === "slip" ? "slip" : "one"), css), words: words.slice(0, 3) }));
  const key = [...legend.querySelectorAll(".key > span")].map((span) => ({ drawing: /** @type {SVGElement} */ (span.querySelector("svg")), words: span.textContent ?? "" }));
  /** @param {SVGElement} drawing @param {import("/dashboard/slip/result.js").SlipResult} result @param {string} kind @param {boolean} map */
  const one = (drawing, { inversion }, kind, map) => {
    const { name } = inversion, figure = standalone(drawing, `Slip of ${name}`);
    const marks = map ? key.map(({ drawing: mark, words }) => ({ mark: styled(mark), words })) : [];
    const said = caption(inversion).map((part) => (typeof part === "string" ? part : part.textContent)).join("");
    withLegend(figure, map ? scales : scales.slice(0, 1), marks, [...(map ? lines : []), said], ink);
    return { name: `${name}${kind}`, figure };
  };
  return [...view.maps.map(({ map, result, pixels }) => one(map.svg, result, pixels ? `-${pixels}` : "", true)),
    ...view.faults.map(({ drawing, result }) => one(drawing, result, "-3d", false))];
}
