// @ts-check
/** The Green's functions of a campaign, computed here from its store. */

import { get, Problem, session } from "/dashboard/api.js";
import { copyAddress, h, put } from "/dashboard/dom.js";
import { known } from "/dashboard/elements/key.js";
import { select } from "/dashboard/elements/select.js";
import { mark } from "/dashboard/elements/series.js";
import { LONGEST, SurfaceMap } from "/dashboard/elements/surface-map.js";
import { explorable } from "/dashboard/views/campaign.js";
import { figures } from "/dashboard/views/greens-figures.js";
import { follow, written } from "/dashboard/views/greens-link.js";
import { coloured, sampled } from "/dashboard/views/greens-sources.js";
import { savePdf, saveSvg } from "/dashboard/figure.js";
import { Greens, YEAR, comparable } from "/dashboard/physics/viscoelastic/greens.js";
import { Difference, Pair, less } from "/dashboard/physics/viscoelastic/motion.js";
import { placeSeries } from "/dashboard/physics/viscoelastic/place-series.js";

const SHOWN = ["east", "north", "up", "length", "estimated error"];
// of colours: the error of the mesh
const ERROR = 4;
// shown of two campaigns: both maps
export const BOTH = "3";
// output times that the ends of the colours are taken from, at most
const RANGED = 20;
// of the largest value: half a step of the 256 colours
const UNSEEN = 1 / 512;

/** @param {HTMLElement} main @param {string} id */
export async function greensView(main, id) {
  const campaign = await get(`/v1/campaigns/${id}`);
  document.title = `Green's functions of ${campaign.name} · afterslip`;
  if (!explorable(campaign)) {
    throw new Problem(0, `The Green's functions of ${campaign.name} are shown here once all are computed, and only those of viscoelastic campaigns.`);
  }
  put(main, h("div.empty", {}, "Reading the Green's functions…"));
  // a link shows no other campaign
  const { items } = session().campaign ? { items: [] } : await get("/v1/campaigns?state=complete&limit=200");
  const others = items.filter((/** @type {any} */ one) => one.id !== id && explorable(one));
  const view = new GreensView(main, campaign, await Greens.open(campaign.links.greens), others);
  await follow(view, new URLSearchParams(location.hash.split("?")[1] ?? ""));
  return () => view.maps.forEach(({ resized }) => resized.disconnect());
}

export class GreensView {
  /** @param {HTMLElement} main @param {any} campaign @param {Greens} greens @param {any[]} others that are complete, too */
  constructor(main, campaign, greens, others) {
    this.greens = greens;
    this.campaign = campaign;
    this.others = others;
    /** another campaign, of the same mesh @type {Greens | null} */
    this.second = null;
    /** @type {import("/dashboard/physics/viscoelastic/motion.js").Curve | Pair | null} */
    this.curve = null;
    /** of which modes are being read @type {object | null} */
    this.reading = null;
    /** of every unit source at the place, (time, source, 3) @type {number[][][] | null} */
    this.all = null;
    // of choices and of questions to the service: only what the last one finds is shown
    this.choosing = this.pending = 0;
    /** (node, 3) at the event, where only the change since is shown; of each map @type {(Float64Array | null)[]} */
    this.firsts = [];
    this.step = 0;
    this.map = this.surface();
    /** of the other campaign, where both are shown @type {SurfaceMap | null} */
    this.twin = null;
    this.panels = h("div.twins", {}, this.map.element);
    this.source = select("Unit source", greens.sources.map(({ label }) => label), (row) => this.choose(row));
    this.clicks = select("A click on the map picks", ["a place", "a unit source of the same component"], () => {});
    this.shown = select("Colours", ["east", "north", "up", "length of the vector",
      ...(greens.moments ? ["estimated error of the mesh"] : [])], () => this.fields(), 3);
    this.part = select("Displacement", ["all", "only the change since the event"], () => this.fields());
    this.other = select("Compare with", ["no other campaign", ...others.map(({ name, id: other }) => `${name} · ${other}`)], (row) => this.compare(row));
    this.which = select("Shown", ["this campaign", "the other", "this less the other", "both, side by side"], () => this.choose(Number(this.source.field.value)));
    this.which.label.hidden = true;
    this.refused = h("div", { hidden: true });
    this.every = h("input", { type: "checkbox", onchange: () => this.sense() });
    this.time = h("input", {
      type: "range", min: 0, max: greens.times.length - 1, value: 0, id: "time",
      oninput: () => { this.step = Number(this.time.value); this.frame(); },
      // an address for each frame would be more than a browser takes
      onchange: () => this.remember(),
    });
    this.when = h("output", { for: "time" });
    const number = (/** @type {string} */ name) => h("input", {
      type: "number", step: "any", "aria-label": `km ${name}`, onchange: () => this.typed(),
    });
    this.east = number("east");
    this.north = number("north");
    this.legend = h("div.ends", {});
    this.left = h("p.sub", {});
    this.sensitivity = h("p.sub", {});
    this.chart = h("div.places", {});
    this.status = h("p.sub", { role: "status" });
    this.axis = 3;
    this.most = this.longest = 0;
    const press = (/** @type {string} */ name, /** @type {() => void} */ act) => h("button", { type: "button", onclick: act }, name);
    put(main,
      h("div.head", {}, h("div.grow", {}, h("h1", {}, "Green's functions"),
        h("div.sub", {}, h("a", { href: `#/campaigns/${campaign.id}` }, campaign.name),
          " · displacement of the ground in m per m of slip"))),
      h("div.columns", {},
        h("section.card", { "aria-label": "Map" }, this.panels,
          h("div.time", {}, h("label", { for: "time" }, "Time after the event"), this.time, this.when),
          this.map.scale, this.legend, this.left, this.sensitivity,
          h("div.buttons", {}, press("Closer", () => this.turnTo((map) => map.zoom(0.6))), press("Farther", () => this.turnTo((map) => map.zoom(1 / 0.6))),
            press("Around the sources", () => this.turnTo((map) => map.focus())), press("Whole surface", () => this.turnTo((map) => map.focus(true))),
            press("Copy a link to this view", async () => this.say(await copyAddress())),
            press("Save as SVG", () => figures(this).forEach(({ figure, name }) => saveSvg(figure, name))),
            press("Save as PDF", () => savePdf(figures(this).map(({ figure }) => figure), this.campaign.name).catch((error) => this.say(error.message))))),
        h("div", {},
          h("section.card.choices", { "aria-label": "What is shown" }, this.source.label, this.clicks.label, this.shown.label, this.part.label,
            others.length ? [this.other.label, this.refused, this.which.label] : null),
          h("section.card", {}, h("h2", {}, "Time series at a place"),
            h("div.place", {}, h("label", {}, "km east", this.east), h("label", {}, "km north", this.north)),
            h("label.check", {}, this.every, "Colour every unit source by what it does here"), this.status, this.chart))));
    this.say("Click on the map, or type a place.");
  }

  /** @param {string} words */
  say(words) { put(this.status, words); }

  /** A map of the ground; two of them have the same nodes and unit sources. */
  surface() {
    const map = new SurfaceMap(/** @type {any} */ (this.greens.surface), this.greens.sources, (x, y) => this.click(x, y));
    map.frame(this.campaign.spec?.model?.frame);
    return map;
  }

  /** Those that are shown. @returns {SurfaceMap[]} */
  get maps() { return this.twin ? [this.map, this.twin] : [this.map]; }

  /** Show another part of the ground, on all maps. @param {(map: SurfaceMap) => void} go */
  turnTo(go) {
    go(this.map);
    const { centre, span } = this.map;
    if (this.twin) { Object.assign(this.twin, { centre, span }); this.twin.lay(); }
    this.remember();
  }

  /** Show the two maps, or one. @param {boolean} two */
  beside(two) {
    if (two === Boolean(this.twin)) return;
    this.twin?.resized.disconnect();
    this.twin = two ? this.surface() : null;
    const words = [this.campaign.name, this.others[Number(this.other.field.value) - 1]?.name];
    this.panels.classList.toggle("two", two);
    put(this.panels, this.twin ? this.maps.map(({ element }, i) => h("figure.panel", {}, element, h("figcaption", {}, words[i]))) : this.map.element);
    if (this.twin) Object.assign(this.twin, { place: this.map.place, centre: this.map.centre, span: this.map.span });
  }

  remember() { history.replaceState(null, "", written(this)); }

  /** @param {number} row */
  async choose(row) {
    const number = this.choosing += 1;
    this.source.field.value = String(row);
    let failure = "";
    const curve = await this.curveOf(row).catch((error) => { failure = error.message; return null; });
    // another may have been chosen meanwhile, or another campaign
    if (number !== this.choosing) return;
    this.curve = curve;
    this.beside(curve instanceof Pair && !(curve instanceof Difference));
    for (const map of this.maps) { map.source = this.greens.sources[row]; map.mark(); }
    if (failure) this.failed(failure);
    this.fields();
    this.sense();
  }

  /** @param {string} words */
  failed(words) {
    this.curve = null;
    for (const map of this.maps) map.clear();
    put(this.left);
    put(this.chart, h("div.note.bad", { role: "alert" }, words));
  }

  /** @param {number} row of the unit source */
  async curveOf(row) {
    const which = this.second ? this.which.field.value : "0";
    const [first, second] = await Promise.all([which === "1" ? null : this.greens.curve(row), which === "0" ? null : this.second?.curve(row)]);
    return first && second ? new (which === BOTH ? Pair : Difference)(first, second) : first ?? second ?? null;
  }

  /** Say why a campaign is not compared, beside its choice: the time series has words of its own. @param {string} words */
  refuse(words) {
    this.refused.hidden = !words;
    put(this.refused, words && h("div.note.bad", { role: "alert" }, words));
  }

  /** @param {number} row 0: with none @param {string} [which] of them is shown */
  async compare(row, which = "2") {
    this.second = null;
    this.refuse("");
    try {
      const other = row ? await Greens.open(this.others[row - 1].links.greens) : null;
      if (other && !comparable(this.greens, other)) throw new Problem(0, "It has other nodes or unit sources: only campaigns that differ in their rock alone are compared.");
      if (this.other.field.value !== String(row)) return;
      this.second = other;
      this.beside(false);
      this.which.field.value = other && ["0", "1", "2", BOTH].includes(which) ? which : "0";
    } catch (error) {
      if (this.other.field.value !== String(row)) return;
      this.other.field.value = "0";
      this.refuse(/** @type {Error} */ (error).message);
    }
    this.which.label.hidden = !this.second;
    await this.choose(Number(this.source.field.value));
  }

  /** What every unit source does at the place. */
  async sense() {
    const { place } = this.map, number = this.pending += 1;
    this.all = null;
    if (this.every.checked && place) {
      const found = await sampled(this, place).catch((error) => { this.say(error.message); return null; });
      // another place may have been chosen meanwhile
      if (number !== this.pending || !found) return;
      this.all = found;
    }
    this.shade();
  }

  /** Colour the unit sources of the component that is looked at. */
  shade() {
    const { all, map: { alike, source } } = this, axis = Math.min(this.axis, 3);
    const found = all && coloured(all, alike, axis, this.step, this.firsts.length > 0);
    for (const map of this.maps) map.shades = null;
    this.map.shades = found && found.shades;
    for (const map of this.maps) map.mark();
    put(this.sensitivity, found && `unit sources of ${source.component} slip: by what they do at the place, ${SHOWN[axis]}, at most ${found.most.toPrecision(3)} m/m`);
    this.remember();
  }

  fields() { this.draw(); this.rest(); }

  /** Whether what was read is enough for what is shown; a place's numbers need all. */
  enough() {
    const { curve, map: { place } } = this;
    if (!curve || ((place || this.axis === ERROR) && curve.errors === undefined)) return !curve;
    return curve.missing(curve.known[0]) <= this.unseen();
  }

  /** What may be left out of the motion, m/m. */
  unseen() { return this.map.place ? 0 : this.axis === ERROR ? Infinity : UNSEEN * this.most; }

  /** Read what else shows in the colours. */
  async rest() {
    const { curve } = this;
    if (!curve || this.reading === curve) return;
    this.reading = curve;
    try {
      while (curve === this.curve && !this.enough()) {
        if ((this.map.place || this.axis === ERROR) && curve.errors === undefined) await curve.withErrors();
        let [wanted, count] = curve.known;
        while (wanted < count && curve.missing(wanted) > this.unseen()) wanted += 1;
        await curve.upTo(wanted);
        if (curve === this.curve) this.draw();
      }
    } catch (error) {
      if (curve === this.curve) this.failed(/** @type {Error} */ (error).message);
    } finally {
      if (this.reading === curve) this.reading = null;
    }
  }

  /** The ends of the colours and the scale of the arrows, the same for all times. */
  draw() {
    if (!this.curve) return;
    const change = this.part.field.value === "1";
    this.firsts = change ? [this.curve, ...(this.twin ? [/** @type {Pair} */ (this.curve).second] : [])].map((curve) => curve.at(0)) : [];
    this.axis = Number(this.shown.field.value);
    const length = this.axis >= 3;
    this.most = this.longest = 0;
    // the colours of what is not shown would be taken for those of the map
    this.map.scale.toggleAttribute("hidden", this.unknown());
    if (this.unknown()) { this.frame(); this.series(); this.gaps(); return; }
    const { times } = this.greens, every = Math.ceil(times.length / RANGED);
    for (const t of times.filter((_, i) => (times.length - 1 - i) % every === 0)) {
      for (const field of this.shownFields(t)) {
        for (let i = 0; i < field.length; i += 3) {
          // Math.hypot takes ten times as long
          const flat = field[i] * field[i] + field[i + 1] * field[i + 1];
          this.longest = Math.max(this.longest, flat);
          this.most = Math.max(this.most, length ? flat + field[i + 2] * field[i + 2] : Math.abs(field[i + this.axis]));
        }
      }
    }
    this.longest = Math.sqrt(this.longest);
    if (length) this.most = Math.sqrt(this.most);
    // once for all times: what a frame changes has to be drawn in it
    const end = `${this.most.toPrecision(3)} m/m`;
    put(this.legend, h("span", {}, length ? "0" : `−${end}`), h("span", {}, SHOWN[this.axis]), h("span", {}, end),
      this.longest > 0 && h("span.all", {}, known("observed", LONGEST, this.longest, "m/m")));
    this.frame();
    this.series();
    this.gaps();
  }

  /** Say what of the modes was not read. */
  gaps() {
    const curve = /** @type {any} */ (this.curve), [known, count] = curve.known, missing = curve.missing(known);
    put(this.left, missing > 0 && Number.isFinite(missing) && this.axis !== ERROR
      ? `From ${known} of ${count} modes; the others change this by at most about ${missing.toPrecision(1)} m/m, and are read for a place.` : "");
  }

  /** Whether an error is to be shown that was not estimated. */
  unknown() { return this.axis === ERROR && !this.curve?.errors; }

  /** @param {number} t s @returns {Float64Array} (node, 3) */
  field(t) {
    if (this.axis === ERROR) return /** @type {any} */ (this.curve).errors.at(t, this.firsts.length > 0);
    return less(/** @type {any} */ (this.curve).at(t), this.firsts[0]);
  }

  /** Of each map that is shown: they have one scale. @param {number} t s */
  shownFields(t) {
    return [this.field(t), ...(this.twin ? [less(/** @type {Pair} */ (this.curve).second.at(t), this.firsts[1])] : [])];
  }

  frame() {
    if (!this.curve) return;
    this.when.value = `${Number((this.greens.times[this.step] / YEAR).toPrecision(4))} yr`;
    this.time.setAttribute("aria-valuetext", this.when.value);
    if (this.unknown()) {
      for (const map of this.maps) map.clear();
      put(this.legend, h("span", {}, this.curve instanceof Pair ? "The estimated error of the mesh is not shown while two campaigns are compared."
        : this.curve.errors === undefined ? "Reading…" : "not estimated for this unit source"));
      this.now();
      return;
    }
    const fields = this.shownFields(this.greens.times[this.step]);
    this.maps.forEach((map, i) => map.show(fields[i], Math.min(this.axis, 3), this.most, this.longest));
    this.now();
    if (this.all) this.shade();
  }

  /** @param {number} x m @param {number} y m */
  click(x, y) {
    if (this.clicks.field.value === "0") { this.pick(x, y); return; }
    const far = (/** @type {any} */ source) => Math.hypot(source.x - x, source.y - y);
    const nearest = this.map.alike.reduce((best, source) => (far(source) < far(best) ? source : best));
    this.choose(nearest.index);
  }

  typed() {
    if (this.east.value !== "" && this.north.value !== "") this.pick(1e3 * Number(this.east.value), 1e3 * Number(this.north.value));
  }

  /** @param {number} x m @param {number} y m */
  pick(x, y) {
    this.east.value = String(Number((x / 1e3).toFixed(3)));
    this.north.value = String(Number((y / 1e3).toFixed(3)));
    // what is shown belongs to the numbers that are shown
    for (const map of this.maps) {
      map.place = { x: 1e3 * Number(this.east.value), y: 1e3 * Number(this.north.value) };
      map.mark();
    }
    this.series();
    this.rest();
    this.sense();
  }

  /** Mark the time in the series that are drawn. */
  now() {
    for (const chart of this.chart.querySelectorAll(".series")) mark(chart, this.greens.times[this.step] / YEAR);
    for (const row of this.chart.querySelectorAll("tr[aria-current]")) row.removeAttribute("aria-current");
    for (const body of this.chart.querySelectorAll("tbody")) body.children[this.step].setAttribute("aria-current", "true");
  }

  series() {
    const place = this.map.place;
    if (!place || !this.curve) return;
    const found = /** @type {any} */ (this.greens.surface).locate(place.x, place.y);
    if (!found) {
      put(this.chart);
      this.say("This place is outside the model's surface.");
      return;
    }
    if (!this.enough()) {
      put(this.chart);
      this.say("Reading the other modes…");
      return;
    }
    const change = this.part.field.value === "1", { curve, greens, step } = this, { errors } = curve;
    const both = this.twin && [this.campaign.name, this.others[Number(this.other.field.value) - 1].name];
    put(this.chart, placeSeries(curve, found, greens, step, change, both?.[0]),
      both && placeSeries(/** @type {Pair} */ (curve).second, found, greens, step, change, both[1]));
    this.say(`Displacement in m per m of slip${errors ? ", and the estimated error of the mesh (length of the vector)" : ""}:`);
  }
}
