// @ts-check
/** A spec as it is written: where its keys stand, and the files that it names. */

import { sentence } from "/dashboard/format.js";
import { isMap, isPair, isScalar, isSeq, parseDocument } from "/dashboard/vendor/editor.js";

/**
 * @typedef {object} Mark something that is wrong, and where
 * @property {number} from characters from the start
 * @property {number} to
 * @property {string} message
 */

/** What YAML's parser finds, in words of the editor; others are shown as it has them. @type {[RegExp, string][]} */
const WORDS = [
  [/flow sequence .* end with a \]/i, "A list is not closed: ] is missing"],
  [/flow map .* end with a \}/i, "A mapping is not closed: } is missing"],
  [/missing closing .quote/i, "A text is not closed: a quote is missing"],
  [/all mapping items must start at the same column|bad indentation|all sequence items must start/i, "This line is indented otherwise than its neighbours"],
  [/tabs? .*indent/i, "A tab cannot indent: use spaces"],
  [/map keys must be unique/i, "This key stands here twice"],
  [/implicit keys? need|nested mappings are not allowed|implicit map keys/i, "A colon, or a line break, is missing or too much here"],
];

/** @param {string} message of the parser, with its place */
export function plainly(message) {
  const [said] = message.split(" at line");
  return WORDS.find(([pattern]) => pattern.test(said))?.[1] ?? said;
}

/** @param {string} path e.g. `model.layers[1].vs` @returns {(string | number)[]} */
export const steps = (path) => [...path.matchAll(/\[(\d+)\]|[^.[\]]+/g)]
  .map(([whole, index]) => (index === undefined ? whole : Number(index)));

/** @param {(string | number)[]} path @returns {string} as `steps` reads it */
export const dotted = (path) => path.reduce((/** @type {string} */ text, step) => (typeof step === "number" ? `${text}[${step}]` : `${text}${text && "."}${step}`), "");

export class SpecDocument {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.tree = parseDocument(text, { uniqueKeys: true });
  }

  /** What is not YAML at all. @returns {Mark[]} */
  get faults() {
    return this.tree.errors.map((/** @type {any} */ error) => ({
      ...this.span(error.pos[0], error.pos[1]),
      message: plainly(error.message),
    }));
  }

  /** @returns {any} plain values */
  value() { return this.tree.toJS({ maxAliasCount: 0 }); }

  /** @param {number} from @param {number} to at least one character, inside the text */
  span(from, to) {
    const end = this.text.length;
    const first = Math.max(0, Math.min(from, end - 1));
    return { from: first, to: Math.max(first, Math.min(Math.max(to, first + 1), end)) };
  }

  /**
   * Where a path stands; of what is missing, the nearest key around it.
   * @param {string} path
   */
  place(path) {
    let node = this.tree.contents;
    /** @type {[number, number]} */
    let found = [0, Math.max(this.text.indexOf("\n"), 1)];
    for (const step of steps(path)) {
      if (isMap(node)) {
        const pair = node.items.find((/** @type {any} */ item) => isPair(item)
          && String(/** @type {any} */ (item.key)?.value) === String(step));
        if (!pair) break;
        const key = /** @type {any} */ (pair.key), value = /** @type {any} */ (pair.value);
        found = [key.range[0], isScalar(value) ? /** @type {any} */ (value).range[1] : key.range[1]];
        node = value;
      } else if (isSeq(node) && typeof step === "number" && node.items[step]) {
        node = /** @type {any} */ (node.items[step]);
        const { range } = /** @type {any} */ (node);
        // of a mapping in a list its first line is enough
        const line = this.text.indexOf("\n", range[0]);
        found = [range[0], isScalar(node) || line < 0 ? range[1] : Math.min(range[1], line)];
      } else break;
    }
    return this.span(...found);
  }

  /**
   * Refusals of the service, each where it stands.
   * @param {{path: string, message: string, value?: any, hint?: string}[]} problems
   * @returns {(Mark & {path: string})[]}
   */
  marks(problems) {
    return problems.map(({ path, message, hint }) => {
      // a line of a file: the place where the file is named
      const file = /^(\S+\.\w+)(?: line (\d+))?/.exec(path)?.[1];
      const named = file ? this.text.indexOf(file) : -1;
      const place = named >= 0 && file ? this.span(named, named + file.length) : this.place(path);
      return { ...place, path, message: sentence(`${path ? `${path} ` : ""}${message}`, hint) };
    });
  }

  /** @param {number} position @returns {number} counted from 1 */
  line(position) { return this.text.slice(0, position).split("\n").length; }
}

/**
 * The spec with other names for some of its texts.
 * @param {any} value
 * @param {(text: string, path: (string | number)[]) => string} rename
 * @param {(string | number)[]} [path]
 * @returns {any}
 */
export function renamed(value, rename, path = []) {
  if (typeof value === "string") return rename(value, path);
  if (Array.isArray(value)) return value.map((item, i) => renamed(item, rename, [...path, i]));
  if (value && typeof value === "object" && !(value instanceof Date)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, renamed(item, rename, [...path, key])]));
  }
  return value;
}
