// @ts-check
/** <service-light>: whether the service can work, and what is wrong if not. */

import { h, put } from "/dashboard/dom.js";

const EVERY_MS = 5000;

class ServiceLight extends HTMLElement {
  connectedCallback() {
    this.setAttribute("role", "status");
    this.look();
    this.timer = setInterval(() => this.look(), EVERY_MS);
  }

  disconnectedCallback() {
    clearInterval(this.timer);
  }

  async look() {
    let state = "failed", word = "out of reach", title = "the service does not answer", answers = false;
    try {
      const answer = await fetch("/readyz");
      const { ready, parts } = await answer.json();
      answers = true;
      const wrong = Object.entries(parts).filter(([, part]) => !part.ok);
      state = ready ? "complete" : "paused";
      word = ready ? "ready" : `${wrong.map(([name]) => name).join(", ")}: trouble`;
      title = Object.entries(parts).map(([name, part]) => `${name}: ${part.detail}`).join("\n");
    } catch { /* the words above say it */ }
    // what is shown is old then, and its buttons would do nothing
    const main = /** @type {HTMLElement} */ (document.getElementById("main"));
    main.classList.toggle("stale", !answers);
    main.inert = !answers;
    put(this, h(`span.badge.${state}`, { title }, word));
  }
}

customElements.define("service-light", ServiceLight);
