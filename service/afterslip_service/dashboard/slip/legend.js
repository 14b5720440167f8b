// @ts-check
/** What the colours and arrows of a map of slip mean. */

import { h, svg } from "/dashboard/dom.js";
import { css, table } from "/dashboard/elements/colours.js";

/** @param {Parameters<typeof table>[0]} name */
export const colourBar = (name) => svg("svg", { class: "colours", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
  Array.from(table(name), (colour, i) => svg("rect", { x: (i * 100) / 256, width: 1, y: 0, height: 4, fill: css(colour) })));

/** @param {string} name @param {string} words */
export const mark = (name, words) => h("span", {}, svg("svg", { viewBox: "0 0 22 10", width: 22, height: 10, "aria-hidden": "true", class: "km" },
  svg("path", { class: name, d: "M1 5H20M15 2L20 5L15 8" })), words);
