// @ts-check
/** What the colours and arrows of a map of slip mean. */

import { h, svg } from "/dashboard/dom.js";
import { css, table } from "/dashboard/elements/colours.js";
import { fixed, interval, percent } from "/dashboard/format.js";

/** @param {Parameters<typeof table>[0]} name */
export const colourBar = (name) => svg("svg", { class: "colours", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
  Array.from(table(name), (colour, i) => svg("rect", { x: (i * 100) / 256, width: 1, y: 0, height: 4, fill: css(colour) })));

/** What is known of the slip of an inversion. @param {any} inversion */
export function caption({ name, summary }) {
  const of = summary ?? {}, about = of.peak_slip_interval ? `, mean over ${fixed(of.peak_slip_length / 1e3, 1)} km about it `
    + fixed(of.peak_slip_average, 2, " m") + interval(of.peak_slip_interval, 2) : "";
  return [h("b", {}, name), ` Mw ${fixed(of.magnitude)}${interval(of.magnitude_interval, 2)}, `,
    `largest slip ${fixed(of.peak_slip, 2, " m")}${about}; variance reduced by ${percent(of.variance_reduction)}`];
}
