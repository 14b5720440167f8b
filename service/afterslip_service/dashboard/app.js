// @ts-check
/** Which view is shown, by the address behind the #. */

import "/dashboard/elements/progress-bar.js";
import "/dashboard/elements/service-light.js";
import "/dashboard/elements/who.js";
import { readsOnly, session, signIn, whoAmI } from "/dashboard/api.js";
import { h, put } from "/dashboard/dom.js";
import { campaignList } from "/dashboard/views/list.js";
import { loginView } from "/dashboard/views/login.js";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
let leave = () => {};

/** A module of views/, loaded with its libraries when its view is asked for. @param {string} name @param {string} view */
const later = (name, view) => async (/** @type {HTMLElement} */ into, /** @type {string} */ id) => {
  const here = location.hash;
  const module = await import(`/dashboard/views/${name}.js`);
  return location.hash === here ? module[view](into, id) : () => {};
};

/** Each view fills the element that it is given and returns how it is left. */
const VIEWS = [
  { path: /^#\/campaigns\/([\w-]+)$/, show: later("campaign", "campaignView") },
  { path: /^#\/campaigns\/([\w-]+)\/greens(?:\?.*)?$/, show: later("greens", "greensView") },
  { path: /^#\/campaigns\/([\w-]+)\/waves(?:\?.*)?$/, show: later("waves", "wavesView") },
  { path: /^#\/campaigns\/([\w-]+)\/invert$/, show: later("invert", "invertView") },
  { path: /^#\/inversions\/([\w-]+)(?:\?.*)?$/, show: later("slip", "slipView") },
  { path: /^#\/new(?:\?from=([\w-]+))?$/, show: later("new", "newView") },
  { path: /^#\/workers$/, show: later("workers", "workerView") },
  { path: /^#\/webhooks$/, show: later("webhooks", "webhookView") },
  { path: /^(#\/?)?$/, show: campaignList },
];

/** A link to one campaign signs in with the secret in it, which then leaves the address. @param {RegExpExecArray} link */
async function shared([, campaign, secret]) {
  const { auth, user, campaign: only } = session();
  try {
    if (auth && (!user || (only && only !== campaign))) await signIn(secret);
    location.replace(`#/campaigns/${campaign}`);
  } catch {
    put(main, h("div.note.bad", { role: "alert" }, h("b", {}, "This link opens nothing"),
      "It has expired, was revoked, or is not whole. Ask for a new one, or ", h("a", { href: "#/" }, "sign in with a token"), "."));
  }
}

/** Where who came by a link may not go; the service refuses it as well. @param {string} here @param {string} campaign the only one that may be read */
const closed = (here, campaign) => !/^#\/inversions\//.test(here)
  && !(here.split("?")[0].split("/")[2] === campaign && /^#\/campaigns\/[\w-]+(\/(greens|waves))?(\?|$)/.test(here));

/** Where something is made, which such a token may not. @param {string} here */
const makes = (here) => /^#\/(new(\?|$)|campaigns\/[\w-]+\/invert$)/.test(here);

/** @param {string} campaign */
const back = (campaign) => h("p", {}, h("a", { href: `#/campaigns/${campaign}` }, "To the campaign of this link"));

async function show() {
  leave();
  leave = () => {};
  const link = /^#\/shared\/([\w-]+)\/([\w-]+)$/.exec(location.hash);
  // who is not signed in, or came by a link, has nowhere else to go
  const { auth, user, campaign } = session();
  /** @type {HTMLElement} */ (document.querySelector(".top nav")).hidden = campaign !== null || (auth && !user);
  if (link) { await shared(link); return; }
  if (auth && !user) {
    loginView(main);
    return;
  }
  const here = location.hash;
  if (campaign !== null && /^(#\/?)?$/.test(here)) { location.replace(`#/campaigns/${campaign}`); return; }
  if (campaign !== null && closed(here, campaign)) {
    put(main, h("div.note", {}, h("b", {}, "This link shows one campaign and nothing else")), back(campaign));
    return;
  }
  if (readsOnly() && makes(here)) {
    put(main, h("div.note", {}, h("b", {}, "This token may only read"),
      "Campaigns and inversions are made with a token of the role submitter. ", h("a", { href: "#/" }, "To the campaigns"), "."));
    return;
  }
  for (const link of document.querySelectorAll(".top nav a")) {
    const target = link.getAttribute("href");
    const campaigns = target === "#/" && !/^#\/(workers|webhooks)/.test(here);
    if (target === here || campaigns) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  for (const { path, show: view } of VIEWS) {
    const match = path.exec(here);
    if (!match) continue;
    try {
      const left = await view(main, match[1]);
      // a view may say more in its own address meanwhile
      if (path.exec(location.hash)?.[1] === match[1] && path.test(location.hash)) leave = left;
      else left();
    } catch (error) {
      put(main, h("div.note.bad", { role: "alert" }, h("b", {}, "This cannot be shown"),
        /** @type {Error} */ (error).message), campaign && back(campaign));
    }
    return;
  }
  put(main, h("div.empty", {}, "There is no such page. ", h("a", { href: "#/" }, "Campaigns")));
}

window.addEventListener("hashchange", () => { show().then(() => main.focus({ preventScroll: true })); });

let shown = "";
document.addEventListener("session", () => {
  /** @type {any} */ (document.querySelector("who-am-i")).show();
  const { auth, user } = session();
  const now = auth ? `user ${user}` : "everybody";
  if (now !== shown) { shown = now; show(); }
});
// where the service does not answer, the view says so itself
whoAmI().catch(() => show());
