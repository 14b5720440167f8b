// @ts-check
/** Groups where they lie: the unit sources of each fault on its plane, coloured by state. */

import { h, put, svg } from "/dashboard/dom.js";

/**
 * @typedef {{faults: {name: string, along_strike: number, down_dip: number}[], fault: number[],
 *   along_strike: number[], down_dip: number[]}} Places
 */

const CELL = 10, GAP = 0.7;

export class FaultMap {
  /** @param {(index: number) => void} chosen called when a group is pressed */
  constructor(chosen) {
    this.chosen = chosen;
    this.element = h("div.faults", {});
    /** the shapes of each group, one a fault @type {Map<number, any[]>} */
    this.shapes = new Map();
    /** @type {Panel[]} */
    this.panels = [];
  }

  /**
   * @param {Places} places
   * @param {any[]} groups
   * @param {Map<string, {length: number, width: number}>} planes of faults by name, km
   */
  show(places, groups, planes) {
    this.shapes.clear();
    this.panels = places.faults.map((fault, number) => new Panel(fault, planes.get(fault.name), cellsOf(places, groups, number)))
      .filter((panel) => panel.cells.size);
    for (const panel of this.panels) {
      for (const [group, shape] of panel.shapes) {
        if (!this.shapes.has(group)) this.shapes.set(group, []);
        this.shapes.get(group)?.push(shape);
      }
    }
    for (const { index, state } of groups) this.mark(index, state);
    put(this.element, this.panels.map((panel) => panel.draw(this.chosen)));
  }

  /** @param {number} index @param {string} state */
  mark(index, state) {
    for (const shape of this.shapes.get(index) ?? []) {
      shape.setAttribute("class", state);
      shape.setAttribute("aria-label", `group ${index}: ${state}`);
      shape.firstChild.textContent = `group ${index}: ${state}`;
    }
  }

  /** @param {number} index */
  press(index) {
    for (const [group, shapes] of this.shapes) {
      // moved over its neighbours it would lose the focus
      for (const shape of shapes) shape.setAttribute("aria-pressed", String(group === index));
    }
  }
}

/** The groups at each patch of a fault. @param {Places} places @param {any[]} groups @param {number} fault @returns {Map<string, number[]>} */
export function cellsOf(places, groups, fault) {
  /** @type {Map<string, number[]>} */
  const cells = new Map();
  for (const { index, sources } of groups) {
    for (const source of sources) {
      if (places.fault[source] !== fault) continue;
      const key = `${places.along_strike[source]},${places.down_dip[source]}`, there = cells.get(key);
      if (!there) cells.set(key, [index]);
      else if (!there.includes(index)) there.push(index);
    }
  }
  return cells;
}

class Panel {
  /** @param {any} fault @param {{length: number, width: number} | undefined} plane @param {Map<string, number[]>} cells */
  constructor(fault, plane, cells) {
    this.fault = fault;
    this.cells = cells;
    this.size = plane ? `, ${plane.length} by ${plane.width} km` : "";
    // patches have the shape that they have on the fault
    const shape = plane ? (plane.width / fault.down_dip) / (plane.length / fault.along_strike) : 1;
    this.high = CELL * Math.min(Math.max(shape, 0.2), 5);
    /** @type {Map<number, any>} */
    this.shapes = new Map();
    /** @type {Map<number, number[]>} first patch of each group */
    this.first = new Map();
    this.here = [0, 0];
    const outlines = this.#outlines();
    for (const [group, d] of [...outlines].sort(([a], [b]) => a - b)) {
      this.shapes.set(group, svg("path", { role: "button", tabindex: this.shapes.size ? -1 : 0, "data-group": group, d }, svg("title", {})));
    }
  }

  #outlines() {
    /** @type {Map<number, string>} */
    const found = new Map();
    for (const [key, groups] of this.cells) {
      const [i, j] = key.split(",").map(Number), wide = CELL / groups.length;
      groups.forEach((group, k) => {
        if (!this.first.has(group)) this.first.set(group, [i, j]);
        const box = `M${i * CELL + k * wide + GAP / 2} ${(j * this.high + GAP / 2).toFixed(2)}h${(wide - GAP).toFixed(2)}v${(this.high - GAP).toFixed(2)}h${(GAP - wide).toFixed(2)}z`;
        found.set(group, (found.get(group) ?? "") + box);
      });
    }
    return found;
  }

  /** @param {(index: number) => void} chosen */
  draw(chosen) {
    const { name, along_strike: n, down_dip: m } = this.fault;
    const drawing = svg("svg", {
      viewBox: `0 0 ${n * CELL} ${(m * this.high).toFixed(2)}`, role: "group",
      "aria-label": `Groups on the fault ${name}; arrow keys move between them`,
      onclick: (/** @type {any} */ event) => this.#pressed(event, chosen),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event, chosen),
    }, [...this.shapes.values()]);
    return h("figure", {}, drawing,
      h("figcaption.sub", {}, `${name}${this.size}: ${n} by ${m} patches, upper edge at the top, strike to the right`));
  }

  /** @param {any} event @param {(index: number) => void} chosen */
  #pressed(event, chosen) {
    const group = event.target.closest("[data-group]");
    if (!group) return;
    const index = Number(group.getAttribute("data-group"));
    this.here = this.first.get(index) ?? this.here;
    this.#focus(index);
    chosen(index);
  }

  /** @param {KeyboardEvent} event @param {(index: number) => void} chosen */
  #key(event, chosen) {
    const target = /** @type {Element} */ (event.target), index = Number(target.getAttribute("data-group"));
    if (event.key === "Escape") { chosen(-1); return; }
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); chosen(index); return; }
    const next = this.#beside(index, event.key);
    if (next === undefined) return;
    event.preventDefault();
    this.#focus(next);
  }

  /** The next group in a direction: patches of the same one are passed. @param {number} index @param {string} key */
  #beside(index, key) {
    const all = [...this.shapes.keys()];
    if (key === "Home" || key === "End") {
      const group = all[key === "Home" ? 0 : all.length - 1];
      this.here = this.first.get(group) ?? this.here;
      return group;
    }
    const step = /** @type {Record<string, number[]>} */ ({ ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] })[key];
    if (!step) return undefined;
    // one that was reached otherwise
    if (!this.cells.get(this.here.join(","))?.includes(index)) this.here = this.first.get(index) ?? this.here;
    let [i, j] = this.here;
    for (;;) {
      [i, j] = [i + step[0], j + step[1]];
      const there = this.cells.get(`${i},${j}`);
      if (!there) return index;
      this.here = [i, j];
      if (!there.includes(index)) return there[0];
    }
  }

  /** @param {number} index */
  #focus(index) {
    for (const [group, shape] of this.shapes) {
      if (group === index) shape.setAttribute("tabindex", "0");
      else if (shape.getAttribute("tabindex") === "0") shape.setAttribute("tabindex", "-1");
    }
    this.shapes.get(index)?.focus();
  }
}
