// @ts-check
/** What the arrows of a map mean, and how long one of a known value is. */

import { h, svg } from "/dashboard/dom.js";

/** @param {string} name its class @param {string} words @param {number} [length] pixels */
export const mark = (name, words, length = 19) => h("span", {}, svg("svg", { viewBox: `0 0 ${length + 3} 10`, width: length + 3, height: 10, "aria-hidden": "true", class: "km" },
  svg("path", { class: name, d: `M1 5H${length + 1}M${length - 4} 2L${length + 1} 5L${length - 4} 8` })), words);

/** An arrow as a map draws it for a value. @param {string} name its class @param {number} pixels @param {number} value @param {string} unit */
export const known = (name, pixels, value, unit) => mark(name, `this long: ${Number(value.toPrecision(3))} ${unit}`, pixels);
