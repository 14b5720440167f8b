// @ts-check
/** The workers that the placement knows. */

import { get } from "/dashboard/api.js";
import { h, put, row } from "/dashboard/dom.js";
import { device, size } from "/dashboard/elements/worker-use.js";
import { count, fixed } from "/dashboard/format.js";

const EVERY_MS = 3000;

/** @param {HTMLElement} main */
export async function workerView(main) {
  document.title = "Workers · afterslip";
  const card = h("section.card", { "aria-label": "Workers" });
  async function refresh() {
    const { items } = await get("/v1/workers");
    put(card, items.length ? table(items) : h("div.empty", {}, "No workers. Start one:", h("br"),
      h("code", {}, "afterslip worker tcp://scheduler:8786")));
  }
  put(main, h("div.head", {}, h("h1", {}, "Workers")), card);
  await refresh();
  const timer = setInterval(() => refresh().catch(() => {}), EVERY_MS);
  return () => clearInterval(timer);
}

/** @param {any[]} workers */
function table(workers) {
  const names = ["Worker", "State", "Works at", "Slots", "CPU", "Memory", "Limit", "Device", "Host"];
  return h("div.scroll", {}, h("table.stacked", {},
    h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, workers.map((worker) => row(names, [
      h("td", {}, worker.name),
      h("td", {}, h(`span.badge.${worker.state === "running" ? "complete" : "paused"}`, {}, worker.state)),
      h("td", {}, work(worker.facts.at_work ?? [])),
      h("td", {}, count(worker.slots)),
      h("td", { title: "of all its processes; 100 % is one core" }, fixed(worker.facts.cpu_percent, 0, " %")),
      h("td", {}, size(worker.facts.memory_used)),
      h("td", {}, size(worker.facts.memory_limit)),
      h("td", {}, device(worker.facts)),
      h("td.mono", { title: worker.address }, worker.facts.host ?? worker.address)])))));
}

/** @param {any[]} attempts */
function work(attempts) {
  if (!attempts.length) return "–";
  return attempts.map(({ campaign, kind, index }, i) => h("span", {}, i ? ", " : "",
    h("a", { href: `#/campaigns/${campaign}` }, index === null ? kind : `group ${index}`)));
}
