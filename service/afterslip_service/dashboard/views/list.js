// @ts-check
/** All campaigns, newest first, updated live. */

import { follow, get } from "/dashboard/api.js";
import { calm, h, put } from "/dashboard/dom.js";
import { damageNote } from "/dashboard/elements/damage.js";
import { ago, count } from "/dashboard/format.js";

const STATES = ["waiting", "building", "running", "complete", "failed", "cancelled", "paused"];

/** @param {HTMLElement} main */
export async function campaignList(main) {
  document.title = "afterslip";
  const list = h("ul.rows", {});
  const card = h("section.card", { "aria-label": "Campaigns" }, list);
  const more = h("button", { type: "button", hidden: true, onclick: () => { pages += 1; refresh(); } }, "Show more");
  const filter = h("select", { "aria-label": "Only campaigns in a state", onchange: () => { pages = 1; refresh(); } },
    h("option", { value: "" }, "all states"), STATES.map((state) => h("option", { value: state }, state)));
  let pages = 1;

  async function refresh() {
    const items = [];
    let cursor = null;
    for (let page = 0; page < pages; page += 1) {
      const query = new URLSearchParams({ limit: "50" });
      if (filter.value) query.set("state", filter.value);
      if (cursor) query.set("cursor", cursor);
      const found = await get(`/v1/campaigns?${query}`);
      items.push(...found.items);
      cursor = found.next;
      if (!cursor) break;
    }
    more.hidden = !cursor;
    put(list, items.length ? items.map(row) : empty(filter.value));
  }

  const damage = h("div", {});
  put(main, h("div.head", {}, h("div.grow", {}, h("h1", {}, "Campaigns")), h("a.button", { href: "#/new" }, "New campaign"), filter), damage, card, more);
  const stop = follow("/v1/events", ({ kind, campaign, data }) => {
    // a campaign's own page shows its damage
    if (kind === "store.damaged" && !campaign) damage.append(damageNote(data));
    if (kind !== "group.progress") soon();
  }, () => soon());
  const soon = calm(() => refresh().catch(() => {}), 400);
  await refresh();
  return stop;
}

/** @param {any} campaign */
function row(campaign) {
  const bar = document.createElement("progress-bar");
  /** @type {any} */ (bar).show(campaign.progress, campaign.state);
  return h("li", {}, h("a.row", { href: `#/campaigns/${campaign.id}` },
    h("div", {},
      h("div.name", {}, campaign.name),
      h("div.sub", {}, campaign.n_sources ? `${count(campaign.n_sources)} Green's functions` : "", campaign.n_sources ? " · " : "",
        h("span.mono", {}, campaign.id), said(campaign))),
    h("div", {}, h(`span.badge.${campaign.state}`, {}, campaign.cancelling && campaign.state !== "cancelled" ? "cancelling" : campaign.state)),
    bar,
    h("div.when.dim.right", { title: campaign.updated_at }, ago(campaign.updated_at)),
    campaign.error ? h("div.reason", {}, campaign.error.message) : null,
    campaign.inversions_failed ? h("div.reason", {}, failed(campaign)) : null));
}

/** @param {any} campaign */
function failed({ inversions, inversions_failed: count }) {
  return inversions.length === 1 ? "Its inversion has failed." : `${count} of ${inversions.length} inversions have failed.`;
}

/** @param {any} campaign */
function said({ owner, priority }) {
  return [owner ? ` · ${owner}` : "", priority ? ` · priority ${priority}` : ""].join("");
}

/** @param {string} state */
function empty(state) {
  if (state) return h("li.empty", {}, `No campaign is ${state}.`);
  return h("li.empty", {}, "No campaigns yet. ", h("a", { href: "#/new" }, "Begin one here"), ", or send one:", h("br"), h("code", {}, "afterslip submit campaign.yaml"));
}
