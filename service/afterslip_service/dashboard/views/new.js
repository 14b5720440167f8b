// @ts-check
/** A new campaign: its spec, what it would need, and a button that submits it. */

import { Problem, get, key, send, upload } from "/dashboard/api.js";
import { h, put } from "/dashboard/dom.js";
import { planFacts } from "/dashboard/elements/plan-facts.js";
import { PlanMap } from "/dashboard/elements/plan-map.js";
import { specEditor } from "/dashboard/elements/spec-editor.js";
import { again } from "/dashboard/spec/again.js";
import { SpecDocument, dotted, renamed } from "/dashboard/spec/document.js";
import { store, stored } from "/dashboard/spec/draft.js";
import { Schema, choices, placeOf } from "/dashboard/spec/schema.js";

const QUIET = 700;
const EXAMPLES = "/dashboard/examples";

/** What was written when the view was left: a look elsewhere costs no work, and the next campaign is often the last one changed. @type {(import("/dashboard/spec/draft.js").Draft & {files: Map<string, any> | null, own: boolean}) | null} files null: to be read again */
let draft = null;

/** @param {HTMLElement} main @param {string} [from] the campaign that it begins as */
export async function newView(main, from) {
  document.title = "New campaign · afterslip";
  const [schema, examples, model] = await Promise.all([get("/openapi.json"), get(`${EXAMPLES}/index.json`), from ? get(`/v1/campaigns/${from}`) : null]);
  const view = new NewView(main, new Schema(schema.components.schemas), examples);
  const before = draft ? null : stored();
  if (before) draft = { ...before, files: null, own: true };
  const fresh = model && draft?.from !== from && (!draft?.own || window.confirm(`Replace what is written on the page by the spec of ${model.name}?`));
  if (fresh) await view.follow(model);
  else if (draft) await view.resume(draft);
  else await view.example(0);
  return () => view.leave();
}

class NewView {
  /** @param {HTMLElement} main @param {Schema} schema @param {any[]} examples */
  constructor(main, schema, examples) {
    this.schema = schema;
    this.examples = examples;
    /** Files beside the spec, by the name that it gives them. @type {Map<string, {blob: Blob, ref?: Promise<string>}>} */
    this.files = new Map();
    /** the campaign that the spec began as @type {string | null} */
    this.from = null;
    /** whose files these are @type {number | null} */
    this.shipped = null;
    /** what nobody has written here yet */
    this.opened = "";
    this.key = key();
    this.timer = 0;
    this.map = new PlanMap();
    this.abort = new AbortController();
    const host = h("div.editor", {});
    this.editor = specEditor(host, () => { this.begun("own"); this.changed(); this.remember(); }, (...at) => this.complete(...at));
    this.own = h("option", { value: "own", hidden: true }, "your own");
    this.start = h("select", { onchange: () => this.restart() },
      examples.map(({ title }, i) => h("option", { value: i }, title)), this.own);
    this.folder = this.picker("Folder with a spec and its files", { webkitdirectory: true, multiple: true });
    this.more = this.picker("Single files: a spec, data", { multiple: true });
    this.submit = h("button.primary", { type: "button", disabled: true, onclick: () => this.send() }, "Submit");
    this.trial = h("button", { type: "button", disabled: true, onclick: () => this.check(true) }, "Make a coarse mesh");
    this.status = h("p.sub", { role: "status" });
    this.list = h("div.sub", {});
    this.found = h("div", {});
    this.facts = h("div", {});
    this.stale = h("p.sub", {});
    this.where = h("section.card", { "aria-label": "Map", hidden: true }, h("h2", {}, "Where everything lies"), this.stale, this.map.element);
    put(main,
      h("div.head", {}, h("div.grow", {}, h("h1", {}, "New campaign"),
        h("div.sub", {}, "Nothing is computed before you submit it.")), h("div.buttons", {}, this.trial, this.submit)),
      h("div.columns.even", {},
        h("div", {}, h("section.card", { "aria-label": "Spec" },
          h("div.choices.three.first", {}, h("label", {}, "Start from", this.start), this.folder, this.more),
          this.list, host, h("p.sub", {}, "Ctrl-Space completes. Escape, then Tab leaves the editor."), this.found)),
        h("div", {}, h("section.card", {}, h("h2", {}, "What it would need"), this.status, this.facts), this.where)));
  }

  /** @param {string} name @param {any} options */
  picker(name, options) {
    const field = h("input", { type: "file", ...options, onchange: () => this.take([...field.files]).catch((error) => this.say(error)) });
    return h("label", {}, name, field);
  }

  /** Begin with an example, in place of what is written. */
  restart() {
    if (!this.own.hidden && !window.confirm("Replace what is written here by the example?")) this.start.value = "own";
    else this.example(Number(this.start.value)).catch((error) => this.say(error));
  }

  /** @param {number} row */
  async example(row) {
    const [text] = await Promise.all([this.read(row, this.examples[row].spec), this.ship(row)]);
    this.open(await text.text(), String(row));
  }

  /** @param {number} row of the example @param {string} name */
  async read(row, name) {
    const answer = await fetch(`${EXAMPLES}/${this.examples[row].folder}/${name}`);
    if (!answer.ok) throw new Problem(answer.status, `The example's ${name} cannot be read: ${answer.statusText}`);
    return answer.blob();
  }

  /** Have the files of an example, and no others. @param {number | null} row */
  async ship(row) {
    const names = /** @type {string[]} */ (row === null ? [] : this.examples[row]?.files ?? []);
    const blobs = await Promise.all(names.map((name) => this.read(Number(row), name)));
    this.files = new Map(names.map((name, i) => [name, { blob: blobs[i] }]));
    this.shipped = row;
  }

  /** Take what was chosen; a folder's spec is opened. @param {File[]} chosen */
  async take(chosen) {
    const named = chosen.map((file) => /** @type {[string, File]} */ ([
      file.webkitRelativePath ? file.webkitRelativePath.split("/").slice(1).join("/") : file.name, file,
    ]));
    const specs = named.filter(([name]) => /^[^/]+\.ya?ml$/.test(name));
    const spec = specs.find(([name]) => /^campaign\.ya?ml$/.test(name)) ?? specs[0];
    const folder = chosen.some((file) => file.webkitRelativePath);
    // a folder is all that a campaign has: nothing of an example stays beside it
    if (spec && folder) await this.ship(null);
    for (const [name, blob] of named) if (name !== spec?.[0]) this.files.set(name, { blob });
    if (spec) this.open(await spec[1].text(), "own");
    else if (folder) this.say(new Error("The folder holds no .yaml file."));
    else this.changed();
  }

  /** Say what the spec began as. @param {string} start */
  begun(start) {
    this.own.hidden = start !== "own";
    this.start.value = start;
  }

  /** @param {NonNullable<typeof draft>} left */
  async resume({ text, files, start, from, example, own }) {
    await this.ship(files ? null : example);
    if (files) Object.assign(this, { files, shipped: example });
    this.open(text, start);
    this.from = from;
    if (own) this.opened = "";
    this.remember();
  }

  /** Begin as another campaign, whose files the service has. @param {any} campaign */
  async follow(campaign) {
    await this.ship(null);
    this.open(again(campaign), "own");
    this.from = campaign.id;
  }

  /** @param {string} text @param {string} start what it began as */
  open(text, start) {
    this.editor.text = this.opened = text;
    this.from = null;
    this.begun(start);
    this.changed();
  }

  /** In this tab, what differs from what was opened. */
  remember() {
    const { editor: { text }, start: { value: start }, from, shipped: example } = this;
    store(text === this.opened ? null : { text, start, from, example });
  }

  changed() {
    this.abort.abort();
    this.key = key();
    this.submit.disabled = this.trial.disabled = true;
    put(this.list, this.files.size ? `Files beside the spec: ${[...this.files.keys()].slice(0, 12).join(", ")}${this.files.size > 12 ? ` and ${this.files.size - 12} more` : ""}` : null);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.check(), QUIET);
  }

  /** The spec with its files uploaded, each once. @param {any} value */
  async ready(value) {
    const used = new Map();
    const find = (/** @type {string} */ text, /** @type {(string | number)[]} */ path) => {
      const name = text.replace(/^\.\//, "");
      const file = this.files.get(name);
      if (file && this.schema.isFile(path, value?.physics)) used.set(name, file);
      return text;
    };
    renamed(value, find);
    const refs = new Map(await Promise.all([...used].map(async ([name, file]) => {
      file.ref ??= upload(file.blob).catch((error) => { file.ref = undefined; throw error; });
      return /** @type {[string, string]} */ ([name, await file.ref]);
    })));
    return renamed(value, (text, path) =>
      (this.schema.isFile(path, value?.physics) && refs.get(text.replace(/^\.\//, ""))) || text);
  }

  /** Files that the spec names and that nobody has chosen. @param {any} value */
  missing(value) {
    const found = /** @type {{path: string, message: string, hint: string}[]} */ ([]);
    renamed(value, (text, path) => {
      const name = text.replace(/^\.\//, "");
      if (name && !name.startsWith("sha256:") && !this.files.has(name) && this.schema.isFile(path, value?.physics)) {
        found.push({ path: dotted(path), message: `is ${name}, and no such file is chosen`, hint: "choose it under Single files" });
      }
      return text;
    });
    return found;
  }

  /** Ask the service what this would need. @param {boolean} [mesh] with a coarser mesh made */
  async check(mesh = false) {
    const abort = this.abort = new AbortController();
    const written = new SpecDocument(this.editor.text);
    if (written.faults.length) { this.refused(written, written.faults); return; }
    this.submit.disabled = this.trial.disabled = true;
    put(this.status, mesh ? "Making a coarse mesh…" : "Checking…");
    try {
      this.spec = await this.ready(written.value());
      const plan = await send(mesh ? "/v1/plan?mesh=true" : "/v1/plan", this.spec, abort.signal);
      if (abort.signal.aborted) return;
      this.editor.mark([]);
      put(this.found);
      put(this.status, `${plan.name} can be submitted.`);
      put(this.facts, ...planFacts(plan, (path) => this.editor.go(written.place(path).from)));
      this.where.hidden = false;
      put(this.stale);
      this.map.show(plan.geometry);
      this.submit.disabled = this.trial.disabled = false;
    } catch (error) {
      if (abort.signal.aborted) return;
      const { errors = [] } = /** @type {Problem} */ (error);
      // the service knows of no files beside a spec, and would say how it takes them
      const missing = errors.length ? this.missing(written.value()) : [], others = errors.filter(({ path }) => !missing.some((one) => one.path === path));
      if (errors.length) this.refused(written, written.marks([...missing, ...others]));
      else this.say(/** @type {Error} */ (error));
    }
  }

  /** @param {SpecDocument} written @param {import("/dashboard/spec/document.js").Mark[]} marks */
  refused(written, marks) {
    this.editor.mark(marks);
    put(this.status, `${marks.length === 1 ? "One thing" : `${marks.length} things`} to correct.`);
    put(this.facts);
    // a letter on its way to a word must not take the map away
    put(this.stale, "As it was before the last change.");
    put(this.found, h("ul.problems", {}, marks.map((mark) => h("li", {},
      h("button.plain", { type: "button", onclick: () => this.editor.go(mark.from) }, `Line ${written.line(mark.from)}`), ` ${mark.message}`))));
  }

  /** @param {Error} error */
  say(error) {
    put(this.status);
    put(this.found, h("div.note.bad", { role: "alert" }, error.message));
  }

  async send() {
    this.submit.disabled = true;
    try {
      // pressed twice, or sent again after a lost answer: one campaign
      const { id } = await send("/v1/campaigns", this.spec, undefined, this.key);
      this.opened = this.editor.text;
      this.remember();
      location.hash = `#/campaigns/${id}`;
    } catch (error) {
      this.submit.disabled = false;
      this.say(/** @type {Error} */ (error));
    }
  }

  /** @param {string} text @param {number} position @param {boolean} asked */
  complete(text, position, asked) {
    const place = placeOf(text, position);
    if (!asked && place.from === position) return null;
    const physics = /^physics:\s*(\w+)/m.exec(text)?.[1];
    const options = choices(this.schema, place, physics, [...this.files.keys()]);
    return options.length ? { from: place.from, options } : null;
  }

  leave() {
    const { text } = this.editor;
    draft = { text, files: this.files, example: this.shipped, start: this.start.value, from: this.from, own: text !== this.opened };
    this.abort.abort();
    clearTimeout(this.timer);
    this.map.map.resized.disconnect();
    this.editor.destroy();
  }
}
