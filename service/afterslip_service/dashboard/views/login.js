// @ts-check
/** Signing in: a token for a cookie that scripts cannot read. */

import { signIn } from "/dashboard/api.js";
import { h, put } from "/dashboard/dom.js";

/** @param {HTMLElement} main */
export function loginView(main) {
  document.title = "Sign in · afterslip";
  const token = h("input", {
    id: "token", type: "password", name: "token", required: true,
    autocomplete: "current-password", spellcheck: "false",
  });
  const why = h("p.problem", { role: "alert" });
  const button = h("button", { type: "submit" }, "Sign in");
  const form = h("form.card.login", {
    onsubmit: async (/** @type {Event} */ event) => {
      event.preventDefault();
      put(why);
      button.disabled = true;
      try {
        // the part that shows the page hears of it
        await signIn(token.value.trim());
      } catch (error) {
        put(why, /** @type {Error} */ (error).message);
        button.disabled = false;
        token.select();
      }
    },
  },
  h("h1", {}, "Sign in"),
  h("p.sub", {}, "This service asks for a token. An administrator makes one with"),
  h("p", {}, h("code", {}, "afterslip token create NAME --user USER")),
  h("label", { for: "token" }, "Token"), token, why, button);
  put(main, form);
  token.focus();
}
