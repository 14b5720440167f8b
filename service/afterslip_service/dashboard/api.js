// @ts-check
/** The public API, as every other client uses it. */

/** A refusal, in the server's own words. */
export class Problem extends Error {
  /** @param {number} status @param {string} detail */
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/**
 * @param {string} path
 * @param {RequestInit} [options]
 * @returns {Promise<any>}
 */
async function request(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Problem(0, "The service does not answer. Is it still running?");
  }
  if (answer.status === 204) return null;
  const body = await answer.json().catch(() => null);
  if (!answer.ok) throw new Problem(answer.status, body?.detail ?? answer.statusText);
  return body;
}

/** @param {string} path */
export const get = (path) => request(path);

/** @param {string} path */
export const post = (path) =>
  request(path, { method: "POST", headers: { "Idempotency-Key": crypto.randomUUID() } });

/**
 * Every item of a list, page after page.
 * @param {string} path
 * @param {number} [most]
 */
export async function all(path, most = 5000) {
  const items = [];
  let cursor = null;
  do {
    const query = cursor ? `?limit=500&cursor=${cursor}` : "?limit=500";
    const page = await get(path + query);
    items.push(...page.items);
    cursor = page.next;
  } while (cursor && items.length < most);
  return items;
}

const KINDS = [
  "campaign.state", "model.built", "group.state", "group.progress", "inversion.state",
];

/**
 * Follow events; the browser comes back by itself and says where it stood.
 *
 * A browser opens only a handful of connections to one server, for all its tabs
 * together: a tab that nobody looks at lets go of its own.
 * @param {string} path
 * @param {(event: {kind: string, campaign: string, data: any}) => void} heard
 * @param {() => void} again called when the tab is looked at once more
 * @returns {() => void} stops
 */
export function follow(path, heard, again) {
  /** @type {EventSource | null} */
  let source = null;
  const open = () => {
    source = new EventSource(path);
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => heard(JSON.parse(event.data)));
    }
  };
  const close = () => { source?.close(); source = null; };
  const turn = () => {
    if (document.hidden) close();
    else if (!source) { open(); again(); }
  };
  document.addEventListener("visibilitychange", turn);
  if (!document.hidden) open();
  return () => { document.removeEventListener("visibilitychange", turn); close(); };
}
