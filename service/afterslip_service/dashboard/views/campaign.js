// @ts-check
/** One campaign, live. */

import { all, follow, get, mayChange, readsOnly, send, session } from "/dashboard/api.js";
import { ACTIONS, act, allows, askPriority, askTags, change } from "/dashboard/campaigns.js";
import { calm, h, put } from "/dashboard/dom.js";
import { damageNote } from "/dashboard/elements/damage.js";
import { explanation } from "/dashboard/elements/explanation.js";
import { FaultMap } from "/dashboard/elements/fault-map.js";
import { GroupGrid } from "/dashboard/elements/group-grid.js";
import { inversionCard } from "/dashboard/elements/inversion-card.js";
import { pace } from "/dashboard/elements/pace.js";
import { share } from "/dashboard/elements/share.js";
import { Watch } from "/dashboard/watch.js";
import { convergence } from "/dashboard/elements/convergence.js";
import { Timeline } from "/dashboard/elements/timeline.js";
import { ago, count, duration, fixed, moment, tiny } from "/dashboard/format.js";
import { groupDetail } from "/dashboard/views/group.js";

/** @type {Record<string, string>} */
const SURE = {
  cancel: "Cancel this campaign? What is accepted stays, the rest is not computed.",
  delete: "Delete this campaign? It is removed from the lists, and nothing brings it back. Its files stay in the store.",
};

/** What runs gets longer in the timeline, and what workers report changes. */
const BEAT_MS = 4000;

/** @type {Record<string, [string, string]>} by physics: the view of Green's functions, and what is said of it */
const EXPLORERS = { viscoelastic: ["greens", "Look at the Green's functions"], waves: ["waves", "Look at the waves"] };

/** @param {any} campaign whether its Green's functions can be looked at as displacements through years */
export const explorable = ({ state, physics }) => state === "complete" && physics === "viscoelastic";

/** @param {any} campaign whether slip may be asked for */
const invertible = ({ state, cancelling, physics }) => physics === "viscoelastic" && state !== "cancelled" && !cancelling;

/** @param {HTMLElement} main @param {string} id */
export async function campaignView(main, id) {
  const view = new CampaignView(main, `/v1/campaigns/${id}`);
  // an unknown campaign is asked for once, and nothing more of it
  await get(`/v1/campaigns/${id}`);
  // listen first, then look: nothing can happen unseen between the two
  const { stop, opened } = follow(`/v1/campaigns/${id}/events`, (event) => view.take(event), () => view.soon());
  try {
    await opened;
    await view.inTurn(() => view.refresh());
  } catch (error) {
    stop();
    throw error;
  }
  const timer = setInterval(() => { view.drawHead(); view.explain(); }, 30000);
  const beat = setInterval(() => view.beat(), BEAT_MS);
  return () => { clearInterval(timer); clearInterval(beat); stop(); view.gone = true; };
}

class CampaignView {
  /** @param {HTMLElement} main @param {string} path */
  constructor(main, path) {
    this.path = path;
    /** @type {any} */
    this.campaign = null;
    /** @type {Map<number, any>} */
    this.groups = new Map();
    this.model = "";
    this.shown = "";
    this.explained = "";
    this.parts = Object.fromEntries(["head", "refused", "shared", "damage", "why", "facts", "bar", "live", "detail", "pace", "inversions", "spec"]
      .map((name) => [name, h("div", {})]));
    this.grid = new GroupGrid((index) => this.choose(index));
    this.faults = new FaultMap((index) => this.choose(index));
    this.timeline = new Timeline((index) => this.choose(index));
    this.watch = new Watch(path);
    /** the group that is looked at @type {any} */
    this.chosen = null;
    this.choosing = 0;
    this.placed = "";
    /** of groups @type {Set<number>} */
    this.changed = new Set();
    /** states of groups that events gave while groups were read @type {Map<number, string>} */
    this.newer = new Map();
    /** @type {Promise<void>} */
    this.last = Promise.resolve();
    /** left or deleted */
    this.gone = false;
    const soon = (/** @type {() => Promise<void>} */ read) =>
      calm(() => this.inTurn(read).catch((error) => this.alarm(error.message)), 400);
    this.soonGroups = soon(() => this.update());
    this.soon = soon(() => this.refresh());
    this.redraw = calm(() => this.drawLive(), 150);
    this.soonCurve = calm(() => this.drawCurve(), 500);
    this.soonTimes = calm(() => this.inTurn(() => this.drawTimes()).catch(() => {}), 1000);
    const { head, refused, shared, damage, why, facts, bar, live, detail, spec } = this.parts;
    put(main, head, refused, shared, damage, why, h("div.columns", {},
      this.left = h("div", {},
        h("section.card", {}, h("h2", {}, "Green's functions"), bar,
          h("div.maps", {}, this.grid.element, this.faults.element)),
        live, detail, this.timeline.element),
      h("div", {}, this.parts.pace, h("section.card", {}, h("h2", {}, "Model"), facts), spec)));
  }

  /**
   * Read in turn: a late answer must not hide a newer one.
   * @param {() => Promise<void>} read
   */
  inTurn(read) {
    const done = this.last.then(() => (this.gone ? undefined : read()));
    this.last = done.catch(() => {});
    return done;
  }

  async refresh() {
    this.newer.clear();
    const [campaign, groups, inversions] = await Promise.all([
      get(this.path), all(`${this.path}/groups`),
      get(`/v1/inversions?limit=100&campaign=${this.path.split("/").pop()}`),
    ]);
    this.campaign = campaign;
    // an answer may be older than the events that came before it
    for (const group of groups) group.state = this.newer.get(group.index) ?? group.state;
    this.groups = new Map(groups.map((group) => [group.index, group]));
    document.title = `${campaign.name} · afterslip`;
    this.drawHead();
    this.drawFacts();
    this.grid.show(groups);
    await this.drawPlaces(groups);
    this.drawLive();
    this.soonTimes();
    if (this.explained !== campaign.state) this.explain();
    await this.drawInversions(inversions.items.reverse());
    if (this.grid.pressed >= 0) await this.choose(this.grid.pressed);
  }

  /** Read the campaign again: what became of its groups is in their events. */
  async update() {
    const changed = new Set(this.changed);
    this.changed.clear();
    this.campaign = await get(this.path);
    this.drawHead();
    if (this.explained !== this.campaign.state) this.explain();
    if (changed.has(this.grid.pressed)) await this.choose(this.grid.pressed);
    this.soonTimes();
  }

  /** Whether something is under way; a complete campaign may have an inversion that runs. */
  get live() {
    return ["building", "running"].includes(this.campaign?.state) || this.watch.spans.some(({ finished_at: end }) => !end);
  }

  /** Now and then, while something is under way. */
  beat() {
    if (!document.hidden && this.live) this.soonTimes();
  }

  async drawTimes() {
    await this.watch.refresh(this.live);
    const { spans, workers } = this.watch;
    this.timeline.show(spans, workers, (span) => this.watch.busy(span));
    this.drawPace();
  }

  drawPace() { put(this.parts.pace, pace(this.campaign, this.watch.spans)); }

  /** Groups that lie elsewhere are drawn anew, others only change their colour. @param {any[]} groups */
  async drawPlaces(groups) {
    const shape = JSON.stringify(groups.map(({ index, sources }) => [index, sources]));
    const places = groups.length ? await this.watch.places() : null;
    if (places && this.placed !== shape) {
      this.placed = shape;
      const faults = this.campaign.spec?.model?.faults ?? [];
      this.faults.show(places, groups, new Map(faults.filter((/** @type {any} */ { plane }) => plane)
        .map((/** @type {any} */ { name, plane }) => [name, plane])));
    } else for (const { index, state } of groups) this.faults.mark(index, state);
  }

  /** @param {{kind: string, data: any}} event */
  take({ kind, data }) {
    if (kind === "group.progress") {
      if (data.job === "model") this.model = data.phase;
      const group = this.groups.get(data.index);
      if (group && data.job !== "model") group.progress = data;
      this.redraw();
      if (data.job !== "model") this.lengthen(data);
      return;
    }
    if (kind === "group.state") this.newer.set(data.index, data.state);
    const changed = kind === "group.state" && this.groups.get(data.index);
    if (changed) {
      // another attempt says anew how far it is
      if (data.state === "running" && changed.state !== "running") delete changed.progress;
      changed.state = data.state;
      this.grid.mark(data.index, data.state);
      this.faults.mark(data.index, data.state);
      this.redraw();
      this.changed.add(data.index);
      this.soonGroups();
      return;
    }
    if (kind === "store.damaged") this.parts.damage.append(damageNote(data));
    this.soon();
  }

  drawHead() {
    const { campaign } = this;
    const state = campaign.cancelling && campaign.state !== "cancelled" ? "cancelling" : campaign.state;
    const why = campaign.error && h("div.note.bad", { role: "alert" },
      h("b", {}, campaign.state === "paused" ? "Paused by the service" : `Failed: ${campaign.error.class.replaceAll("_", " ")}`),
      campaign.error.message);
    put(this.parts.head,
      h("div.head", {},
        h("div.grow", {},
          h("h1", {}, campaign.name, " ", h(`span.badge.${campaign.state}`, {}, state)),
          h("div.sub", { title: moment(campaign.created_at) },
            `submitted ${ago(campaign.created_at)}${campaign.owner ? ` by ${campaign.owner}` : ""} · `,
            h("span.mono", {}, campaign.id), left(campaign),
            (campaign.tags ?? []).flatMap((/** @type {string} */ tag) => [" ", h("span.tag", {}, tag)]))),
        h("div.buttons", {}, this.buttons())),
      why);
    const bar = /** @type {any} */ (document.createElement("progress-bar"));
    bar.show(campaign.progress, campaign.state);
    const building = campaign.state === "building" && this.model ? h("p.sub", {}, this.model) : null;
    const explorer = campaign.state === "complete" && EXPLORERS[campaign.physics];
    const explore = explorer ? h("a", { href: `#/campaigns/${campaign.id}/${explorer[0]}` }, explorer[1]) : null;
    this.drawPace();
    put(this.parts.bar, bar, building, h("p", {}, explore));
  }

  /** Say why it waits or failed; asked when its state changes, and now and then. */
  async explain() {
    if (this.gone) return;
    this.explained = this.campaign.state;
    const found = await get(`${this.path}/explain`).catch(() => null);
    put(this.parts.why, found && explanation(found, mayChange(this.campaign) ? (name) => this.retry({ error_class: name }) : null));
  }

  buttons() {
    if (readsOnly()) return [];
    const mine = mayChange(this.campaign);
    const press = (/** @type {string} */ words, /** @type {() => Promise<any>} */ run, tag = "button") =>
      h(tag, { type: "button", onclick: () => this.attempt(run) }, words);
    const { id, name, priority, tags } = this.campaign;
    return [
      ...(mine ? [
        press("Rename", async () => { const given = window.prompt("Name", name)?.trim(); if (given && given !== name) await change(id, { name: given }); }),
        press("Tags", async () => { const given = askTags(tags); if (given) await change(id, { tags: given }); }),
        press("Priority", async () => { const given = askPriority(priority); if (given !== null) await change(id, { priority: given }); }),
      ] : []),
      h("a.button", { href: `#/new?from=${id}` }, "Start from this"),
      // where nobody is asked for a token the address is the link
      session().auth && session().role === "admin" ? press("Share", () => share(this.campaign, this.parts.shared)) : null,
      ...Object.entries(ACTIONS).filter(([action]) => mine && allows(this.campaign, action)).map(([action, [words]]) =>
        press(words, () => this.act(action), action in SURE ? "button.danger" : "button")),
    ];
  }

  /** @param {string} action */
  async act(action) {
    if (SURE[action] && !window.confirm(SURE[action])) return;
    await this.inTurn(async () => { await act(this.campaign.id, action); this.gone = action === "delete"; });
    if (this.gone) location.hash = "#/";
  }

  /** Retry some of what failed. @param {{groups?: number[], error_class?: string}} choice */
  retry(choice) { return this.attempt(() => send(`${this.path}/groups/retry`, choice)); }

  /** @param {() => Promise<any>} run */
  async attempt(run) {
    put(this.parts.refused);
    try {
      await run();
      if (location.hash.startsWith("#/campaigns/")) await this.inTurn(() => this.refresh());
    } catch (error) {
      // until the next attempt, whatever is read meanwhile
      put(this.parts.refused, h("div.note.bad", { role: "alert" }, /** @type {Error} */ (error).message));
    }
  }

  /** Say until it is read again. @param {string} message */
  alarm(message) {
    this.parts.head.append(h("div.note.bad", { role: "alert" }, message));
  }

  drawFacts() {
    const { campaign } = this;
    const model = campaign.model ?? {};
    const quality = model.quality ?? {};
    const spec = campaign.spec ?? {};
    const facts = [
      ["Physics", campaign.physics],
      ["Unknowns", count(model.n_unknowns)],
      ["Elements", count(model.n_elements)],
      ["Green's functions", count(campaign.n_sources)],
      ["Priority", String(campaign.priority)],
      ["Worker time", duration(campaign.worker_seconds)],
      ["Until", spec.times?.until ?? "–"],
      ["Worst aspect ratio", fixed(quality.aspect_max, 1)],
      ["Mean quality (1: regular)", fixed(quality.gamma_mean)],
      ["Edges", quality.edge_min ? `${fixed(quality.edge_min / 1000, 1)} – ${fixed(quality.edge_max / 1000, 0)} km` : "–"],
      ["Layers", spec.model?.layers?.map((/** @type {any} */ layer) => layer.name).join(", ") ?? "–"],
    ];
    // once the model is built, what is still unknown is nothing that this physics has
    const known = facts.filter(([, value]) => !campaign.model || value !== "–");
    put(this.parts.facts, h("dl.facts", {}, known.map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
    const greens = `${location.origin}${campaign.links.greens}`;
    put(this.parts.spec, h("section.card", {}, h("details", {}, h("summary", {}, "Spec and data"),
      h("p.sub", {}, "Open the Green's functions from Python:"),
      h("pre", {}, `xarray.open_zarr("${greens}")`),
      h("pre", {}, JSON.stringify(spec, null, 2)))));
  }

  drawLive() {
    const running = [...this.groups.values()].filter((group) => group.state === "running");
    put(this.parts.live, running.length
      ? h("section.card", { "aria-live": "off" }, h("h2", {}, "Running now"), h("div.live", {}, running.map(liveLine)))
      : null);
  }

  /** @param {any[]} inversions */
  async drawInversions(inversions) {
    const complete = this.campaign.state === "complete", shape = JSON.stringify([complete, inversions]);
    if (this.shown === shape) return;
    this.shown = shape;
    // what was found comes first, what is still to come last
    if (complete) this.left.prepend(this.parts.inversions);
    else this.left.append(this.parts.inversions);
    const cards = await Promise.all(inversions.map((inversion) => inversionCard(inversion, complete)));
    put(this.parts.inversions, cards.length
      ? h("section.card", {}, h("h2", {}, cards.length > 1 ? "Inversions" : "Inversion"), cards) : null,
    invertible(this.campaign) && mayChange(this.campaign) ? h("p", {}, h("a.button", { href: `#/campaigns/${this.campaign.id}/invert` }, "New inversion")) : null);
  }

  /** A sample of the group that is looked at makes its curve longer. @param {any} data */
  lengthen(data) {
    const attempt = this.chosen?.index === data.index && this.chosen.attempts.at(-1);
    if (!attempt || attempt.token !== data.token) return;
    const last = attempt.history.at(-1);
    attempt.history.push({ ...data, seconds: last ? last.seconds : 0 });
    this.soonCurve();
  }

  drawCurve() {
    const place = this.parts.detail.querySelector(".convergence"), attempt = this.chosen?.attempts.at(-1);
    if (place && attempt) put(place, convergence(attempt));
  }

  /** @param {number} index */
  async choose(index) {
    const number = this.choosing += 1;
    this.grid.press(index);
    this.faults.press(index);
    this.chosen = null;
    if (index < 0) {
      put(this.parts.detail);
      return;
    }
    const found = await get(`${this.path}/groups/${index}`);
    // another one was chosen meanwhile, or none
    if (number !== this.choosing) return;
    this.chosen = found;
    put(this.parts.detail, groupDetail(found, () => this.choose(-1), mayChange(this.campaign) ? () => this.retry({ groups: [index] }) : null));
  }
}

/** @param {any} campaign */
function left({ state, remaining_s: seconds }) {
  const going = ["waiting", "building", "running"].includes(state);
  return going && Number.isFinite(seconds) ? ` · about ${duration(seconds)} left` : "";
}

/** @param {any} group */
function liveLine(group) {
  const progress = group.progress ?? {};
  const done = progress.solves_done ?? 0, expected = progress.solves_expected;
  const bar = h(expected ? "div.bar" : "div.bar.unknown", {});
  if (expected) {
    const part = h("i", {});
    part.style.width = `${Math.min(100, (100 * done) / expected)}%`;
    bar.append(part);
  }
  // nothing was said yet: a new worker loads its solver first
  const words = [progress.phase ?? "starting; on a new machine the solver is compiled first, for about a minute"];
  if (expected) words.push(`solve ${done} of about ${expected}`);
  else if (done) words.push(`${count(done)} solves`);
  if (progress.iteration > 0) words.push(`iteration ${count(progress.iteration)}`);
  const residual = Number.isFinite(progress.residual) ? `residual ${tiny(progress.residual)}` : duration(progress.seconds);
  return h("div", {}, h("div.line", {},
    h("span", {}, h("b", {}, `Group ${group.index}`), ` · ${words.join(" · ")}`), h("span.dim", {}, residual)), bar);
}
