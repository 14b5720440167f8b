// @ts-check
/** All campaigns: found, sorted, chosen and acted upon together; updated live. */

import { follow, mayChange, readsOnly } from "/dashboard/api.js";
import { ACTIONS, Campaigns, DANGEROUS, ORDERS, act, allows, askPriority, askTags, change } from "/dashboard/campaigns.js";
import { calm, h, put } from "/dashboard/dom.js";
import { damageNote } from "/dashboard/elements/damage.js";
import { ago, count } from "/dashboard/format.js";

const STATES = ["waiting", "building", "running", "complete", "failed", "cancelled", "paused"];
const ROWS = 50;
// requests at a time, of an action on many
const ABREAST = 4;
// more changes than these are read as a list
const SINGLE = 20;

/** @param {HTMLElement} main */
export async function campaignList(main) {
  document.title = "afterslip";
  const view = new ListView(main);
  const { stop, opened } = follow("/v1/events", (event) => view.take(event), () => view.reload());
  await opened;
  await view.reload();
  return () => { stop(); view.abort.abort(); };
}

class ListView {
  /** @param {HTMLElement} main */
  constructor(main) {
    this.campaigns = new Campaigns();
    /** what the search found @type {any[]} */
    this.found = [];
    /** those of them that may be changed @type {any[]} */
    this.able = [];
    /** @type {Set<string>} */
    this.chosen = new Set();
    /** @type {Set<string>} */
    this.changed = new Set();
    this.shown = ROWS;
    this.abort = new AbortController();
    const again = () => { this.shown = ROWS; this.draw(); };
    this.search = h("input", { type: "search", "aria-label": "Find by name, id, owner or tag", placeholder: "Find by name, id, owner or tag", oninput: calm(again, 100) });
    this.state = h("select", { "aria-label": "Only campaigns in a state", onchange: again },
      h("option", { value: "" }, "all states"), STATES.map((state) => h("option", { value: state }, state)));
    this.order = h("select", { "aria-label": "Order", onchange: again }, ORDERS.map((name) => h("option", { value: name }, name)));
    this.list = h("ul.rows", {});
    this.damage = h("div", {});
    this.many = h("div.many", { role: "group", "aria-label": "Actions on the chosen campaigns" });
    this.status = h("div", { role: "status" });
    this.more = h("button", { type: "button", hidden: true, onclick: () => { this.shown += ROWS; this.draw(); } }, "Show more");
    put(main, h("div.head", {}, h("div.grow", {}, h("h1", {}, "Campaigns")), readsOnly() ? null : h("a.button", { href: "#/new" }, "New campaign")),
      h("div.finding", {}, this.search, this.state, this.order),
      this.damage, this.many, this.status, h("section.card", { "aria-label": "Campaigns" }, this.list), this.more);
    this.soon = calm(() => this.update().catch(() => {}), 400);
  }

  async reload() {
    this.abort.abort();
    const abort = this.abort = new AbortController();
    await this.campaigns.load(() => this.draw(), abort.signal);
  }

  /** @param {{kind: string, campaign: string, data: any}} event */
  take({ kind, campaign, data }) {
    // a campaign's own page shows its damage
    if (kind === "store.damaged" && !campaign) this.damage.append(damageNote(data));
    if (kind === "group.progress" || !campaign) return;
    this.changed.add(campaign);
    this.soon();
  }

  async update() {
    const ids = [...this.changed];
    this.changed.clear();
    try {
      if (ids.length > SINGLE) await this.reload();
      else await this.campaigns.update(ids);
    } catch (error) {
      // the next event asks for them again
      for (const id of ids) this.changed.add(id);
      throw error;
    }
    this.draw();
  }

  draw() {
    const found = this.found = this.campaigns.find(this.search.value, this.state.value, this.order.value);
    const known = this.campaigns.known;
    for (const id of this.chosen) if (!known.has(id)) this.chosen.delete(id);
    // what would be refused cannot be chosen
    this.able = found.filter(mayChange);
    this.more.hidden = found.length <= this.shown;
    const focused = /** @type {HTMLElement} */ (document.activeElement)?.dataset?.id;
    put(this.list, found.length ? found.slice(0, this.shown).map((one) => this.row(one)) : this.empty());
    // what is drawn anew does not lose the keyboard's place
    if (focused) /** @type {HTMLElement | null} */ (this.list.querySelector(`[data-id="${focused}"]`))?.focus({ preventScroll: true });
    this.drawMany();
  }

  drawMany() {
    const chosen = [...this.chosen].map((id) => this.campaigns.known.get(id)), { able: { length } } = this;
    const press = (/** @type {string} */ words, /** @type {() => void} */ run, tag = "button") => h(tag, { type: "button", onclick: run }, words);
    const actions = Object.entries(ACTIONS).map(([name, [words]]) => ({ name, words, able: chosen.filter((one) => allows(one, name)) }))
      .filter(({ able }) => able.length);
    put(this.many, h("span.dim", {}, `${count(this.found.length)} of ${count(this.campaigns.known.size)}${this.campaigns.loading ? ", reading the list…" : ""}`), ...(chosen.length ? [
      h("b", {}, `${count(chosen.length)} chosen`),
      ...actions.map(({ name, words, able }) => press(`${words} (${count(able.length)})`, () => this.all(name, able), DANGEROUS.includes(name) ? "button.danger" : "button")),
      press("Priority", () => this.priority(chosen)),
      press("Add tags", () => this.tag(chosen)),
      press("Choose none", () => { this.chosen.clear(); this.draw(); }),
    ] : length ? [press(`Choose ${length === 1 ? "it" : `all ${count(length)}`}`, () => { for (const { id } of this.able) this.chosen.add(id); this.draw(); })] : []));
  }

  /** What was asked for; null where nothing was given, or what cannot be, which is said. @template T @param {() => T | null} ask */
  asked(ask) {
    try {
      put(this.status);
      return ask();
    } catch (error) {
      put(this.status, h("div.note.bad", { role: "alert" }, /** @type {Error} */ (error).message));
      return null;
    }
  }

  /** @param {any[]} chosen */
  priority(chosen) {
    const priority = this.asked(() => askPriority(chosen[0].priority));
    if (priority !== null) this.each(chosen, "Priority", ({ id }) => change(id, { priority }));
  }

  /** @param {any[]} chosen */
  tag(chosen) {
    const more = this.asked(() => askTags([]));
    if (more?.length) this.each(chosen, "Tags", ({ id, tags }) => change(id, { tags: [...new Set([...tags, ...more])] }));
  }

  /** @param {string} name @param {any[]} able */
  all(name, able) {
    const [words] = ACTIONS[name];
    if (DANGEROUS.includes(name) && !window.confirm(`${words}: ${count(able.length)} campaigns. Go on?`)) return;
    this.each(able, words, ({ id }) => act(id, name));
  }

  /** @param {any[]} some @param {string} words @param {(campaign: any) => Promise<any>} run */
  async each(some, words, run) {
    const left = [...some], failures = /** @type {string[]} */ ([]);
    const one = async () => {
      for (let next = left.pop(); next; next = left.pop()) {
        put(this.status, h("p.sub", {}, `${words}: ${count(left.length)} of ${count(some.length)} to go`));
        await run(next).then((answer) => this.campaigns.take(next.id, answer), (error) => failures.push(`${next.name}: ${error.message}`));
      }
    };
    await Promise.all(Array.from({ length: ABREAST }, one));
    put(this.status, failures.length ? h("div.note.bad", { role: "alert" },
      h("b", {}, `${count(failures.length)} of ${count(some.length)} were refused`), failures.slice(0, 5).join("\n")) : null);
    // each answer says what became of it: the list is not read anew, and nothing is missing from it meanwhile
    this.chosen.clear();
    this.draw();
  }

  /** @param {any} campaign */
  row(campaign) {
    const bar = document.createElement("progress-bar");
    /** @type {any} */ (bar).show(campaign.progress, campaign.state);
    const { id } = campaign;
    const box = h("input", { type: "checkbox", "aria-label": `Choose ${campaign.name}`, "data-id": `box-${id}`, checked: this.chosen.has(id), disabled: !mayChange(campaign), onchange: () => {
      if (box.checked) this.chosen.add(id); else this.chosen.delete(id);
      this.drawMany();
    } });
    return h("li.choosable", {}, readsOnly() ? null : box, h("a.row", { href: `#/campaigns/${id}`, "data-id": id },
      h("div", {},
        h("div.name", {}, campaign.name, (campaign.tags ?? []).flatMap((/** @type {string} */ tag) => [" ", h("span.tag", {}, tag)])),
        h("div.sub", {}, campaign.n_sources ? `${count(campaign.n_sources)} Green's functions · ` : "",
          h("span.mono", {}, id), said(campaign))),
      h("div", {}, h(`span.badge.${campaign.state}`, {}, campaign.cancelling && campaign.state !== "cancelled" ? "cancelling" : campaign.state)),
      bar,
      h("div.when.dim.right", { title: campaign.updated_at }, ago(campaign.updated_at)),
      campaign.error ? h("div.reason", {}, campaign.error.message) : null,
      campaign.inversions_failed ? h("div.reason", {}, failed(campaign)) : null));
  }

  empty() {
    if (this.campaigns.known.size) return h("li.empty", {}, "No campaign is like this.");
    if (readsOnly()) return h("li.empty", {}, "No campaigns yet.");
    return h("li.empty", {}, "No campaigns yet. ", h("a", { href: "#/new" }, "Begin one here"), ", or send one:", h("br"), h("code", {}, "afterslip submit campaign.yaml"));
  }
}

/** @param {any} campaign */
function failed({ inversions, inversions_failed: count }) {
  return inversions.length === 1 ? "Its inversion has failed." : `${count} of ${inversions.length} inversions have failed.`;
}

/** @param {any} campaign */
function said({ owner, priority }) {
  return [owner ? ` · ${owner}` : "", priority ? ` · priority ${priority}` : ""].join("");
}
