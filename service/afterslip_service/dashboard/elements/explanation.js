// @ts-check
/** Why a campaign waits or failed, and what it did not have to compute. */

import { h } from "/dashboard/dom.js";
import { moment } from "/dashboard/format.js";

// what the state and the bar say already
const USUAL = ["failed", "model", "turn"];

/** @param {any} reason */
function waits({ message, until }) {
  const end = until && h("span.dim", {}, `, until ${moment(until)}`);
  return h("li", {}, message, end);
}

/** @param {any} failure @param {((name: string) => void) | null} retry */
function failed({ error_class: name, count, advice }, retry) {
  const words = name.replaceAll("_", " ");
  return h("li", {}, h("b", {}, `${words}${count > 1 ? ` (${count} times)` : ""}: `), advice, " ",
    retry && h("button.plain", { type: "button", onclick: () => retry(name), "aria-label": `Retry these: groups with ${words}` }, "Retry these"));
}

/** @param {any} found answer of `/explain` @param {((name: string) => void) | null} retry what failed in one way; null for who may only read */
export function explanation({ waiting, failures, reuse }, retry) {
  const lines = [
    ...waiting.filter((/** @type {any} */ reason) => !USUAL.includes(reason.code)).map(waits),
    ...failures.map((/** @type {any} */ one) => failed(one, retry)),
  ];
  if (reuse.reused) lines.push(h("li", {}, `${reuse.reused} of ${reuse.of} unit sources were taken from other campaigns`));
  return lines.length ? h("ul.why", { "aria-label": "Why" }, lines) : null;
}
