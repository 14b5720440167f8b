// @ts-check
/** A spec that is being written, in this tab: a reload loses none of it. */

const NAME = "afterslip.draft";

/**
 * @typedef {object} Draft
 * @property {string} text
 * @property {string} start what it began as
 * @property {string | null} from the campaign that it began as
 * @property {number | null} example whose files it has
 */

/** @param {Draft | null} draft null: nothing that could be lost */
export function store(draft) {
  try {
    if (draft) sessionStorage.setItem(NAME, JSON.stringify(draft));
    else sessionStorage.removeItem(NAME);
  } catch {
    // a browser may refuse it, or have no room; what is written is on the page all the same
  }
}

/** @returns {Draft | null} */
export function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(NAME) ?? "null");
  } catch {
    return null;
  }
}
