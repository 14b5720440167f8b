// @ts-check
/** <progress-bar>: groups by state, as one bar with its count in words. */

import { h, put } from "/dashboard/dom.js";

const ORDER = ["accepted", "stored", "running", "queued", "failed", "cancelled"];

class ProgressBar extends HTMLElement {
  /**
   * @param {Record<string, number>} progress
   * @param {string} state of the campaign
   */
  show(progress, state) {
    const total = progress.total;
    const unknown = !total && state === "building";
    const bar = h(unknown ? "div.bar.unknown" : "div.bar", {
      role: "progressbar",
      "aria-label": "Groups accepted",
      "aria-valuemin": 0,
      "aria-valuemax": total || 1,
      "aria-valuenow": unknown ? null : progress.accepted,
    });
    for (const name of ORDER) {
      if (!total || !progress[name]) continue;
      const part = h(`i.${name}`, { title: `${progress[name]} ${name}` });
      part.style.width = `${(100 * progress[name]) / total}%`;
      bar.append(part);
    }
    put(this, bar, h("div.count", {}, words(progress, state)));
  }
}

/** @param {Record<string, number>} progress @param {string} state */
function words(progress, state) {
  if (!progress.total) return state === "building" ? "building the model" : "not begun";
  const parts = [`${progress.accepted} of ${progress.total} groups`];
  for (const name of ["running", "failed"]) {
    if (progress[name]) parts.push(`${progress[name]} ${name}`);
  }
  return parts.join(" · ");
}

customElements.define("progress-bar", ProgressBar);
