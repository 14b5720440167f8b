// @ts-check
/** What every unit source does at a place, and its colour on the map. */

import { send } from "/dashboard/api.js";
import { css, table } from "/dashboard/elements/colours.js";
import { YEAR } from "/dashboard/physics/viscoelastic/greens.js";
import { BOTH } from "/dashboard/views/greens.js";

/**
 * Sampled by the service, for the event and each output time: it need not be read here.
 * @param {import("/dashboard/views/greens.js").GreensView} view
 * @param {{x: number, y: number}} place
 * @returns {Promise<number[][][]>} (time, source, 3)
 */
export async function sampled({ campaign, others, other, second, which: shown, greens }, place) {
  const times = [0, ...greens.times].map((t) => `${t / YEAR} yr`);
  const request = { stations: [{ name: "here", x_km: place.x / 1e3, y_km: place.y / 1e3 }], times };
  const ids = [campaign.id, ...(second ? [others[Number(other.field.value) - 1].id] : [])];
  const which = second && shown.field.value !== BOTH ? Number(shown.field.value) : 0;
  const found = await Promise.all(ids.map((id) => send(`/v1/campaigns/${id}/sample`, request)));
  return times.map((_, t) => greens.sources.map((__, source) => [0, 1, 2].map((axis) => {
    const [one, two] = found.map(({ data }) => data[source][t][0][axis]);
    return which === 0 ? one : which === 1 ? two : one - two;
  })));
}

/**
 * Colours at one time; all times have one scale.
 * @param {number[][][]} all of `sampled`
 * @param {{index: number}[]} sources that are coloured
 * @param {number} axis 3: length
 * @param {number} step of the output times
 * @param {boolean} change only since the event
 * @returns {{shades: (string | undefined)[], most: number}} by index, and the value at the end of the colours
 */
export function coloured(all, sources, axis, step, change) {
  const value = (/** @type {number} */ t, /** @type {number} */ source) => {
    const moved = all[t][source].map((v, i) => v - (change ? all[0][source][i] : 0));
    return axis === 3 ? Math.hypot(...moved) : moved[axis];
  };
  const most = Math.max(...all.slice(1).flatMap((_, t) => sources.map(({ index }) => Math.abs(value(t + 1, index))))) || 1;
  const colours = table(axis === 3 ? "one" : "two");
  /** @type {(string | undefined)[]} */
  const shades = Array(all[0].length).fill(undefined);
  for (const { index } of sources) {
    const share = value(step + 1, index) / most;
    shades[index] = css(colours[Math.round(255 * (axis === 3 ? share : (share + 1) / 2))]);
  }
  return { shades, most };
}
