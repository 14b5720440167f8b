// @ts-check
/** What an inversion found: slip and data on a map. */

import { Problem, get, mayChange, send } from "/dashboard/api.js";
import { copyAddress, h, put, row } from "/dashboard/dom.js";
import { known, mark } from "/dashboard/elements/key.js";
import { around } from "/dashboard/elements/km-map.js";
import { select } from "/dashboard/elements/select.js";
import { series } from "/dashboard/elements/series.js";
import { fixed } from "/dashboard/format.js";
import { step } from "/dashboard/slip/contours.js";
import { FaultView } from "/dashboard/slip/fault-view.js";
import { savePdf, saveSvg } from "/dashboard/figure.js";
import { figures } from "/dashboard/slip/figures.js";
import { caption, colourBar } from "/dashboard/slip/legend.js";
import { alike, labels } from "/dashboard/slip/requests.js";
import { SlipResult } from "/dashboard/slip/result.js";
import { scores } from "/dashboard/slip/scores.js";
import { LONGEST, SlipMap, longest } from "/dashboard/slip/slip-map.js";

const SHADES = /** @type {Record<string, {words: string, needs: string, unit: string}>} */ ({
  slip: { words: "slip", needs: "fault_slip", unit: " m" },
  interval: { words: "width of the 95 % interval of slip", needs: "fault_slip_interval", unit: " m" },
  exceeds: { words: "probability of more than half of the largest slip", needs: "fault_slip_exceeds", unit: "" },
});
const ARROWS = { horizontal: "horizontal", up: "vertical", none: "none" };
const PIXELS = ["observed", "predicted", "residual", "all"];
// between questions whether an inversion has ended, ms
const WAIT = 1000;
// of the faults in three dimensions, degrees: from the south-west, from above
const TURN = 30, TILT = 35;
const SIGHTS = ["observed", "predicted", "residual", "all three beside each other"];

/** @param {HTMLElement} main @param {string} id */
export async function slipView(main, id) {
  const asked = new URLSearchParams(location.hash.split("?")[1] ?? "");
  const inversion = await get(`/v1/inversions/${id}`);
  if (inversion.state !== "accepted") throw new Problem(0, `Inversion ${inversion.name} is ${inversion.state}; it has no slip to show.`);
  const { items } = await get(`/v1/inversions?limit=200&campaign=${inversion.campaign}`);
  const others = items.filter((/** @type {any} */ other) => other.state === "accepted" && other.id !== id);
  document.title = `Slip of ${inversion.name} · afterslip`;
  put(main, h("div.empty", {}, "Reading the result…"));
  const campaign = await get(`/v1/campaigns/${inversion.campaign}`);
  const view = new SlipView(main, asked, await SlipResult.open(inversion), others, campaign);
  await view.beside();
  return () => view.maps.forEach(({ map }) => map.resized.disconnect());
}

export class SlipView {
  /** @param {HTMLElement} main @param {URLSearchParams} asked @param {SlipResult} result @param {any[]} others @param {any} campaign */
  constructor(main, asked, result, others, campaign) {
    this.campaign = campaign;
    this.frame = campaign.spec?.model?.frame;
    this.asked = asked;
    this.result = result;
    this.others = others;
    /** @type {SlipMap[]} */
    this.maps = [];
    const has = (/** @type {string} */ name, /** @type {string[]} */ known, /** @type {string} */ first) => {
      const found = asked.get(name) ?? first;
      return known.includes(found) ? found : first;
    };
    this.shades = Object.keys(SHADES).filter((name) => result.has(SHADES[name].needs));
    const epochs = result.epochs, epoch = Number(asked.get("epoch"));
    /** @type {import("/dashboard/slip/slip-map.js").Look} */
    this.look = {
      shade: has("shade", this.shades, "slip"), most: 1, step: 0, longest: 1, sight: 1,
      arrows: /** @type {any} */ (has("arrows", Object.keys(ARROWS), "horizontal")),
      pixels: /** @type {any} */ (has("pixels", PIXELS, "observed")),
      epoch: asked.has("epoch") && epochs.includes(epoch) ? epoch : epochs.at(-1) ?? 0,
      rake: asked.get("rake") !== "0", resolution: asked.get("resolution") === "1",
      station: asked.get("station") ?? "",
      turn: number(asked.get("turn"), TURN), tilt: number(asked.get("tilt"), TILT),
    };
    this.panels = h("div.panels", {});
    this.legend = h("div", {});
    this.detail = h("div", {});
    this.solids = h("div.panels", {});
    this.tried = h("div", {});
    /** @type {FaultView[]} */
    this.faults = [];
    this.status = h("span.sub", { role: "status" });
    const press = (/** @type {string} */ name, /** @type {() => void} */ act) => h("button", { type: "button", onclick: act }, name);
    this.station = select("Station", ["none", ...result.stations.map(({ name }) => name)],
      (row) => this.choose(row ? result.stations[row - 1].name : ""));
    const inversion = result.inversion;
    put(main,
      h("div.head", {}, h("div.grow", {}, h("h1", {}, `Slip of ${inversion.name}`),
        h("div.sub", {}, "of ", h("a", { href: `#/campaigns/${campaign.id}` }, campaign.name), " · ",
          h("a", { href: inversion.links.report, target: "_blank", rel: "noopener" }, "Report"))),
      h("div.buttons", {}, press("Copy a link to this view", () => this.copy()), press("Save as SVG", () => this.download()), press("Save as PDF", () => this.print()))),
      h("section.card", { "aria-label": "What is shown" }, h("div.choices.wide", {}, this.#choices())),
      h("div.halves", {}, h("div", {}, h("section.card", { "aria-label": "Maps" }, this.panels, this.legend,
        h("div.buttons", {}, press("Closer", () => this.maps[0].map.zoom(0.6)), press("Farther", () => this.maps[0].map.zoom(1 / 0.6)),
          press("Around the fault", () => this.fit()), press("All stations", () => this.fit(true)), this.status))),
      h("div", {}, h("section.card", {}, h("h2", {}, "Station"), h("div.station-choice", {}, this.station.label),
        h("p.sub", {}, "Or point at it on a map."), this.detail),
      h("section.card", {}, h("h2", {}, "In three dimensions"), this.solids, h("p.sub", {}, "Drag it, or turn it by the arrow keys. No height is exaggerated.")),
      h("section.card", {}, h("h2", {}, "What was tried"), this.tried))));
  }

  /** @returns {Element[]} */
  #choices() {
    const { look, result, others } = this, { epochs } = result;
    const beside = this.asked.get("with");
    this.with = select("Beside it", ["nothing", ...labels(others, result.inversion.name)], () => this.beside().catch((error) => this.say(error.message)),
      1 + others.findIndex(({ id }) => id === beside));
    const change = (/** @type {any} */ values) => { Object.assign(look, values); this.redraw(); };
    const names = Object.keys(ARROWS);
    const lines = sees(result);
    return [
      select("Colours", this.shades.map((name) => SHADES[name].words), (row) => change({ shade: this.shades[row] }), this.shades.indexOf(look.shade)).label,
      select("Displacements", Object.values(ARROWS), (row) => change({ arrows: names[row] }), names.indexOf(look.arrows)).label,
      ...(epochs.length > 1 ? [select("Time of the data", epochs.map((t) => `${Number(t.toPrecision(4))} yr`), (row) => change({ epoch: epochs[row] }), epochs.indexOf(look.epoch)).label] : []),
      ...(lines ? [select("Lines of sight", SIGHTS, (row) => { const before = look.pixels; change({ pixels: PIXELS[row] }); if ([before, look.pixels].includes("all")) this.beside(); }, PIXELS.indexOf(look.pixels)).label] : []),
      this.with.label,
      check("Direction of slip of the side above", look.rake, (on) => change({ rake: on })),
      check("Resolution at the unit sources", look.resolution, (on) => change({ resolution: on })),
    ];
  }

  /** Show the inversion, and the one beside it. */
  async beside() {
    const row = Number(/** @type {any} */ (this.with).field.value);
    const second = row ? await SlipResult.open(this.others[row - 1]) : null;
    const where = this.maps[0]?.map;
    for (const { map } of this.maps) map.resized.disconnect();
    const results = /** @type {SlipResult[]} */ ([this.result, second].filter((result) => result !== null));
    for (const result of results) result.frame = this.frame;
    const kinds = /** @type {any[]} */ (this.look.pixels === "all" ? PIXELS.slice(0, 3) : [undefined]);
    this.maps = results.flatMap((result) => (sees(result) ? kinds : [undefined]).map((kind) => ({ result, kind })))
      .map(({ result, kind }, i) => new SlipMap(result, this.look, (name) => this.choose(name), () => this.follow(i), kind));
    this.panels.classList.toggle("two", this.maps.length > 1 && kinds.length === 1);
    this.panels.classList.toggle("three", kinds.length > 1);
    put(this.panels, this.maps.map(({ map, result, pixels }) => h("figure.panel", {}, map.element,
      h("figcaption", {}, ...(pixels ? [h("b", {}, pixels), ` line of sight, ${result.inversion.name}`] : caption(result.inversion))))));
    this.faults = results.map((result) => new FaultView(result, this.look, () => this.turned()));
    this.solids.classList.toggle("two", results.length > 1);
    put(this.solids, this.faults.map(({ element, result }) => h("figure.panel", {}, element, h("figcaption", {}, result.inversion.name))));
    put(this.tried, results.flatMap((result) => [results.length > 1 ? h("h3", {}, result.inversion.name) : null, scores(result,
      result === this.result && mayChange(this.campaign) ? (...weights) => this.at(...weights).catch((error) => this.say(error.message)) : undefined)]));
    const at = (this.asked.get("at") ?? "").split(",").map(Number);
    if (where) this.place(where.centre, where.span, where.box);
    else if (at.length === 3 && at.every(Number.isFinite) && at[2] > 0) this.place(at.slice(0, 2), at[2]);
    else this.fit();
    this.redraw();
  }

  /** Show the slip of other weights beside: inverted anew, unless that was done. @param {number} smoothness @param {number} sparsity */
  async at(smoothness, sparsity) {
    const { id, campaign, name, request } = this.result.inversion;
    const asked = { ...request, smoothness, sparsity, name: `${name.slice(0, 40)}-${smoothness.toExponential(2)}-${sparsity.toExponential(1)}`.replace(/[^\w-]/g, "_") };
    let row = this.others.findIndex((other) => alike(other.request, asked));
    if (row < 0) {
      this.say(`Inverting with smoothness ${Number(smoothness.toPrecision(3))}…`);
      let made = await send("/v1/inversions", { ...asked, campaign });
      while (!["accepted", "failed", "cancelled"].includes(made.state) && location.hash.includes(id)) {
        await new Promise((resolve) => { setTimeout(resolve, WAIT); });
        made = await get(made.links.self);
      }
      // the page shows something else by now
      if (!location.hash.includes(id)) return;
      if (made.state !== "accepted") throw new Problem(0, made.error?.message ?? `The inversion was ${made.state}.`);
      row = this.others.push(made) - 1;
      const { field } = /** @type {any} */ (this.with);
      field.append(h("option", { value: row + 1 }));
      // a name may be that of another one by now
      labels(this.others, name).forEach((label, i) => { field.options[i + 1].textContent = label; });
    }
    /** @type {any} */ (this.with).field.value = String(row + 1);
    await this.beside();
    this.say(`Beside it: smoothness ${Number(smoothness.toPrecision(3))}, sparsity ${Number(sparsity.toPrecision(3))}.`);
  }

  /** @param {boolean} [all] */
  fit(all = false) {
    const fault = this.result.triangles.flat().map((node) => this.result.nodes[node]);
    const box = around([...fault, ...(all ? this.result.stations.map(({ x, y }) => [x, y]) : [])], 5);
    for (const { map } of this.maps) map.fit(all ? box : grown(box, 0.5));
    this.remember();
  }

  /** @param {number[]} centre km @param {number} span km @param {any} [box] */
  place(centre, span, box) {
    for (const { map } of this.maps) { Object.assign(map, { centre, span, box }); map.redraw(); }
  }

  /** The other map shows the same part. @param {number} row */
  follow(row) {
    const { centre, span, box } = this.maps[row].map;
    this.maps.forEach(({ map }, i) => { if (i !== row) { Object.assign(map, { centre, span, box }); map.redraw(); } });
    this.remember();
  }

  /** All faults turn together: they are compared. */
  turned() {
    for (const fault of this.faults) fault.redraw();
    this.remember();
  }

  redraw() {
    const { look } = this, results = this.maps.map(({ result }) => result);
    const most = Math.max(...results.filter((r) => r.has(SHADES[look.shade].needs)).flatMap((r) => r.field(look.shade)), 0);
    // a probability has its own scale
    look.most = look.shade === "exceeds" ? 1 : most;
    look.step = step(look.most);
    const stations = results.flatMap((r) => r.stations);
    look.longest = longest(stations, look.epoch, look.arrows);
    look.sight = stations.flatMap(({ data }) => data.filter((d) => d.epoch === look.epoch && d.axis === 3))
      .reduce((least, d) => Math.max(least, Math.abs(d.observed), Math.abs(d.predicted)), 0);
    for (const { map } of this.maps) map.redraw();
    for (const fault of this.faults) fault.redraw();
    this.#scale();
    this.choose(look.station);
  }

  #scale() {
    const { look } = this, { words, unit } = SHADES[look.shade];
    put(this.legend, colourBar(look.shade === "slip" ? "slip" : "one"),
      h("div.ends", {}, h("span", {}, "0"), h("span", {}, words), h("span", {}, `${Number(look.most.toPrecision(3))}${unit}`),
        look.step ? h("span.all", {}, `lines every ${Number(look.step.toPrecision(3))}${unit}`) : null),
      ...(look.sight ? [colourBar("two"),
      h("div.ends", {}, h("span", {}, `−${Number(look.sight.toPrecision(3))} m`), h("span", {}, "towards the satellite, along the line of sight"), h("span", {}, `${Number(look.sight.toPrecision(3))} m`))] : []),
      h("div.key", {}, look.arrows === "none" ? null : [
        mark("observed", `observed, ${ARROWS[look.arrows]}`), mark("predicted", "predicted"),
        look.longest ? known("observed", LONGEST, look.longest, "m") : null],
      look.rake ? mark("rake", "motion of the side above") : null));
  }

  /** @param {string} name of a station, or nothing */
  choose(name) {
    this.look.station = name;
    const row = this.result.stations.findIndex((station) => station.name === name);
    this.station.field.value = String(row + 1);
    for (const { map } of this.maps) map.redraw();
    put(this.detail, ...(row < 0 ? [] : this.faults.flatMap(({ result }) => this.#station(result, name))));
    this.remember();
  }

  /** @param {SlipResult} result @param {string} name */
  #station(result, name) {
    const index = result.stations.findIndex((station) => station.name === name);
    if (index < 0) return [h("p.sub", {}, `${result.inversion.name} has no data there.`)];
    const { data } = result.stations[index], { times, values, unit } = result.series(index);
    const mm = (/** @type {number} */ v) => h("td", { "data-value": v }, fixed(1e3 * v, 1));
    const names = ["yr", "component", "observed, mm", "predicted, mm", "residual, mm", "sigma, mm", "residual / sigma"];
    return [h("h3", {}, result.inversion.name), h("div.columns", {},
      h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Table" }, h("table.stacked", {},
        h("thead", {}, h("tr", {}, names.map((word) => h("th", { scope: "col" }, word)))),
        h("tbody", {}, data.map((d) => row(names, [h("td", {}, String(Number(d.epoch.toPrecision(4)))), h("td", {}, d.component),
          mm(d.observed), mm(d.predicted), mm(d.observed - d.predicted), mm(d.sigma),
          h(Math.abs(d.observed - d.predicted) > 3 * d.sigma ? "td.off" : "td", {}, fixed((d.observed - d.predicted) / d.sigma, 1))]))))),
      h("figure.panel", {}, series(times, values, this.look.epoch, "m", unit), h("figcaption", {}, "Predicted displacement, m: ",
        ...["east", "north", "up"].map((axis) => h(`span.${axis}`, {}, `${axis} `)))))];
  }

  /** The address is a link to exactly this view. */
  remember() {
    const { look } = this, first = this.maps[0]?.map;
    if (!first) return;
    const row = Number(/** @type {any} */ (this.with).field.value);
    const query = new URLSearchParams({ shade: look.shade, arrows: look.arrows, epoch: String(look.epoch), rake: look.rake ? "1" : "0", resolution: look.resolution ? "1" : "0" });
    if (look.turn !== TURN || look.tilt !== TILT) { query.set("turn", String(look.turn)); query.set("tilt", String(look.tilt)); }
    if (sees(this.result)) query.set("pixels", look.pixels);
    if (row) query.set("with", this.others[row - 1].id);
    if (look.station) query.set("station", look.station);
    if (first.width) query.set("at", [...first.centre, first.km * Math.min(first.width, first.height)].map((v) => Number(v.toPrecision(12))).join(","));
    history.replaceState(null, "", `#/inversions/${this.result.inversion.id}?${query}`);
  }

  /** @param {string} words */
  say(words) { put(this.status, words); }

  async copy() { this.say(await copyAddress()); }

  download() { for (const { name, figure } of figures(this)) saveSvg(figure, name); }

  print() {
    return savePdf(figures(this).map(({ figure }) => figure), this.result.inversion.name).catch((error) => this.say(error.message));
  }
}

/** @param {import("/dashboard/elements/km-map.js").Box} box @param {number} part @returns {import("/dashboard/elements/km-map.js").Box} */
function grown([west, south, east, north], part) {
  const room = part * Math.max(east - west, north - south);
  return [west - room, south - room, east + room, north + room];
}

/** @param {string | null} text @param {number} otherwise */
const number = (text, otherwise) => (text !== null && Number.isFinite(Number(text)) ? Number(text) : otherwise);

/** Whether there are data along lines of sight. @param {SlipResult} result */
const sees = (result) => result.stations.some(({ data }) => data.some(({ axis }) => axis === 3));

/** @param {string} words @param {boolean} on @param {(on: boolean) => void} changed */
function check(words, on, changed) {
  const field = h("input", { type: "checkbox", checked: on, onchange: () => changed(field.checked) });
  return h("label.check", {}, field, words);
}
