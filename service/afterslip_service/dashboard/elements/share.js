// @ts-check
/** A link by which somebody without a token reads one campaign. */

import { send } from "/dashboard/api.js";
import { h, put } from "/dashboard/dom.js";
import { moment } from "/dashboard/format.js";

const DAYS = 30;
// a user, as the service names one
const USER = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}$/;

/**
 * Ask for whom, make the link and show it; its secret is in this answer and nowhere else.
 * @param {{id: string, name: string}} campaign @param {Element} place
 */
export async function share({ id, name }, place) {
  const user = window.prompt(`For whom is the link? A name without spaces. It reads this campaign for ${DAYS} days, and nothing else.`, "reader")?.trim();
  if (!user) return;
  if (!USER.test(user)) throw new Error(`${user} is no name for a reader: letters, digits and . _ @ + - without spaces.`);
  const made = await send("/v1/tokens", { name: `link to ${name}`.slice(0, 200), user, role: "viewer", days: DAYS, campaign: id });
  const field = h("input.mono", { readonly: true, "aria-label": "Link to this campaign", value: `${location.origin}/#/shared/${id}/${made.token}`, onfocus: () => field.select() });
  const said = h("span.sub", { role: "status" });
  const copy = async () => {
    field.select();
    // a page over plain HTTP from elsewhere may not write there
    said.textContent = await navigator.clipboard?.writeText(field.value).then(() => "Copied.", () => null) ?? "Copy what is selected.";
  };
  put(place, h("section.card", { "aria-label": "Link" }, h("h2", {}, `A link for ${user}`), field,
    h("p.sub", {}, `Shown this once. Who has it reads this campaign until ${moment(made.expires_at)}; this ends it sooner: `, h("code", {}, `afterslip token revoke ${made.id}`)),
    h("div.buttons", {}, h("button", { type: "button", onclick: copy }, "Copy"), h("button", { type: "button", onclick: () => put(place) }, "Done"), said)));
  field.focus();
}
