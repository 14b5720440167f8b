// @ts-check
/** When each worker tried what: a row a worker, a bar an attempt, coloured by outcome. */

import { h, put, svg } from "/dashboard/dom.js";
import { use } from "/dashboard/elements/worker-use.js";
import { duration, moment } from "/dashboard/format.js";

/**
 * @typedef {{token: string, kind: string, index: number, number: number, state: string, worker: string | null,
 *   started_at: string | null, finished_at: string | null, error_class: string | null}} Span
 * @typedef {{span: Span, worker: string, begin: number, end: number, lane: number, number: number}} Bar begin and end in ms
 */

const LANE = 14, BAR = 11, TICKS = 5;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];
const OUTCOMES = ["running", "stored", "accepted", "failed", "cancelled", "replaced"];
// where no worker is named: one may still be, of what has ended none will
const UNNAMED = ["worker not reported yet", "worker not known"];

export class Timeline {
  /** @param {(group: number) => void} chosen called when a bar of a group is pressed */
  constructor(chosen) {
    this.chosen = chosen;
    /** @type {Bar[]} */
    this.bars = [];
    this.rows = h("div.workers", {});
    this.said = h("p.sub", {}, HINT);
    this.element = h("section.card.timeline", {
      hidden: true,
      onpointerover: (/** @type {any} */ event) => { const bar = this.#at(event); if (bar) put(this.said, words(bar)); },
      onclick: (/** @type {any} */ event) => { const bar = this.#at(event); if (bar?.span.kind === "group") this.chosen(bar.span.index); },
    }, h("h2", {}, "Attempts by worker"), this.rows, this.said,
    h("div.legend", { "aria-hidden": "true" }, OUTCOMES.map((state) => h(`span.badge.${state}`, {}, state === "failed" ? "failed or lost" : state))));
  }

  /** @param {any} event */
  #at(event) { return this.bars[Number(event.target.dataset?.bar ?? -1)]; }

  /**
   * @param {Span[]} spans
   * @param {Map<string, any>} facts of workers by name
   * @param {(span: Span) => string | undefined} busy who works at an attempt that has not ended
   * @param {number} [now] ms
   */
  show(spans, facts, busy, now = Date.now()) {
    this.bars = spans.filter((span) => span.started_at ?? span.finished_at).map((span) => ({
      span, worker: span.worker ?? busy(span) ?? UNNAMED[Number(Boolean(span.finished_at))], lane: 0, number: 0,
      // what failed at once is a mark at its end
      begin: Date.parse(/** @type {string} */ (span.started_at ?? span.finished_at)), end: span.finished_at ? Date.parse(span.finished_at) : now,
    })).sort((a, b) => a.begin - b.begin);
    this.bars.forEach((bar, i) => { bar.number = i; });
    this.element.hidden = !this.bars.length;
    if (!this.bars.length) return;
    const first = this.bars[0].begin, last = this.bars.reduce((most, { end }) => Math.max(most, end), first + 1000);
    const names = [...new Set(this.bars.map(({ worker }) => worker))].sort((a, b) => UNNAMED.indexOf(a) - UNNAMED.indexOf(b) || a.localeCompare(b, "en", { numeric: true }));
    put(this.rows, names.map((name) => this.#row(name, facts.get(name), first, last)), axis(first, last));
  }

  /** @param {string} name @param {any} facts @param {number} first @param {number} last */
  #row(name, facts, first, last) {
    const own = this.bars.filter(({ worker }) => worker === name), lanes = inLanes(own);
    const count = (/** @type {string[]} */ ...states) => own.filter(({ span }) => states.includes(span.state)).length;
    const failed = count("failed", "lost", "damaged");
    const part = (/** @type {number} */ ms) => `${((100 * ms) / (last - first)).toFixed(3)}%`;
    const drawing = svg("svg", {
      role: "img", width: "100%", height: lanes * LANE,
      "aria-label": `${name}: ${own.length} attempts, ${count("accepted")} accepted, ${failed} failed or lost, ${count("running")} running`,
    }, own.map((bar) => {
      const wide = part(bar.end - bar.begin);
      const shape = svg("rect", {
        class: `${bar.span.state} ${bar.span.kind}`, "data-bar": bar.number, y: bar.lane * LANE + 1, height: BAR, rx: 2, x: part(bar.begin - first), width: wide,
      }, svg("title", {}, words(bar)));
      // what took a moment is visible as well, and neighbours stay apart
      shape.style.width = `max(calc(${wide} - 1px), 2px)`;
      return shape;
    }));
    const used = facts ? use(facts) : "";
    return h("div", {}, h("div.line", {}, h("span", {}, ...(UNNAMED.includes(name) ? [name] : ["Worker ", h("span.mono", {}, name)])),
      used ? h("span.dim", { title: "of its processes; what is reported of a GPU is the whole GPU, whichever processes use it" }, used) : null), drawing);
  }
}

const HINT = "Point at a bar to read what it was; press it for the group. Paler: the model and inversions.";

/** Side by side what one worker did at the same time; the number of lanes. @param {Bar[]} bars by their beginning */
export function inLanes(bars) {
  /** @type {number[]} */
  const free = [];
  for (const bar of bars) {
    const found = free.findIndex((end) => end <= bar.begin);
    bar.lane = found < 0 ? free.length : found;
    free[bar.lane] = bar.end;
  }
  return Math.max(free.length, 1);
}

/** @param {Bar} bar */
function words({ span, begin, end, worker }) {
  const what = span.kind === "group" ? `group ${span.index}` : span.kind;
  const why = span.error_class ? ` (${span.error_class.replaceAll("_", " ")})` : "";
  return `${what}, attempt ${span.number}: ${span.state}${why}, ${span.started_at ? duration((end - begin) / 1000) : "ended at once"}, begun ${moment(new Date(begin).toISOString())}, ${worker}`;
}

/** @param {number} first ms @param {number} last ms */
function axis(first, last) {
  const span = (last - first) / 1000;
  const step = STEPS.find((seconds) => span / seconds <= TICKS) ?? 86400 * Math.ceil(span / 86400 / TICKS);
  const ticks = Array.from({ length: Math.floor(span / step) + 1 }, (_, i) => i * step);
  return [svg("svg", { class: "axis", width: "100%", height: 18, "aria-hidden": "true" }, ticks.map((seconds) => {
    const part = seconds / span, x = `${(100 * part).toFixed(3)}%`;
    return [svg("line", { x1: x, x2: x, y1: 0, y2: 4 }),
      svg("text", { x, y: 15, "text-anchor": part < 0.03 ? "start" : part > 0.94 ? "end" : "middle" }, brief(seconds))];
  }).flat()), h("p.sub", {}, `after the first attempt began, ${moment(new Date(first).toISOString())}`)];
}

/** @param {number} seconds */
function brief(seconds) {
  if (seconds === 0) return "0";
  for (const [unit, size] of /** @type {[string, number][]} */ ([["d", 86400], ["h", 3600], ["min", 60]])) {
    if (seconds >= size && seconds % (size / 2) === 0) return `${seconds / size} ${unit}`;
  }
  return `${seconds} s`;
}
