// @ts-check
/** What may stand at a place of a spec, from the JSON schema that the service publishes. */

export class Schema {
  /** @param {Record<string, any>} schemas of OpenAPI, by name */
  constructor(schemas) { this.schemas = schemas; }

  /**
   * @param {(string | number)[]} path
   * @param {string} [physics] of the spec; any where it is not known
   * @returns {any[]} every schema that the place may have
   */
  at(path, physics = "viscoelastic") {
    const roots = this.#variants({ $ref: "#/components/schemas/CampaignSpec" });
    const own = roots.filter((root) => root.properties?.physics?.const === physics);
    let found = own.length ? own : roots;
    for (const step of path) {
      found = found.flatMap((schema) => this.#variants(typeof step === "number"
        ? schema.items
        : schema.properties?.[step] ?? (typeof schema.additionalProperties === "object" ? schema.additionalProperties : null)));
    }
    return found;
  }

  /** @param {(string | number)[]} path @param {string} [physics] @returns {boolean} whether a file is named there */
  isFile(path, physics) {
    return this.at(path, physics).some((schema) => schema["x-file"]);
  }

  /** Follow references and alternatives. @param {any} schema @returns {any[]} */
  #variants(schema) {
    if (!schema) return [];
    if (schema.$ref) {
      const { $ref, ...rest } = schema;
      return this.#variants({ ...this.schemas[$ref.split("/").pop()], ...rest });
    }
    const several = schema.anyOf ?? schema.oneOf;
    if (several) return several.flatMap((/** @type {any} */ one) => this.#variants(one));
    return schema.type === "null" ? [] : [schema];
  }
}

/**
 * @typedef {object} Place
 * @property {(string | number)[]} path of the mapping, or of the value
 * @property {boolean} key whether a key is being written
 * @property {number} from where the word begins
 */

/**
 * Where in a spec a position lies, also while its text is not yet YAML.
 * @param {string} text
 * @param {number} position
 * @returns {Place}
 */
export function placeOf(text, position) {
  const start = text.lastIndexOf("\n", position - 1) + 1;
  const line = text.slice(start, position);
  const { path: inner, word, key } = within(line);
  const indent = line.search(/\S|$/);
  return { path: [...above(text.slice(0, start), indent, /^\s*- /.test(line)), ...inner], key, from: position - word.length };
}

/** The part of a path that one line says. @param {string} line */
function within(line) {
  /** @type {(string | number)[]} */
  const path = [];
  /** @type {{key: string | null, item: number | null}[]} */
  const open = [];
  const body = line.replace(/^\s*((?:- )*)/, "");
  let word = "", key = /** @type {string | null} */ (null), quoted = "";
  for (const letter of body) {
    if (quoted) { if (letter === quoted) quoted = ""; word += letter; continue; }
    if (letter === '"' || letter === "'") { quoted = letter; word += letter; continue; }
    if (letter === "{" || letter === "[") {
      const item = letter === "[" ? 0 : null;
      open.push({ key, item });
      if (key !== null) path.push(key);
      if (item !== null) path.push(item);
      key = null; word = "";
    } else if (letter === "}" || letter === "]") {
      const closed = open.pop();
      if (closed?.item !== null && closed) path.pop();
      if (closed && closed.key !== null) path.pop();
      key = null; word = "";
    } else if (letter === ",") {
      const last = open.at(-1);
      if (last && last.item !== null) { last.item += 1; path[path.length - 1] = last.item; }
      key = null; word = "";
    } else if (letter === ":" && key === null) { key = word.trim(); word = ""; }
    else word += letter;
  }
  const last = open.at(-1), value = key !== null || (last && last.item !== null);
  if (key !== null) path.push(key);
  return { path, word: word.trimStart(), key: !value };
}

/**
 * The keys around a line, by their indentation.
 * @param {string} before the lines above
 * @param {number} indent of the line
 * @param {boolean} item whether the line begins an item of a list
 */
function above(before, indent, item) {
  /** @type {(string | number)[]} */
  const path = [];
  // keys left of `limit` are around; in a list, its dashes stand at `list`
  let limit = indent, list = item ? indent : -1, count = 0;
  for (const line of before.split("\n").reverse()) {
    const found = /^(\s*)(- +)?([\w-]+)?\s*(:)?/.exec(line);
    if (!found || !line.trim() || line.trim().startsWith("#")) continue;
    const [, blank, dash = "", name, colon] = found;
    const column = blank.length, key = column + dash.length, named = name && colon;
    if (list >= 0) {
      if (dash && column === list) { count += 1; continue; }
      if (!named || key > list || (dash && column >= list)) continue;
      path.unshift(name, count);
      [limit, list] = [key, -1];
    } else if (named && key < limit) {
      path.unshift(name);
      limit = key;
    } else if (!(dash && column < limit)) continue;
    if (dash) [list, count] = [column, 0];
    if (list < 0 && limit === 0) break;
  }
  return path;
}

/**
 * Keys or values that may stand at a place.
 * @param {Schema} schema
 * @param {Place} place
 * @param {string | undefined} physics
 * @param {string[]} files that may be named
 * @returns {{label: string, detail?: string, type: string, apply?: string}[]}
 */
export function choices(schema, place, physics, files) {
  const found = schema.at(place.path, physics);
  if (place.key) {
    const keys = new Map(found.flatMap(({ properties = {}, required = [] }) => Object.entries(properties)
      .map(([label, one]) => [label, {
        label, type: "property", apply: `${label}: `, boost: required.includes(label) ? 1 : 0,
        detail: /** @type {any} */ (one).description,
      }])));
    return [...keys.values()];
  }
  const values = found.flatMap(({ enum: several = [], const: one, type }) =>
    [...several, ...(one === undefined ? [] : [one]), ...(type === "boolean" ? [true, false] : [])]);
  const names = schema.isFile(place.path, physics) ? files : [];
  return [...values.map((label) => ({ label: String(label), type: "constant" })),
    ...names.map((label) => ({ label, type: "text" }))];
}
