// @ts-check
/** <service-light>: whether the service can work, and what is wrong if not. */

import { h, put } from "/dashboard/dom.js";

const EVERY_MS = 15000;

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
    let state = "failed", word = "out of reach", title = "the service does not answer";
    try {
      const answer = await fetch("/readyz");
      const { ready, parts } = await answer.json();
      const wrong = Object.entries(parts).filter(([, part]) => !part.ok);
      state = ready ? "complete" : "paused";
      word = ready ? "ready" : `${wrong.map(([name]) => name).join(", ")}: trouble`;
      title = Object.entries(parts).map(([name, part]) => `${name}: ${part.detail}`).join("\n");
    } catch { /* the words above say it */ }
    put(this, h(`span.badge.${state}`, { title }, word));
  }
}

customElements.define("service-light", ServiceLight);
