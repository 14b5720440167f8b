// @ts-check
/** A list to choose from, with its name. */

import { h } from "/dashboard/dom.js";

/**
 * @param {string} name @param {string[]} words @param {(row: number) => void} changed
 * @param {number} [first]
 */
export function select(name, words, changed, first = 0) {
  const field = h("select", { onchange: () => changed(Number(field.value)) },
    words.map((text, i) => h("option", { value: i, selected: i === first }, text)));
  return { field, label: h("label", {}, name, field) };
}
