// @ts-check
/** What is asked for while a campaign is looked at. */

import { get, session } from "/dashboard/api.js";

const LIMIT = 500;
const MOST = 20000;

export class Watch {
  /** @param {string} path of the campaign */
  constructor(path) {
    this.path = path;
    this.campaign = path.split("/").pop();
    /** attempts by token @type {Map<string, import("/dashboard/elements/timeline.js").Span>} */
    this.known = new Map();
    /** what workers report, by name @type {Map<string, any>} */
    this.workers = new Map();
    /** @type {Promise<any> | null} */
    this.asked = null;
  }

  /** Oldest first. */
  get spans() { return [...this.known.values()]; }

  /** Where the unit sources lie, which never changes. */
  places() {
    this.asked ??= get(`${this.path}/places`).catch(() => { this.asked = null; return null; });
    return this.asked;
  }

  /** @param {boolean} live whether what workers report is of interest */
  async refresh(live) {
    const since = this.#since();
    let cursor = null;
    do {
      /** @type {Record<string, any>} */
      const query = { limit: LIMIT, ...(cursor && { cursor }), ...(since && { since }) };
      const page = await get(`${this.path}/attempts?${new URLSearchParams(query)}`);
      for (const span of page.items) this.known.set(span.token, span);
      cursor = page.next;
    } while (cursor && this.known.size < MOST);
    // a link shows nothing of workers
    if (!live || session().campaign) return;
    const { items } = await get("/v1/workers");
    this.workers = new Map(items.map((/** @type {any} */ worker) => [worker.name, worker.facts]));
  }

  /** What ended before is known for good; what is stored may still change. */
  #since() {
    const ends = this.spans.filter(({ finished_at }) => finished_at);
    const open = ends.filter(({ state }) => state === "stored");
    const times = (open.length ? open : ends).map(({ finished_at }) => /** @type {string} */ (finished_at)).sort();
    return open.length ? times[0] : times.at(-1);
  }

  /** Who works at an attempt, as the workers say. @param {import("/dashboard/elements/timeline.js").Span} span */
  busy({ kind, index }) {
    for (const [name, { at_work: work }] of this.workers) {
      if (work?.some((/** @type {any} */ at) => at.campaign === this.campaign && at.kind === kind && (at.index === null || at.index === index))) return name;
    }
    return undefined;
  }
}
