// @ts-check
/** The waves of a campaign: a record section, one station, and the ground through time. */

import { get, Problem } from "/dashboard/api.js";
import { copyAddress, h, put } from "/dashboard/dom.js";
import { css, table } from "/dashboard/elements/colours.js";
import { select } from "/dashboard/elements/select.js";
import { savePdf, saveSvg, standalone, withField } from "/dashboard/figure.js";
import { arrival, layered } from "/dashboard/physics/waves/arrivals.js";
import { MotionMap } from "/dashboard/physics/waves/motion-map.js";
import { AXES, RecordSection, plain } from "/dashboard/physics/waves/record-section.js";
import { markStation, stationSeries } from "/dashboard/physics/waves/station.js";
import { STORED, Waves, largest } from "/dashboard/physics/waves/waves.js";

/** @typedef {import("/dashboard/physics/waves/waves.js").Quantity} Quantity */

const QUANTITIES = /** @type {Quantity[]} */ (Object.keys(STORED));
const UNITS = { velocity: "m/s per m of slip", displacement: "m per m of slip" };
const COMPONENTS = ["up", "east", "north", "all"];
// of the map, seconds of the series in one of a clock that make it last this long
const PLAYED_S = 15;

/** @param {HTMLElement} main @param {string} id */
export async function wavesView(main, id) {
  const asked = new URLSearchParams(location.hash.split("?")[1] ?? ""), here = location.hash;
  const campaign = await get(`/v1/campaigns/${id}`);
  document.title = `Waves of ${campaign.name} · afterslip`;
  if (campaign.physics !== "waves" || campaign.state !== "complete") {
    throw new Problem(0, `The waves of ${campaign.name} are shown here once all are computed, and only those of campaigns with physics: waves.`);
  }
  put(main, h("div.empty", {}, "Reading the waves…"));
  const [waves] = await Promise.all([Waves.open(campaign.links.greens), styled()]);
  if (location.hash !== here) return () => {};
  const view = new WavesView(main, campaign, waves, asked);
  await view.choose();
  return () => view.leave();
}

class WavesView {
  /** @param {HTMLElement} main @param {any} campaign @param {Waves} waves @param {URLSearchParams} asked */
  constructor(main, campaign, waves, asked) {
    this.campaign = campaign;
    this.waves = waves;
    this.gone = false;
    /** what is shown, (station, 3, sample) @type {Float32Array | Float64Array | null} */
    this.series = null;
    /** @type {Float32Array | Float64Array} (station, 3) */
    this.offsets = new Float64Array(0);
    /** displacement, (row, column, 3, sample) @type {Float32Array | null} */
    this.ground = null;
    /** its shown component, (point, sample) @type {Float32Array | null} */
    this.field = null;
    this.reading = 0;
    this.frame = 0;
    const { stations, times } = waves, end = times[times.length - 1];
    const number = (/** @type {string} */ name, /** @type {number} */ first) => {
      const found = Number(asked.get(name) ?? first);
      return Number.isFinite(found) ? found : first;
    };
    const known = (/** @type {string} */ name, /** @type {string[]} */ words) => Math.max(0, words.indexOf(asked.get(name) ?? ""));
    const slips = [...new Set(waves.sources.map(({ component }) => component))];
    this.components = slips;
    /** of the sample that is shown, −1: that of the largest motion */
    this.time = asked.has("time") ? Math.max(0, Math.min(times.length - 1, Math.round(number("time", 0) / waves.step))) : -1;
    this.station = stations.findIndex(({ name }) => name === asked.get("station"));
    const again = () => { this.choose(); }, draw = () => this.draw();
    this.component = select("Slip", slips.map((name) => `along ${name}`), () => { this.#patches(); again(); }, known("slip", slips));
    this.patch = select("Unit source: along strike, down dip", [], again);
    this.#patches(number("source", 0));
    this.quantity = select("Motion", QUANTITIES, again, known("motion", QUANTITIES));
    this.axis = select("Component", ["up", "east", "north", "all three"], draw, known("component", COMPONENTS));
    this.scaling = select("Scale of the lines", ["common", "each its own"], draw, asked.get("own") === "1" ? 1 : 0);
    this.spacing = select("Stations", ["by distance", "evenly"], draw, asked.get("even") === "1" ? 1 : 0);
    this.gain = field("Lines larger by", number("gain", 1), draw, { min: 0, step: "any" });
    this.from = field("From, s", number("from", 0), draw, { min: 0, max: end, step: "any" });
    this.to = field("To, s", number("to", end), draw, { min: 0, max: end, step: "any" });
    this.contrast = field("Colours stronger by", number("contrast", 1), draw, { min: 0, step: "any" });
    this.guided = h("input", { type: "checkbox", checked: asked.get("guides") !== "0", onchange: draw });
    this.layers = { P: layered(campaign.spec?.model, "vp"), S: layered(campaign.spec?.model, "vs") };
    this.named = select("Station", ["none", ...stations.map(({ name }) => name)], (row) => this.pick(row - 1));
    this.section = new RecordSection((station, time) => this.pick(station, Math.round(time / waves.step)));
    this.map = new MotionMap(waves, (station) => this.pick(station), (source) => this.slip(source), () => this.remember());
    this.slider = h("input", { type: "range", min: 0, max: times.length - 1, value: 0, id: "time", oninput: () => { this.pause(); this.at(Number(this.slider.value)); } });
    this.when = h("output", { for: "time" });
    this.play = h("button", { type: "button", onclick: () => (this.frame ? this.pause() : this.run()) }, "Play");
    this.parts = Object.fromEntries(["heading", "note", "above"].map((name) => [name, h("div", {})]));
    Object.assign(this.parts, { ends: h("div.ends", {}), detail: h("div.station-detail", {}) });
    this.status = h("span.sub", { role: "status" });
    this.#lay(main);
    this.map.map.frame(campaign.spec?.model?.frame);
    const place = (asked.get("at") ?? "").split(",").map(Number);
    this.map.fit();
    if (place.length === 3 && place.every(Number.isFinite) && place[2] > 0) Object.assign(this.map.map, { centre: place.slice(0, 2), span: place[2] });
  }

  /** @param {HTMLElement} main */
  #lay(main) {
    const { campaign, waves, parts } = this, { attrs } = waves, two = (/** @type {number} */ v) => Number(v.toPrecision(3));
    const press = (/** @type {string} */ name, /** @type {() => void} */ act) => h("button", { type: "button", onclick: act }, name);
    const facts = `to ${two(attrs.frequency_hz)} Hz · ${two(attrs.duration_s)} s, every ${two(attrs.sampling_s)} s · voxels of ${Math.round(attrs.voxel_m)} m`;
    put(main,
      h("div.head", {}, h("div.grow", {}, h("h1", {}, "Waves"),
        h("div.sub", {}, h("a", { href: `#/campaigns/${campaign.id}` }, campaign.name), ` · ${facts}`)),
      h("div.buttons", {}, press("Copy a link to this view", () => this.copy()), press("Save as SVG", () => this.figures().forEach(({ name, figure }) => saveSvg(figure, name))),
        press("Save as PDF", () => savePdf(this.figures().map(({ figure }) => figure), `${campaign.name}-waves`).catch((error) => this.say(error.message))))),
      h("section.card", { "aria-label": "What is shown" }, h("div.choices.brief", {},
        [this.patch, this.component, this.quantity, this.axis, this.scaling, this.spacing].map(({ label }) => label),
        [this.gain, this.contrast, this.from, this.to].map(({ label }) => label),
        this.layers.P ? h("label.check", {}, this.guided, "P and S arrivals") : null), this.status),
      parts.note,
      this.columns = h("div.columns", {},
        h("div", {},
          h("section.card", { "aria-label": "Record section" }, h("h2", {}, "Record section"),
            waves.stations.length ? [this.section.element, this.section.hover, parts.above]
              : h("p", {}, "The store has no series at stations: the spec's key ", h("code", {}, "stations"), " asks for them.")),
          waves.stations.length ? h("section.card", { "aria-label": "Station" }, h("h2", {}, "Station"), h("div.station-choice", {}, this.named.label), parts.detail) : null),
        h("section.card", { "aria-label": "Map" }, h("h2", {}, "Motion at one time"), this.map.map.element, this.map.scale, parts.ends,
          h("div.time", {}, h("label", { for: "time" }, "Time"), this.slider, this.when, this.play),
          this.map.map.buttons(press("Around the stations", () => { this.map.fit(); this.remember(); }), press("All of the ground", () => { this.map.fit(true); this.remember(); })),
          parts.heading)));
  }

  /** Fill the list of what slips. @param {number} [source] that is to be chosen */
  #patches(source) {
    const before = this.slips?.[this.patch.field.value]?.label;
    this.slips = this.waves.slips(this.components[Number(this.component.field.value)]);
    put(this.patch.field, this.slips.map(({ short }, i) => h("option", { value: i }, short)));
    const row = this.slips.findIndex(({ rows, label }) => (source === undefined ? label === before : source >= 0 ? rows.includes(source) : rows.length > 1));
    this.patch.field.value = String(Math.max(0, row));
  }

  get chosen() { return /** @type {import("/dashboard/physics/waves/waves.js").Slip[]} */ (this.slips)[Number(this.patch.field.value)]; }

  get quantityName() { return QUANTITIES[Number(this.quantity.field.value)]; }

  get axes() { const name = COMPONENTS[Number(this.axis.field.value)]; return name === "all" ? [0, 1, 2] : [AXES.indexOf(name)]; }

  /** Of the map's colours. */
  get coloured() { return this.axes.length > 1 ? 2 : this.axes[0]; }

  /** @param {number} source that was clicked: the same component of slip there */
  slip(source) {
    const { fault, patch } = this.waves.sources[source], { sources } = this.waves;
    const row = (this.slips ?? []).findIndex(({ rows }) => rows.length === 1 && sources[rows[0]].fault === fault && String(sources[rows[0]].patch) === String(patch));
    if (row < 0) return;
    this.patch.field.value = String(row);
    this.choose();
  }

  /** Read what is to be shown. */
  async choose() {
    const number = this.reading += 1, slip = this.chosen, { waves } = this;
    this.ground = this.field = null;
    this.#busy(true);
    try {
      if (waves.stations.length) {
        const [series, offsets] = await Promise.all([waves.series(slip, this.quantityName), waves.offsets(slip)]);
        // another may have been chosen meanwhile
        if (number !== this.reading) return;
        Object.assign(this, { series, offsets });
      }
      put(this.parts.note);
      this.draw();
      const cost = waves.grid ? waves.cost(slip) : "none";
      this.#ask(cost, number);
      if (cost === "read") await this.readGround(number);
    } catch (error) {
      if (number !== this.reading) return;
      this.series = null;
      put(this.parts.note, h("div.note.bad", { role: "alert" }, /** @type {Error} */ (error).message));
    }
    if (number === this.reading) this.#busy(false);
  }

  /** @param {boolean} reading whether the map is not yet what it will be */
  #busy(reading) { this.map.map.element.setAttribute("aria-busy", String(reading)); }

  /** Say what of the ground there is. @param {string} cost @param {number} number of the choice */
  #ask(cost, number) {
    const size = `${plain(this.waves.bytes(this.chosen) / 1e6)} MB`;
    put(this.parts.heading, {
      none: h("p.sub", {}, "The store has series of its stations alone. ", h("code", {}, "waves: {surface: {spacing: 1}}"), " in the spec records the whole ground too, at points 1 km apart."),
      ask: h("p", {}, h("button", { type: "button", onclick: () => this.readGround(number) }, `Colour the ground too: read ${size}`)),
      refuse: h("p.sub", {}, `The motion of the whole ground is ${size}, too much for a browser: open it from Python, as the campaign's page says.`),
    }[cost] ?? null);
  }

  /** @param {number} number of the choice */
  async readGround(number) {
    try {
      const ground = await this.waves.ground(this.chosen, (share) => {
        if (number === this.reading && !this.gone) put(this.parts.heading, h("p.sub", {}, `Reading the ground: ${Math.round(100 * share)} %`));
        return number === this.reading && !this.gone;
      });
      if (!ground || number !== this.reading) return;
      this.ground = ground;
      put(this.parts.heading);
      this.draw();
    } catch (error) {
      if (number === this.reading) put(this.parts.heading, h("div.note.bad", { role: "alert" }, /** @type {Error} */ (error).message));
    }
  }

  draw() {
    const { waves, series } = this, unit = UNITS[this.quantityName];
    // three panels take the whole width
    this.columns.classList.toggle("one", this.axes.length > 1);
    if (series && waves.stations.length) {
      const stations = waves.stations.map(({ name, x, y }) => ({ name, distance: Math.hypot(x - this.chosen.x, y - this.chosen.y) / 1e3 }));
      this.section.show({
        series, stations, times: waves.times, axes: this.axes, own: this.scaling.field.value === "1", gain: positive(this.gain.field.value), even: this.spacing.field.value === "1",
        span: this.span, guides: this.guides(), unit,
      });
      put(this.parts.above, h("p.sub", {}, `Largest: ${plain(this.section.peak ?? 0)} ${unit}. ${this.guides().length ? "P and S: first arrivals from the centre of the unit source through the layers. " : ""}`
        + "A click chooses a station and a time, as the arrow keys do."));
    }
    const axis = this.coloured;
    this.field = this.ground ? waves.component(this.ground, axis, this.quantityName) : null;
    const most = Math.max(this.field ? largest(this.field) : 0, ...waves.stations.map((_, i) => largest(this.line(i, axis))));
    this.map.most = (most || 1) / positive(this.contrast.field.value);
    this.map.rows = this.chosen.rows;
    const end = plain(this.map.most);
    put(this.parts.ends, h("span", {}, `−${end}`), h("span", {}, `${this.quantityName}, ${AXES[axis]}, ${unit}`), h("span", {}, end));
    this.#detail();
    this.at(this.time < 0 ? this.#strongest() : this.time);
  }

  /** The sample of the largest motion at a station, or of the ground. */
  #strongest() {
    const { waves, field } = this, count = waves.times.length, axis = this.coloured;
    const lines = this.series ? waves.stations.map((_, i) => this.line(i, axis)) : field ? [field] : [];
    let most = 0, found = 0;
    for (const line of lines) {
      line.forEach((v, i) => { if (Math.abs(v) > most) [most, found] = [Math.abs(v), i % count]; });
    }
    return found;
  }

  /** s, from and to */
  get span() {
    const { times } = this.waves, end = times[times.length - 1], from = Number(this.from.field.value), to = Number(this.to.field.value);
    return /** @type {[number, number]} */ (from >= 0 && to > from && to <= end ? [from, to] : [0, end]);
  }

  /** Arrivals by distance, of one unit source. */
  guides() {
    const { depth, rows } = this.chosen;
    if (!this.guided.checked || rows.length > 1) return [];
    return Object.entries(this.layers).flatMap(([name, layers]) => (layers ? [{ name, at: (/** @type {number} */ km) => arrival(layers, depth / 1e3, km) }] : []));
  }

  /** @param {number} station @param {number} axis @returns {Float32Array | Float64Array} */
  line(station, axis) {
    const count = this.waves.times.length;
    return this.series?.subarray((3 * station + axis) * count, (3 * station + axis + 1) * count) ?? new Float32Array(count);
  }

  /** @param {number} station @param {number} [sample] */
  pick(station, sample = this.time) {
    this.station = station;
    this.pause();
    this.#detail();
    this.at(sample);
  }

  /** The series and the static offset of the station. */
  #detail() {
    const { station, waves, offsets } = this;
    this.named.field.value = String(station + 1);
    this.map.station = station;
    if (station < 0 || !this.series) { put(this.parts.detail, h("p.sub", {}, "Choose one here, in the record section or on the map.")); return; }
    const { name, x, y } = waves.stations[station], distance = Math.hypot(x - this.chosen.x, y - this.chosen.y) / 1e3;
    const lines = [0, 1, 2].map((axis) => this.line(station, axis)), unit = UNITS[this.quantityName];
    const rest = Array.from(offsets.slice(3 * station, 3 * station + 3)), cell = (/** @type {number} */ v) => h("td", { "data-value": v }, v.toPrecision(4));
    put(this.parts.detail,
      h("p.sub", {}, `${name}: ${plain(x / 1e3)} km east, ${plain(y / 1e3)} km north, ${plain(distance)} km from the slip. Per m of slip:`),
      stationSeries(`${this.quantityName} at ${name}`, lines, waves.times, this.span, this.guides().map((guide) => ({ name: guide.name, time: guide.at(distance) })), unit),
      h("table", {}, h("thead", {}, h("tr", {}, ["", ...AXES].map((word) => (word ? h("th", { scope: "col" }, word) : h("td", {}))))),
        h("tbody", {},
          h("tr.peak", {}, h("th", { scope: "row" }, `largest, ${unit.split(" ")[0]}`), lines.map((line) => cell(largest(line)))),
          h("tr.offset", {}, h("th", { scope: "row" }, "static offset, m"), rest.every(Number.isFinite) ? rest.map(cell)
            : h("td", { colspan: 3 }, `none: the sides are ${waves.attrs.absorbing}, which hold no static load`)))));
  }

  /** Show another time. @param {number} sample */
  at(sample) {
    const { waves, field } = this, count = waves.times.length;
    this.time = Math.max(0, Math.min(count - 1, sample));
    const now = waves.times[this.time], axis = this.coloured;
    this.slider.value = String(this.time);
    this.when.value = `${Number(now.toPrecision(5))} s`;
    this.slider.setAttribute("aria-valuetext", this.when.value);
    const values = this.series ? waves.stations.map((_, i) => this.line(i, axis)[this.time]) : [];
    this.map.show(values, field ? Float32Array.from({ length: field.length / count }, (_, point) => field[point * count + this.time]) : null);
    if (this.series && waves.stations.length) this.section.mark(this.station, now);
    const chart = this.parts.detail.querySelector(".station");
    if (chart) markStation(chart, now);
    if (!this.frame) this.remember();
  }

  run() {
    const { times } = this.waves, last = times.length - 1, from = this.time === last ? 0 : this.time;
    put(this.play, "Pause");
    const begun = performance.now();
    const go = () => {
      const sample = Math.floor(from + ((performance.now() - begun) / 1e3 / PLAYED_S) * last);
      this.frame = requestAnimationFrame(go);
      if (sample >= last) this.pause();
      if (sample !== this.time) this.at(sample);
    };
    this.frame = requestAnimationFrame(go);
  }

  pause() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    put(this.play, "Play");
  }

  /** The address is a link to exactly this view. */
  remember() {
    if (this.gone) return;
    const { rows } = this.chosen, { map } = this.map, { times } = this.waves, [from, to] = this.span;
    const query = new URLSearchParams({
      source: rows.length > 1 ? "-1" : String(rows[0]), slip: this.components[Number(this.component.field.value)], motion: this.quantityName,
      component: COMPONENTS[Number(this.axis.field.value)], time: String(Number(times[this.time].toPrecision(6))), own: this.scaling.field.value, even: this.spacing.field.value,
      gain: this.gain.field.value, contrast: this.contrast.field.value, from: String(from), to: String(to), guides: this.guided.checked ? "1" : "0",
    });
    if (this.station >= 0) query.set("station", this.waves.stations[this.station].name);
    if (map.width) query.set("at", [...map.centre, map.km * Math.min(map.width, map.height)].map((v) => Number(v.toPrecision(8))).join(","));
    history.replaceState(null, "", `#/campaigns/${this.campaign.id}/waves?${query}`);
  }

  /** @param {string} words */
  say(words) { put(this.status, words); }

  async copy() { this.say(await copyAddress()); }

  /** Each drawing with the name of its file. */
  figures() {
    const { campaign: { name }, map, parts } = this, title = `Waves of ${name}: ${this.chosen.label}, ${this.quantityName}`;
    const chart = parts.detail.querySelector(".station"), found = [];
    if (this.series) found.push({ name: `${name}-section`, figure: standalone(this.section.drawing, title) });
    if (chart) found.push({ name: `${name}-${this.waves.stations[this.station].name}`, figure: standalone(chart, title) });
    const figure = standalone(map.map.svg, title), words = Array.from(parts.ends.children, ({ textContent }) => textContent ?? "");
    withField(figure, map.canvas, Array.from(table("two"), css), words, [name, this.chosen.label, `${this.when.value} after slip begins`].join(" · "));
    return [...found, { name: `${name}-map`, figure }];
  }

  leave() {
    this.gone = true;
    this.pause();
    this.section.resized.disconnect();
    this.map.map.resized.disconnect();
  }
}

/** Its own styles, loaded once. */
function styled() {
  const href = "/dashboard/physics/waves/waves.css";
  if (document.querySelector(`link[href="${href}"]`)) return null;
  return new Promise((done) => { document.head.append(h("link", { rel: "stylesheet", href, onload: done, onerror: done })); });
}

/** @param {string} value @returns {number} 1 where it is none */
const positive = (value) => (Number(value) > 0 ? Number(value) : 1);

/** @param {string} name @param {number} first @param {() => void} changed @param {Record<string, any>} limits */
function field(name, first, changed, limits) {
  const input = h("input", { type: "number", value: first, onchange: changed, ...limits });
  return { field: input, label: h("label", {}, name, input) };
}
