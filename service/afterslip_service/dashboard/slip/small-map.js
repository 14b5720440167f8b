// @ts-check
/** Slip and horizontal displacements of an inversion, small, for its card. */

import { get } from "/dashboard/api.js";
import { h } from "/dashboard/dom.js";
import { known, mark } from "/dashboard/elements/key.js";
import { around } from "/dashboard/elements/km-map.js";
import { step } from "/dashboard/slip/contours.js";
import { colourBar } from "/dashboard/slip/legend.js";
import { SlipResult } from "/dashboard/slip/result.js";
import { LONGEST, SlipMap, longest } from "/dashboard/slip/slip-map.js";

/** @param {any} inversion @returns {Promise<Element>} */
export async function smallMap(inversion) {
  const [result, campaign] = await Promise.all([SlipResult.open(inversion), get(`/v1/campaigns/${inversion.campaign}`)]);
  result.frame = campaign.spec?.model?.frame;
  const epoch = result.epochs.at(-1) ?? 0, most = Math.max(...result.field("slip"), 0);
  const sights = result.stations.flatMap(({ data }) => data).filter((d) => d.epoch === epoch && d.axis === 3).flatMap((d) => [d.observed, d.predicted]);
  /** @type {import("/dashboard/slip/slip-map.js").Look} */
  const look = {
    shade: "slip", most, step: step(most), arrows: "horizontal", pixels: "observed", epoch, rake: false, resolution: false,
    station: "", turn: 30, tilt: 35, longest: longest(result.stations, epoch, "horizontal"), sight: sights.reduce((least, v) => Math.max(least, Math.abs(v)), 0),
  };
  const { map } = new SlipMap(result, look, (name) => { look.station = name; map.redraw(); }, () => {});
  const [west, south, east, north] = around(result.triangles.flat().map((node) => result.nodes[node]), 5);
  const room = 0.4 * Math.max(east - west, north - south);
  map.fit([west - room, south - room, east + room, north + room]);
  return h("figure.panel", {}, map.element, colourBar("slip"),
    h("div.ends", {}, h("span", {}, "0"), h("span", {}, "slip"), h("span", {}, `${Number(most.toPrecision(3))} m`)),
    look.longest ? h("div.key", {}, mark("observed", "observed"), mark("predicted", "predicted"), known("observed", LONGEST, look.longest, "m")) : null);
}
