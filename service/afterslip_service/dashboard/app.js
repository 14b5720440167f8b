// @ts-check
/** Which view is shown, by the address behind the #. */

import "/dashboard/elements/progress-bar.js";
import "/dashboard/elements/service-light.js";
import "/dashboard/elements/who.js";
import { session, signIn, whoAmI } from "/dashboard/api.js";
import { h, put } from "/dashboard/dom.js";
import { campaignList } from "/dashboard/views/list.js";
import { campaignView } from "/dashboard/views/campaign.js";
import { loginView } from "/dashboard/views/login.js";
import { webhookView } from "/dashboard/views/webhooks.js";
import { workerView } from "/dashboard/views/workers.js";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
let leave = () => {};

/** Its libraries are loaded when it is asked for. @param {HTMLElement} into @param {string} id */
const greensView = async (into, id) => (await import("/dashboard/views/greens.js")).greensView(into, id);

/** @param {HTMLElement} into */
const newView = async (into) => (await import("/dashboard/views/new.js")).newView(into);

/** @param {HTMLElement} into @param {string} id */
const slipView = async (into, id) => (await import("/dashboard/views/slip.js")).slipView(into, id);

/** @param {HTMLElement} into @param {string} id */
const invertView = async (into, id) => (await import("/dashboard/views/invert.js")).invertView(into, id);

/** Each view fills the element that it is given and returns how it is left. */
const VIEWS = [
  { path: /^#\/campaigns\/([\w-]+)$/, show: campaignView },
  { path: /^#\/campaigns\/([\w-]+)\/greens$/, show: greensView },
  { path: /^#\/campaigns\/([\w-]+)\/invert$/, show: invertView },
  { path: /^#\/inversions\/([\w-]+)(?:\?.*)?$/, show: slipView },
  { path: /^#\/new$/, show: newView },
  { path: /^#\/workers$/, show: workerView },
  { path: /^#\/webhooks$/, show: webhookView },
  { path: /^(#\/?)?$/, show: campaignList },
];

/** A link to one campaign signs in with the secret in it, which then leaves the address. @param {RegExpExecArray} link */
async function shared([, campaign, secret]) {
  const { auth, user, campaign: only } = session();
  try {
    if (auth && (!user || (only && only !== campaign))) await signIn(secret);
    location.replace(`#/campaigns/${campaign}`);
  } catch {
    put(main, h("div.note.bad", { role: "alert" }, h("b", {}, "This link opens nothing"), "It has expired, was revoked, or is not whole."));
  }
}

async function show() {
  leave();
  leave = () => {};
  const link = /^#\/shared\/([\w-]+)\/([\w-]+)$/.exec(location.hash);
  if (link) { await shared(link); return; }
  // who is not signed in, or came by a link, has nowhere else to go
  const { auth, user, campaign } = session();
  /** @type {HTMLElement} */ (document.querySelector(".top nav")).hidden = campaign !== null || (auth && !user);
  if (auth && !user) {
    loginView(main);
    return;
  }
  const here = location.hash;
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
        /** @type {Error} */ (error).message));
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
