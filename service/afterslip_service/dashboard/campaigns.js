// @ts-check
/** Campaigns as the page holds them, and what may be done to them. */

import { get, patch, post, remove } from "/dashboard/api.js";

/** Name → what its button says, and the states in which it does something. @type {Record<string, [string, string[]]>} */
export const ACTIONS = {
  pause: ["Pause", ["waiting", "building", "running"]],
  resume: ["Resume", ["paused"]],
  retry: ["Retry what failed", ["failed"]],
  uncancel: ["Take up again", ["cancelled"]],
  cancel: ["Cancel", ["waiting", "building", "running", "paused", "failed"]],
  delete: ["Delete", ["complete", "failed", "cancelled", "paused"]],
};
// what cannot be undone, or stops work
export const DANGEROUS = ["cancel", "delete"];

/** @param {any} campaign @param {string} action */
export const allows = ({ state, cancelling }, action) =>
  ACTIONS[action][1].includes(state) && (!cancelling || state === "cancelled");

/** @param {string} id @param {string} action */
export const act = (id, action) => (action === "delete" ? remove(`/v1/campaigns/${id}`) : post(`/v1/campaigns/${id}/${action}`));

/** @param {string} id @param {{name?: string, priority?: number, tags?: string[]}} change */
export const change = (id, change) => patch(`/v1/campaigns/${id}`, change);

/** Ask for a priority; null where none was given. @param {number} now */
export function askPriority(now) {
  const given = window.prompt("Priority, from -1000 to 1000; higher ones are served first", String(now));
  if (given === null) return null;
  if (!/^\s*[+-]?\d+\s*$/.test(given) || Math.abs(Number(given)) > 1000) throw new Error(`${given} is no priority: that is a whole number from -1000 to 1000.`);
  return Number(given);
}

/** Ask for tags; null where none were given. @param {string[]} now */
export function askTags(now) {
  const given = window.prompt("Tags, with spaces between: small letters, digits and . _ : -", now.join(" "));
  const tags = given?.toLowerCase().split(/[\s,]+/).filter(Boolean) ?? null;
  const wrong = tags?.find((tag) => !/^[a-z0-9][a-z0-9._:-]{0,39}$/.test(tag));
  if (wrong) throw new Error(`${wrong} is no tag: that begins with a letter or a digit, goes on with letters, digits and . _ : -, and has at most 40 of them.`);
  return tags;
}

const SORTS = /** @type {Record<string, (a: any, b: any) => number>} */ ({
  newest: (a, b) => (a.id < b.id ? 1 : -1),
  "last changed": (a, b) => (a.updated_at < b.updated_at ? 1 : -1),
  name: (a, b) => a.name.localeCompare(b.name),
  priority: (a, b) => b.priority - a.priority,
  "largest": (a, b) => (b.n_sources ?? 0) - (a.n_sources ?? 0),
});
export const ORDERS = Object.keys(SORTS);

/** All campaigns, read once and then by what changed. */
export class Campaigns {
  /** @type {Map<string, any>} */
  known = new Map();
  /** whether the list is being read */
  loading = false;

  /** Read the list, page after page. @param {() => void} read called after each @param {AbortSignal} signal */
  async load(read, signal) {
    const found = new Map();
    let cursor = null;
    this.loading = true;
    do {
      const page = await get(`/v1/campaigns?limit=500${cursor ? `&cursor=${cursor}` : ""}`);
      if (signal.aborted) return;
      for (const item of page.items) { found.set(item.id, item); this.known.set(item.id, item); }
      cursor = page.next;
      read();
    } while (cursor);
    // the list is longer than what was read: what is left of it was deleted
    for (const id of this.known.keys()) if (!found.has(id)) this.known.delete(id);
    this.loading = false;
    read();
  }

  /** What the service answered to a change, without another question. @param {string} id @param {any} answer nothing: it was deleted */
  take(id, answer) {
    if (!answer?.id) { this.known.delete(id); return; }
    const { spec, model, ...brief } = answer;
    this.known.set(id, brief);
  }

  /** Read those that changed. @param {Iterable<string>} ids */
  async update(ids) {
    await Promise.all([...ids].map(async (id) => {
      const { spec, model, ...brief } = await get(`/v1/campaigns/${id}`).catch((error) => {
        if (error.status !== 404) throw error;
        this.known.delete(id);
        return {};
      });
      if (brief.id) this.known.set(id, brief);
    }));
  }

  /** @param {string} words all of which name, id, owner or tags hold @param {string} state @param {string} order */
  find(words, state, order) {
    const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    return [...this.known.values()].filter((one) => {
      if (state && one.state !== state) return false;
      const text = `${one.name} ${one.id} ${one.owner ?? ""} ${(one.tags ?? []).join(" ")}`.toLowerCase();
      return parts.every((part) => text.includes(part));
    }).sort(SORTS[order]);
  }
}
