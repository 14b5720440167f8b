// @ts-check
/** Webhooks: addresses that are notified when campaigns and inversions have ended. */

import { all, get, post, readsOnly, remove, send } from "/dashboard/api.js";
import { h, put } from "/dashboard/dom.js";
import { ago, moment } from "/dashboard/format.js";

/** @param {HTMLElement} main */
export async function webhookView(main) {
  document.title = "Webhooks · afterslip";
  const { components } = await get("/openapi.json");
  const view = new WebhookView(main, components.schemas.Event.enum);
  await view.refresh();
  return () => clearTimeout(view.timer);
}

class WebhookView {
  /** @param {HTMLElement} main @param {string[]} events that may be reported */
  constructor(main, events) {
    this.timer = 0;
    this.status = h("div", {});
    this.list = h("section.card", { "aria-label": "Webhooks" });
    this.url = h("input", { type: "url", required: true, maxlength: 2000, placeholder: "https://example.org/hook" });
    this.events = events.map((name) => h("input", { type: "checkbox", value: name, checked: true }));
    this.campaign = h("input", { maxlength: 40, placeholder: "all of mine" });
    put(main, h("div.head", {}, h("div.grow", {}, h("h1", {}, "Webhooks"),
      h("div.sub", {}, "An address gets a signed POST (Standard Webhooks 1.0) when a campaign or an inversion has ended."))),
    this.status, this.list,
    readsOnly() ? null : h("section.card", {}, h("h2", {}, "New webhook"),
      h("form.choices.three", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this.attempt(() => this.add()); } },
        h("label", {}, "Address", this.url),
        h("label", {}, "Id of a campaign, if only of one", this.campaign),
        h("fieldset", {}, h("legend", {}, "Events"), this.events.map((field) => h("label.check", {}, field, field.value))),
        h("div", {}, h("button.primary", {}, "Add")))));
  }

  async refresh() {
    const hooks = await all("/v1/webhooks", 1000);
    const logs = await Promise.all(hooks.map(({ id }) => get(`/v1/webhooks/${id}/deliveries?limit=10`)));
    put(this.list, hooks.length ? h("ul.rows", {}, hooks.map((hook, i) => this.row(hook, logs[i].items)))
      : h("div.empty", {}, "No webhooks yet."));
    // what is on its way will be answered, or sent again
    clearTimeout(this.timer);
    if (logs.some(({ items }) => items.some((/** @type {any} */ one) => one.state === "waiting"))) {
      this.timer = window.setTimeout(() => this.refresh().catch(() => {}), 2000);
    }
  }

  /** @param {any} hook @param {any[]} log newest first */
  row(hook, log) {
    const press = (/** @type {string} */ name, /** @type {string} */ tag, /** @type {() => Promise<any>} */ act) =>
      h(tag, { type: "button", "aria-label": `${name}: ${hook.url}`, onclick: () => this.attempt(act) }, name);
    return h("li.webhook", {},
      h("div.head", {}, h("div.grow", {}, h("b.mono", {}, hook.url),
        h("div.sub", {}, hook.events.join(", "), hook.campaign ? [" · ", h("a", { href: `#/campaigns/${hook.campaign}` }, hook.campaign)] : " · all campaigns",
          hook.owner ? ` · ${hook.owner}` : "")),
      h("div.buttons", {}, readsOnly() ? null : press("Send a test", "button", () => post(`/v1/webhooks/${hook.id}/test`)),
        press("Delete", "button.danger", async () => {
          if (window.confirm(`Delete the webhook ${hook.url}?`)) await remove(`/v1/webhooks/${hook.id}`);
        }))),
      log.length ? deliveries(log) : h("p.sub", {}, "Nothing was sent yet."));
  }

  async add() {
    const made = await send("/v1/webhooks", {
      url: this.url.value, campaign: this.campaign.value.trim() || null,
      events: this.events.filter((field) => field.checked).map((field) => field.value),
    });
    this.url.value = "";
    return h("div.note", { role: "status" }, h("b", {}, "Copy the secret now: it is not shown again"), h("code", {}, made.secret));
  }

  /** @param {() => Promise<any>} act may return what is to be said */
  async attempt(act) {
    try {
      const said = await act();
      put(this.status, said instanceof Element ? said : null);
      await this.refresh();
    } catch (error) {
      put(this.status, h("div.note.bad", { role: "alert" }, /** @type {Error} */ (error).message));
    }
  }
}

/** @param {any[]} log */
function deliveries(log) {
  const names = ["Event", "State", "Sent", "Attempts", "Answer"];
  return h("div.scroll", {}, h("table", {},
    h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, log.map((one) => h("tr", {},
      h("td", {}, one.event), h("td", {}, one.state),
      h("td", { title: one.sent_at && moment(one.sent_at) }, one.sent_at ? ago(one.sent_at) : "–",
        one.again_at ? ` · again ${ago(one.again_at)}` : ""),
      h("td", {}, String(one.attempts)), h("td", {}, one.error ?? one.status ?? "–"))))));
}
