// @ts-check
/** All groups as a grid of squares, coloured by state. */

import { h, put } from "/dashboard/dom.js";

export const STATES = ["waiting", "queued", "running", "stored", "accepted", "failed", "cancelled"];

export class GroupGrid {
  /** @param {(index: number) => void} chosen called when a square is pressed */
  constructor(chosen) {
    this.element = h("div", {});
    this.chosen = chosen;
    /** @type {Map<number, HTMLButtonElement>} */
    this.squares = new Map();
    this.pressed = -1;
  }

  /** @param {any[]} groups */
  show(groups) {
    this.squares.clear();
    const grid = h("div.grid", { role: "group", "aria-label": "Groups" });
    for (const group of groups) {
      const square = h("button", {
        type: "button",
        onclick: () => this.chosen(group.index),
      }, String(group.index));
      this.squares.set(group.index, square);
      this.mark(group.index, group.state);
      grid.append(square);
    }
    this.press(this.pressed);
    put(this.element, grid, legend());
  }

  /** @param {number} index @param {string} state */
  mark(index, state) {
    const square = this.squares.get(index);
    if (!square) return;
    square.className = state;
    square.title = `group ${index}: ${state}`;
    square.setAttribute("aria-label", square.title);
  }

  /** @param {number} index */
  press(index) {
    this.pressed = index;
    for (const [number, square] of this.squares) {
      square.setAttribute("aria-pressed", String(number === index));
    }
  }
}

function legend() {
  return h("div.legend", { "aria-hidden": "true" },
    STATES.map((state) => h(`span.badge.${state}`, {}, state)));
}
