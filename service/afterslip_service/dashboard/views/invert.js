// @ts-check
/** Ask for an inversion of a campaign: its data, new ones, and each option with its meaning. */

import { all, get, key, send, upload } from "/dashboard/api.js";
import { h, put } from "/dashboard/dom.js";
import { count, sentence } from "/dashboard/format.js";
import { plainly } from "/dashboard/spec/document.js";
import { Schema } from "/dashboard/spec/schema.js";
import { parseDocument } from "/dashboard/vendor/editor.js";

// what has a field of its own
const OWN = ["name", "datasets", "campaign"];

/** Options by what they are about, in the order in which one decides on them. @type {[string, string[]][]} */
const GROUPS = [
  ["Errors of the Green's functions", ["model_error"]],
  ["Prior, and how its weight is chosen", ["prior", "smoothness", "choice", "sparsity", "folds", "repeats", "blocks", "seed"]],
  ["Signs, bounds and moment", ["sign", "constraints", "moment"]],
  ["Slip through time", ["increments", "windows"]],
];

/** @param {HTMLElement} main @param {string} id */
export async function invertView(main, id) {
  // a form without its data sets would be refused
  const [campaign, openapi, uploaded] = await Promise.all([get(`/v1/campaigns/${id}`), get("/openapi.json"), datasets()]);
  new InvertView(main, campaign, new Schema(openapi.components.schemas)).list(uploaded, campaign.spec?.datasets?.map((/** @type {any} */ one) => one.name));
  return () => {};
}

/** @returns {Promise<any[]>} those that were uploaded */
const datasets = () => all("/v1/datasets", 500);

class InvertView {
  /** @param {HTMLElement} main @param {any} campaign @param {Schema} schema */
  constructor(main, campaign, schema) {
    this.campaign = campaign;
    this.own = campaign.spec?.datasets?.map((/** @type {any} */ one) => one.name) ?? [];
    this.key = key();
    document.title = `Invert ${campaign.name} · afterslip`;
    /** @type {{words: string, field: HTMLInputElement}[]} */
    this.boxes = [];
    this.datasets = h("div", {});
    this.problems = h("div", {});
    this.status = h("p.sub", { role: "status" });
    this.name = h("input", { required: true, maxlength: 60, oninput: () => this.changed() });
    const { properties } = schema.schemas.InversionRequest;
    this.options = Object.entries(properties).filter(([name]) => !OWN.includes(name))
      .map(([name, property]) => option(name, property, schema, () => this.changed()));
    // what the spec says of signs and of all else holds for new data too
    const [first] = campaign.spec?.inversions ?? [];
    const taken = first ? this.options.filter(({ name, begin }) => name in first && begin(first[name])).map(({ name }) => name) : [];
    put(main,
      h("div.head", {}, h("div.grow", {}, h("h1", {}, "New inversion"),
        h("div.sub", {}, "of ", h("a", { href: `#/campaigns/${campaign.id}` }, campaign.name),
          campaign.state === "complete" ? "" : ", begun when its Green's functions are accepted"))),
      this.problems,
      h("div.columns", {},
        h("div", {}, h("form.card", { "aria-label": "Inversion", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this.attempt(() => this.send()); } },
          h("label.field", {}, "Name", this.name),
          h("fieldset", {}, h("legend", {}, "Data sets"), this.datasets),
          h("p.sub", {}, "An option that is left empty has the default that stands in it. Lists and mappings are written as in a spec."),
          taken.length ? h("p.sub", {}, `Taken from ${first.name} of the spec: ${taken.join(", ")}.`) : null,
          grouped(this.options).map(([title, rows]) => h("fieldset.group", {}, h("legend", {}, title), h("div.options", {}, rows))),
          h("div.buttons", {}, h("button.primary", {}, "Invert"), this.status))),
        new Upload(schema, (name) => this.refresh(name)).element));
  }

  /** A changed request is another one; the same, sent twice, is one inversion. */
  changed() { this.key = key(); }

  /** @param {string} added the name of a data set that was just uploaded */
  async refresh(added) { this.list(await datasets(), [...this.chosen(), added]); }

  /** @param {any[]} uploaded @param {string[]} [chosen] names */
  list(uploaded, chosen = []) {
    const own = this.own.map((/** @type {string} */ name) => ({ name, words: "of the campaign" }));
    const later = uploaded.filter(({ name }, i) => !this.own.includes(name) && uploaded.findIndex((one) => one.name === name) === i)
      .map(({ name, n_observations: n, owner }) => ({ name, words: `${count(n)} observations${owner ? ` · ${owner}` : ""}` }));
    this.boxes = [...own, ...later].map(({ name, words }) => ({ words, field: h("input", {
      type: "checkbox", value: name, checked: chosen.includes(name), onchange: () => this.changed() }) }));
    put(this.datasets, this.boxes.length
      ? this.boxes.map(({ field, words }) => h("label.check", {}, field, h("span", {}, field.value, " ", h("span.dim", {}, words))))
      : h("p.sub", {}, "None yet: upload one."));
    this.changed();
  }

  chosen() { return this.boxes.filter(({ field }) => field.checked).map(({ field }) => field.value); }

  async send() {
    const given = this.options.map(({ name, value }) => [name, value()]).filter(([, value]) => value !== undefined);
    await send("/v1/inversions", { campaign: this.campaign.id, name: this.name.value, datasets: this.chosen(), ...Object.fromEntries(given) }, undefined, this.key);
    location.hash = `#/campaigns/${this.campaign.id}`;
  }

  /** @param {() => Promise<any>} act */
  async attempt(act) {
    put(this.status, "Checking…");
    put(this.problems);
    try {
      await act();
    } catch (error) {
      put(this.problems, refusal(error));
    }
    put(this.status);
  }
}

/** A file of data, with what a file does not say. */
class Upload {
  /** @param {Schema} schema @param {(name: string) => Promise<void>} added */
  constructor(schema, added) {
    const meaning = (/** @type {string} */ name) => schema.schemas.DatasetRequest.properties[name]?.description ?? "";
    const number = () => h("input", { type: "number", min: 0, step: "any" });
    this.file = h("input", { type: "file", accept: ".csv,text/csv", required: true, onchange: () => { this.name.value ||= this.file.files[0]?.name.replace(/\.\w+$/, "") ?? ""; } });
    this.name = h("input", { required: true, maxlength: 60 });
    this.epoch = h("input", { placeholder: "0 d" });
    this.sigmas = { horizontal: number(), vertical: number(), los: number() };
    this.said = h("div", {});
    this.added = added;
    this.element = h("form.card", { "aria-label": "New data set", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this.send(); } },
      h("h2", {}, "New data set"),
      field("File", this.file, `${meaning("file")}: station, place, east, north, up; or los with its direction. Columns of standard deviations are read where they are.`),
      field("Name", this.name, ""), field("Epoch", this.epoch, meaning("epoch")),
      h("fieldset.place.three", {}, h("legend", {}, `Standard deviations: ${meaning("sigma")}`),
        Object.entries(this.sigmas).map(([name, input]) => h("label", {}, name === "los" ? "line of sight" : name, input))),
      h("div.buttons", {}, h("button", {}, "Upload")), this.said);
  }

  async send() {
    put(this.said, h("p.sub", {}, "Uploading…"));
    try {
      const file = await upload(this.file.files[0]);
      const sigma = Object.fromEntries(Object.entries(this.sigmas).filter(([, { value }]) => value !== "").map(([name, { value }]) => [name, Number(value)]));
      const made = await send("/v1/datasets", {
        name: this.name.value, file, ...(this.epoch.value ? { epoch: this.epoch.value } : {}), ...(Object.keys(sigma).length ? { sigma } : {}),
      });
      await this.added(made.name);
      put(this.said, h("p.sub", { role: "status" }, `${made.name}: ${count(made.n_observations)} observations.`));
    } catch (error) {
      put(this.said, refusal(error));
    }
  }
}

/** @param {string} name @param {any} input @param {string} meaning */
const field = (name, input, meaning) => h("div.field", {}, h("label", {}, name, input), meaning ? h("p.sub", {}, meaning) : null);

/**
 * An option of the request, from its schema.
 * @param {string} name @param {any} property @param {Schema} schema @param {() => void} changed
 * @returns {{name: string, row: Element, value: () => any, begin: (given: any) => boolean}} value undefined: as by default
 */
function option(name, property, schema, changed) {
  const words = property.enum ?? (property.type === "boolean" ? ["true", "false"] : null);
  const usual = property.default === undefined || property.default === null ? "none" : typeof property.default === "object" ? flow(property.default) : String(property.default);
  const input = words
    ? h("select", { onchange: changed }, h("option", { value: "" }, `${usual} (default)`), words.filter((/** @type {string} */ word) => word !== usual).map((/** @type {string} */ word) => h("option", {}, word)))
    : h("input", { placeholder: usual, oninput: changed, spellcheck: "false" });
  const value = () => {
    if (input.value.trim() === "") return undefined;
    const read = parseDocument(input.value);
    if (read.errors.length) throw new Error(`${name}: ${plainly(read.errors[0].message)}`);
    const given = read.toJS({ maxAliasCount: 0 });
    if (property.type === "integer" && !Number.isInteger(given)) throw new Error(`${name}: ${input.value} is no whole number; write e.g. ${usual}`);
    return given;
  };
  // false where it is the default
  const begin = (/** @type {any} */ given) => {
    const text = given === null || given === undefined ? "none" : flow(given);
    if (text === usual) return false;
    input.value = text;
    return input.value === text;
  };
  return { name, value, begin, row: field(name, input, property.description ?? "") };
}

/** @param {{name: string, row: Element}[]} options @returns {[string, Element[]][]} by group; what no group names comes last */
function grouped(options) {
  const left = new Map(options.map(({ name, row }) => [name, row]));
  const take = (/** @type {string[]} */ names) => names.flatMap((name) => {
    const row = left.get(name);
    left.delete(name);
    return row ? [row] : [];
  });
  const found = GROUPS.map(([title, names]) => /** @type {[string, Element[]]} */ ([title, take(names)]));
  return /** @type {[string, Element[]][]} */ ([...found, ["More", [...left.values()]]]).filter(([, rows]) => rows.length);
}

/** A value as a spec writes it. @param {any} value @returns {string} */
function flow(value) {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (value === null || typeof value !== "object") return String(value);
  const given = Object.entries(value).filter(([, one]) => one !== null);
  return `{${given.map(([name, one]) => `${name}: ${flow(one)}`).join(", ")}}`;
}

/** @param {any} error */
function refusal({ message, errors }) {
  return h("div.note.bad", { role: "alert" }, errors?.length
    ? h("ul", {}, errors.map((/** @type {any} */ one) => h("li", {}, sentence(`${one.path ?? ""} ${one.message}`.trim(), one.hint))))
    : message);
}
