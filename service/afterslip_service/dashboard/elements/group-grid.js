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
    if (groups.length && groups.length === this.squares.size && groups.every((group) => this.squares.has(group.index))) {
      // squares stay, and with them the keyboard's place among them
      for (const group of groups) this.mark(group.index, group.state);
      return;
    }
    this.squares.clear();
    const grid = h("div.grid", {
      role: "group", "aria-label": "Groups; arrow keys move between them",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.move(event),
    });
    for (const group of groups) {
      const square = h("button", {
        type: "button",
        tabindex: group === groups[0] ? 0 : -1,
        onclick: () => this.chosen(group.index),
      }, String(group.index));
      this.squares.set(group.index, square);
      this.mark(group.index, group.state);
      grid.append(square);
    }
    this.press(this.pressed);
    put(this.element, grid, legend());
  }

  /**
   * One tab stop for all groups: arrows, Home and End move inside, Escape closes.
   * @param {KeyboardEvent} event
   */
  move(event) {
    const squares = [...this.squares.values()];
    const here = squares.indexOf(/** @type {any} */ (event.target));
    if (here < 0) return;
    if (event.key === "Escape") { this.chosen(-1); return; }
    const top = squares[here].offsetTop;
    const wide = Math.max(1, squares.filter((square) => square.offsetTop === top).length);
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: wide, ArrowUp: -wide, Home: -here, End: squares.length - 1 - here };
    const step = /** @type {Record<string, number>} */ (steps)[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = squares[Math.min(Math.max(here + step, 0), squares.length - 1)];
    squares[here].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
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
