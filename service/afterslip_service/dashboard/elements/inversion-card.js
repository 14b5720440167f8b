// @ts-check
/** An inversion: its numbers, its slip, and where the rest is. */

import { get } from "/dashboard/api.js";
import { h, marked, put } from "/dashboard/dom.js";
import { count, fixed, interval, percent } from "/dashboard/format.js";

const NAMES = {
  slip_map: "slip", data_fit: "data fit", time_series: "time series",
  cv_curve: "cross-validation", resolution: "resolution", misfit: "misfit",
};

/** @param {any} inversion @param {boolean} complete whether its campaign is */
export async function inversionCard(inversion, complete) {
  const card = h("div.inversion", {},
    h("div.head", {}, h("h3", {}, inversion.name), h(`span.badge.${inversion.state}`, {}, inversion.state)));
  if (inversion.error) {
    card.append(h("div.note.bad", {}, h("b", {}, inversion.error.class), inversion.error.message));
  }
  if (inversion.state === "waiting" && !complete) {
    card.append(h("div.sub", {}, "begins when all Green's functions are accepted"));
  }
  if (inversion.state !== "accepted") return card;
  card.append(figures(inversion.summary ?? {}));
  const warnings = inversion.summary?.warnings ?? [];
  if (warnings.length) {
    card.append(h("div.note", {}, h("b", {}, "What to doubt"),
      h("ul", {}, warnings.map((/** @type {string} */ text) => h("li", {}, marked(text))))));
  }
  const { items } = await get(inversion.links.plots);
  card.append(h("div.links", {},
    h("a.button.primary", { href: `#/inversions/${inversion.id}` }, "Explore"),
    h("a", { href: inversion.links.report, target: "_blank", rel: "noopener" }, "Report"),
    h("a", { href: inversion.links.result, download: "" }, "Result (NetCDF)"),
    h("a", { href: `${inversion.links.self}/slip`, download: "" }, "Slip (CSV)"),
    h("a", { href: `${inversion.links.self}/geojson`, download: "" }, "Slip (GeoJSON)"),
    h("a", { href: `${inversion.links.self}/fit`, download: "" }, "Fit (CSV)")), slip(inversion), pictures(items));
  return card;
}

/** @param {any} summary */
function figures(summary) {
  const facts = [
    ["Magnitude Mw", fixed(summary.magnitude) + interval(summary.magnitude_interval, 2)],
    ["Peak slip", fixed(summary.peak_slip, 1, " m")],
    ...(summary.peak_slip_interval ? [[`Mean over ${fixed(summary.peak_slip_length / 1e3, 1)} km about it`,
      fixed(summary.peak_slip_average, 1, " m") + interval(summary.peak_slip_interval, 1)]] : []),
    ["Variance reduction", percent(summary.variance_reduction)],
    ["Variance reduction, unweighted", percent(summary.variance_reduction_unweighted)],
    ["Cross-validation score (1: as good as the errors)", fixed(summary.score, 3)],
    ["Folds", count(summary.folds)],
  ];
  return h("dl.facts", {}, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** The slip, read and drawn once it is in sight. @param {any} inversion */
function slip(inversion) {
  const place = h("div.slip", {});
  const watcher = new IntersectionObserver(async ([{ isIntersecting }]) => {
    if (!isIntersecting) return;
    watcher.disconnect();
    try {
      const { smallMap } = await import("/dashboard/slip/small-map.js");
      put(place, await smallMap(inversion));
    } catch (error) {
      put(place, h("p.sub", {}, /** @type {Error} */ (error).message));
    }
  });
  watcher.observe(place);
  return place;
}

/** Figures as they are printed, white on any screen: links. @param {{name: string, href: string}[]} plots */
function pictures(plots) {
  const order = Object.keys(NAMES);
  const place = (/** @type {string} */ name) => (order.indexOf(name) + order.length + 1) % (order.length + 1);
  const sorted = [...plots].sort((a, b) => place(a.name) - place(b.name));
  return h("p.links", {}, h("span.dim", {}, "Figures for print:"), sorted.map(({ name, href }) =>
    h("a", { href, target: "_blank", rel: "noopener" }, NAMES[/** @type {keyof typeof NAMES} */ (name)] ?? name.replaceAll("_", " "))));
}
