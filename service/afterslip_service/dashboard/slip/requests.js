// @ts-check
/** Inversions by what was asked for, and by their names. */

/** @param {any} value the same text for the same content, whatever the order of its keys */
const canonical = (value) => JSON.stringify(value, (_, one) => (one && typeof one === "object" && !Array.isArray(one)
  ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one));

/** Whether two requests ask for the same, whatever they are called. @param {any} one @param {any} other */
export const alike = (one, other) => canonical({ ...one, name: null }) === canonical({ ...other, name: null });

/** Names to choose by; a name that several have is followed by the end of its id. @param {{id: string, name: string}[]} some @param {string} own name, which is another's already */
export function labels(some, own) {
  const names = [own, ...some.map(({ name }) => name)];
  return some.map(({ id, name }) => (names.indexOf(name) === names.lastIndexOf(name) ? name : `${name} · ${id.slice(-6)}`));
}
