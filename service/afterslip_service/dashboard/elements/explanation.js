// @ts-check
/** Why a campaign waits or failed, and what it did not have to compute. */

import { h } from "/dashboard/dom.js";

// what the state and the bar say already
const USUAL = ["failed", "model", "turn"];

/** @param {any} reason */
function waits({ message, until }) {
  const end = until && h("span.dim", {}, `, until ${new Date(until).toLocaleTimeString()}`);
  return h("li", {}, message, end);
}

/** @param {any} failure */
function failed({ error_class: name, count, advice }) {
  const often = count > 1 ? ` (${count} times)` : "";
  return h("li", {}, h("b", {}, `${name.replaceAll("_", " ")}${often}: `), advice);
}

/** @param {any} found answer of `/explain` */
export function explanation({ waiting, failures, reuse }) {
  const lines = [
    ...waiting.filter((/** @type {any} */ reason) => !USUAL.includes(reason.code)).map(waits),
    ...failures.map(failed),
  ];
  if (reuse.reused) lines.push(h("li", {}, `${reuse.reused} of ${reuse.of} unit sources were taken from other campaigns`));
  return lines.length ? h("ul.why", { "aria-label": "Why" }, lines) : null;
}
