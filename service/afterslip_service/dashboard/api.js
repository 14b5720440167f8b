// @ts-check
/** The public API, as every other client uses it. */

/** A refusal, in the server's own words. */
export class Problem extends Error {
  /** @param {number} status @param {string} detail @param {any[]} [errors] what is wrong, by path */
  constructor(status, detail, errors = []) {
    super(detail);
    this.status = status;
    this.errors = errors;
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
  } catch (error) {
    if (options?.signal?.aborted) throw error;
    throw new Problem(0, "The service does not answer. Is it still running?");
  }
  if (answer.status === 401 && path !== SESSION) signedOut();
  if (answer.status === 204) return null;
  const body = await answer.json().catch(() => null);
  if (!answer.ok) throw new Problem(answer.status, body?.detail ?? answer.statusText, body?.errors);
  return body;
}

const SESSION = "/v1/session";

/** Who asks; `csrf` must be said with every change, for the cookie alone is no proof. */
let who = { auth: false, user: null, role: null, csrf: null, campaign: null };
export const session = () => who;

/** Whether nothing may be changed: such a token, or a link to one campaign. */
export const readsOnly = () => who.role === "viewer";

/** Whether what belongs to somebody may be changed, as the service decides it. @param {{owner: string | null}} thing */
export const mayChange = ({ owner }) => !who.auth || ["operator", "admin"].includes(who.role ?? "")
  || (who.role === "submitter" && owner !== null && owner === who.user);

/** Tell the part that shows the page that somebody else is there now. */
const tell = () => document.dispatchEvent(new Event("session"));

function signedOut() {
  who = { auth: true, user: null, role: null, csrf: null, campaign: null };
  tell();
}

/** Ask the service who we are. */
export async function whoAmI() {
  who = await request(SESSION);
  tell();
}

/** @param {string} token */
export async function signIn(token) {
  who = await request(SESSION, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  });
  tell();
}

export async function signOut() {
  await request(SESSION, { method: "DELETE", headers: proof() });
  signedOut();
}

/** @returns {Record<string, string>} */
const proof = () => (who.csrf ? { "X-CSRF-Token": who.csrf } : {});

/** @param {string} path */
export const get = (path) => request(path);

/** @param {string} path */
export const post = (path) =>
  request(path, { method: "POST", headers: { "Idempotency-Key": key(), ...proof() } });

/** @param {string} path @param {any} value @param {AbortSignal} [signal] @param {string} [idempotency] */
export const send = (path, value, signal, idempotency = key()) => request(path, {
  method: "POST", body: JSON.stringify(value), signal,
  headers: { "Content-Type": "application/json", "Idempotency-Key": idempotency, ...proof() },
});

/** Upload a file; the same content twice is one file. @param {Blob} file @returns {Promise<string>} its reference */
export const upload = async (file) => (await request("/v1/files", {
  method: "POST", body: file,
  headers: { "Content-Type": "application/octet-stream", "Idempotency-Key": key(), ...proof() },
})).ref;

/** Change what others may have changed meanwhile: the last one wins. @param {string} path @param {any} value */
export const patch = (path, value) => request(path, {
  method: "PATCH", body: JSON.stringify(value),
  headers: { "Content-Type": "application/json", "If-Match": "*", ...proof() },
});

/** @param {string} path */
export const remove = (path) => request(path, { method: "DELETE", headers: proof() });

/** A page that came over plain HTTP from elsewhere has no randomUUID. */
export const key = () => [...crypto.getRandomValues(new Uint8Array(16))]
  .map((byte) => byte.toString(16).padStart(2, "0")).join("");

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
  "store.damaged",
];

/** How long a view waits for its stream, as where a proxy holds it back. */
const LATE_MS = 1000;

/**
 * Follow events; the browser comes back by itself and says where it stood.
 *
 * What is read before the stream is open may be older than the stream's first event,
 * and what happened between is then in neither: wait for `opened` before reading.
 *
 * A browser opens only a handful of connections to one server, for all its tabs
 * together: a tab that nobody looks at lets go of its own.
 * @param {string} path
 * @param {(event: {kind: string, campaign: string, data: any}) => void} heard
 * @param {() => void} again called when all is to be read anew: the stream is open after
 * all, or the tab is looked at once more
 * @returns {{stop: () => void, opened: Promise<void>}}
 */
export function follow(path, heard, again) {
  /** @type {EventSource | null} */
  let source = null;
  /** @returns {Promise<void>} */
  const open = () => new Promise((done) => {
    let late = false;
    const made = source = new EventSource(path);
    const timer = setTimeout(() => { late = true; done(); }, LATE_MS);
    made.onopen = () => {
      clearTimeout(timer);
      if (late) again();
      late = false;
      done();
    };
    for (const kind of KINDS) {
      made.addEventListener(kind, (event) => heard(JSON.parse(event.data)));
    }
  });
  const close = () => { source?.close(); source = null; };
  const turn = () => {
    if (document.hidden) close();
    else if (!source) open().then(() => { if (source) again(); });
  };
  document.addEventListener("visibilitychange", turn);
  const opened = document.hidden ? Promise.resolve() : open();
  const stop = () => { document.removeEventListener("visibilitychange", turn); close(); };
  return { stop, opened };
}
