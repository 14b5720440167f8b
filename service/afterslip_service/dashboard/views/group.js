// @ts-check
/** A group with every attempt at it. */

import { h, row } from "/dashboard/dom.js";
import { convergence } from "/dashboard/elements/convergence.js";
import { count, duration, tiny } from "/dashboard/format.js";

/** @param {any} group @param {() => void} close @param {(() => void) | null} retry null for who may only read */
export function groupDetail(group, close, retry) {
  const last = group.attempts[group.attempts.length - 1];
  const log = [...group.attempts].reverse().find((attempt) => attempt.log);
  return h("section.card", { "aria-label": `Group ${group.index}` },
    h("div.head", {},
      h("div.grow", {}, h("h2", {}, `Group ${group.index} `, h(`span.badge.${group.state}`, {}, group.state)),
        h("div.sub", {}, `unit sources ${group.sources.join(", ")}`)),
      h("div.buttons", {}, retry && group.state === "failed" ? h("button", { type: "button", onclick: retry }, "Retry this group") : null,
        h("button", { type: "button", onclick: close }, "Close"))),
    group.error ? h("div.note.bad", {}, h("b", {}, group.error.class.replaceAll("_", " ")), group.error.message) : null,
    group.attempts.length ? attempts(group.attempts) : h("p.dim", {}, "No attempt yet."),
    h("div.convergence", {}, last ? convergence(last) : null),
    log ? h("details", {}, h("summary", {}, `Log of attempt ${log.number}`), h("pre", {}, log.log)) : null);
}

/** @param {any[]} tries */
function attempts(tries) {
  const names = ["#", "State", "Worker", "Time", "Solves", "Iterations", "Residual", "Why it ended"];
  return h("div.scroll", {}, h("table.stacked", {},
    h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, tries.map((attempt) => {
      const stats = attempt.stats ?? {};
      const residual = Array.isArray(stats.residual) ? Math.max(...stats.residual) : stats.residual;
      return row(names, [
        h("td", {}, String(attempt.number)),
        h("td", {}, h(`span.badge.${attempt.state}`, {}, attempt.state)),
        h("td", {}, attempt.worker ?? "–"),
        h("td", {}, duration(stats.seconds)),
        h("td", {}, count(stats.solves)),
        h("td", {}, count(stats.iterations)),
        h("td", {}, tiny(residual)),
        h("td", {}, attempt.error ? attempt.error.class.replaceAll("_", " ") : "")]);
    }))));
}
