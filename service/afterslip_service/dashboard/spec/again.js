// @ts-check
/** The spec of a campaign as the beginning of another one. */

import { isMap, isSeq, parseDocument } from "/dashboard/vendor/editor.js";

// a collection up to this long stands on one line
const LINE = 76;

/** The next name: `a` → `a 2` → `a 3`. @param {string} name @param {number} most characters */
export function nextName(name, most = 200) {
  const [, stem, number] = /** @type {RegExpExecArray} */ (/^(.*?)(?: (\d{1,6}))?$/s.exec(name));
  const end = ` ${Number(number ?? 1) + 1}`;
  return stem.slice(0, most - end.length) + end;
}

/** @param {{name: string, spec: any}} campaign @returns {string} YAML */
export function again({ name, spec }) {
  const document = parseDocument("");
  document.contents = /** @type {any} */ (document.createNode({ ...spec, name: nextName(name) }));
  compact(document.contents, 0);
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** Write short collections on one line. @param {any} node @param {number} depth @returns {number} characters that it takes */
function compact(node, depth) {
  if (!isMap(node) && !isSeq(node)) return String(node?.value ?? "").length;
  const length = node.items.reduce((/** @type {number} */ sum, /** @type {any} */ item) =>
    sum + 2 + (isMap(node) ? String(item.key).length + 2 + compact(item.value, depth + 1) : compact(item, depth + 1)), 0);
  if (depth && length + 2 * depth < LINE) /** @type {any} */ (node).flow = true;
  return length;
}
