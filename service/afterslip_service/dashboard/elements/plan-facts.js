// @ts-check
/** What a campaign would need, in numbers and words. */

import { h } from "/dashboard/dom.js";
import { count, duration, sentence } from "/dashboard/format.js";

/** @param {any} plan @param {(path: string) => void} go to a place in the spec */
export function planFacts(plan, go) {
  const { time, cost, trial, memory, reuse } = plan;
  const facts = [
    ["Unit sources", `${count(plan.sources)} in ${count(plan.groups)} ${plan.groups === 1 ? "group" : "groups"}`],
    // what marches through time does so on voxels
    [plan.steps === null ? "Elements" : "Voxels", about(plan.elements)],
    ["Unknowns", about(plan.unknowns)],
    ["Memory of a worker", memory ? `${bytes(memory.bytes)} on the ${memory.backend === "gpu" ? "GPU" : "CPU"}${plan.memory_free ? `, of ${bytes(plan.memory_free)}` : ""}` : "–"],
    ["Time steps", about(plan.steps)],
    ["Until all is computed", time ? `about ${duration(time.total)}` : "not known yet"],
    ...(cost ? [["Cost", `about ${Number(cost.amount.toPrecision(2))} ${cost.currency}, at ${cost.price} an hour`]] : []),
    ["A group", time ? duration(time.low) === duration(time.high) ? duration(time.group) : `${duration(time.low)} to ${duration(time.high)}` : "–"],
  ];
  return [
    // what cannot be estimated for this physics is no number to wait for
    h("dl.facts", {}, facts.filter(([, value]) => value !== "–").map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    !time && plan.unknowns !== null && h("p.sub", {}, "This service has solved no such campaign, and how fast its workers are is measured by the first groups: after them the campaign's page says how long the others take."),
    time && h("p.sub", {}, `From ${count(time.campaigns)} ${time.campaigns === 1 ? "campaign" : "campaigns"} solved here, ${count(time.slots)} ${time.slots === 1 ? "group" : "groups"} at a time.`),
    trial && h("p.sub", {}, trial.failed
      ? `${meshed(trial)} could not be made: ${trial.failed}`
      : `${meshed(trial)} has ${count(trial.n_elements)} elements; ${count(trial.expected)} were expected of it.`),
    reuse.model && h("p.sub", {}, "Reused: ", reuse.sources ? "the model and those Green's functions that are the same, of " : "the model of ",
      h("a", { href: `#/campaigns/${reuse.sources ?? reuse.model}` }, reuse.sources ?? reuse.model)),
    ...plan.warnings.map((/** @type {any} */ warning) => h("div.note", {},
      h("b", {}, h("button.plain", { type: "button", onclick: () => go(warning.path) }, warning.path)),
      sentence(warning.message, warning.hint))),
  ].filter(Boolean);
}

/** Which mesh was tried: a small one is made as it is. @param {{coarser: number}} trial */
const meshed = ({ coarser }) => (coarser < 1.05 ? "The mesh" : `A mesh ${coarser.toFixed(1)} times coarser`);

/** @param {number | null} value */
const about = (value) => (value === null ? "–" : `about ${count(Number(value.toPrecision(2)))}`);

/** @param {number} value */
export const bytes = (value) => (value >= 1e9 ? `${(value / 1e9).toFixed(1)} GB` : `${Math.max(value / 1e6, 0.1).toFixed(value >= 1e7 ? 0 : 1)} MB`);
