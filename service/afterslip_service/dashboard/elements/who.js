// @ts-check
/** <who-am-i>: the user that is signed in, and the way out. */

import { session, signOut } from "/dashboard/api.js";
import { h, put } from "/dashboard/dom.js";

class WhoAmI extends HTMLElement {
  show() {
    const who = session();
    if (!who.auth || !who.user) {
      put(this);
      return;
    }
    put(this,
      h("span", { title: `role: ${who.role}` }, who.user, " "),
      h("button.plain", { type: "button", onclick: () => signOut() }, "Sign out"));
  }
}

customElements.define("who-am-i", WhoAmI);
