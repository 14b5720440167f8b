// @ts-check
/** The address of a view of Green's functions: a link to exactly what is shown. */

import { BOTH } from "/dashboard/views/greens.js";

/** @typedef {import("/dashboard/views/greens.js").GreensView} GreensView */

/** Show what a link says; what it gets wrong is as without it. @param {GreensView} view @param {URLSearchParams} asked */
export async function follow(view, asked) {
  const { greens, map, others } = view;
  for (const [name, { field }] of /** @type {[string, any][]} */ ([["colours", view.shown], ["change", view.part]])) {
    if ([...field.options].some(({ value }) => value === asked.get(name))) field.value = asked.get(name);
  }
  const step = Number(asked.get("time"));
  if (Number.isInteger(step) && greens.times[step] !== undefined) view.step = step;
  view.time.value = String(view.step);
  const numbers = (/** @type {string} */ name, /** @type {number} */ count) => {
    const found = (asked.get(name) ?? "").split(",").map((text) => 1e3 * Number(text));
    return found.length === count && found.every(Number.isFinite) ? found : null;
  };
  // what is drawn writes the address anew
  const at = numbers("at", 3), place = numbers("place", 2), which = asked.get("which") ?? BOTH;
  if (at && at[2] > 0) Object.assign(map, { centre: at.slice(0, 2), span: at[2] });
  view.every.checked = asked.get("all") === "1";
  const row = Number(asked.get("source")), other = 1 + others.findIndex(({ id }) => id === asked.get("with"));
  view.source.field.value = String(greens.sources[row] ? row : 0);
  view.other.field.value = String(other);
  if (other) await view.compare(other, which);
  else await view.choose(Number(view.source.field.value));
  if (place) view.pick(place[0], place[1]);
  map.lay();
}

/** @param {GreensView} view @returns {string} */
export function written(view) {
  const { centre, span, place } = view.map, km = (/** @type {number[]} */ values) => values.map((v) => Number((v / 1e3).toPrecision(9))).join(",");
  const query = new URLSearchParams({ source: view.source.field.value, time: String(view.step), colours: view.shown.field.value, change: view.part.field.value });
  const other = view.second && view.others[Number(view.other.field.value) - 1];
  if (other) { query.set("with", other.id); query.set("which", view.which.field.value); }
  if (place) query.set("place", km([place.x, place.y]));
  if (view.every.checked) query.set("all", "1");
  query.set("at", km([...centre, span]));
  return `#/campaigns/${view.campaign.id}/greens?${query}`;
}
