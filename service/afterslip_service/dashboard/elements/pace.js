// @ts-check
/** How much is left, how fast it goes, and how long that takes. */

import { h } from "/dashboard/dom.js";
import { count, duration, fixed } from "/dashboard/format.js";

const WINDOW_MS = 3600e3;

/**
 * @param {any} campaign
 * @param {import("/dashboard/elements/timeline.js").Span[]} spans
 * @param {number} [now] ms
 * @returns {any} null before anything of it began
 */
export function pace(campaign, spans, now = Date.now()) {
  const { progress } = campaign;
  if (!progress.total) return null;
  const left = progress.waiting + progress.queued + progress.running;
  const facts = [...rates(spans, left > 0, now)];
  if (left) {
    facts.unshift(["Waiting", count(progress.waiting)], ["Queued at workers", count(progress.queued)], ["Being solved", count(progress.running)],
      ["Stored, to be accepted", count(progress.stored)]);
    facts.push(["Time left", leftOver(campaign)]);
  }
  return facts.length ? h("section.card", {}, h("h2", {}, "Queue and pace"),
    h("dl.facts", {}, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))))) : null;
}

/** @param {any} campaign */
function leftOver({ remaining_s: middle, remaining_low_s: low, remaining_high_s: high }) {
  if (!Number.isFinite(middle)) return "not known yet";
  return Number.isFinite(low) ? `${duration(middle)} (90 %: ${duration(low)} to ${duration(high)})` : `${duration(middle)} (spread not known yet)`;
}

/** @param {import("/dashboard/elements/timeline.js").Span[]} spans @param {boolean} going @param {number} now ms @returns {[string, string][]} */
function rates(spans, going, now) {
  const solved = spans.filter(({ kind, state, started_at, finished_at }) => kind === "group" && started_at && finished_at && ["stored", "accepted", "replaced"].includes(state))
    .map(({ started_at, finished_at }) => [Date.parse(/** @type {string} */ (started_at)), Date.parse(/** @type {string} */ (finished_at))]);
  if (!solved.length) return [];
  const first = Math.min(...solved.map(([begin]) => begin)), last = going ? now : Math.max(...solved.map(([, end]) => end));
  // of a campaign under way what counts is the last hour
  const from = going ? Math.max(first, last - WINDOW_MS) : first;
  const rate = (3600e3 * solved.filter(([, end]) => end >= from).length) / Math.max(last - from, 1);
  const took = solved.map(([begin, end]) => (end - begin) / 1000).sort((a, b) => a - b);
  const at = (/** @type {number} */ part) => took[Math.round(part * (took.length - 1))];
  const spread = took.length > 4 ? ` (80 %: ${duration(at(0.1))} to ${duration(at(0.9))})` : "";
  return [[going && from > first ? "Throughput, last hour" : "Throughput", `${rate < 10 ? fixed(rate, 1) : count(rate)} groups an hour`],
    ["A group takes", duration(at(0.5)) + spread]];
}
