// @ts-check
/** Series of a campaign of waves, from its store. */

import { Problem } from "/dashboard/api.js";
import { slopes } from "/dashboard/physics/waves/spline.js";
import { Store } from "/dashboard/store.js";
import { slice } from "/dashboard/vendor/libraries.js";

// series at stations, as `plot.record_section` names them
export const STORED = { velocity: "seismogram", displacement: "displacement" };
/** @typedef {keyof typeof STORED} Quantity */
// bytes of the ground that are read without being asked for, and at most
const UNASKED = 48e6, MOST = 1.5e9;

/**
 * Unit sources that slip together, each by one metre.
 * @typedef {object} Slip
 * @property {string} label
 * @property {string} short
 * @property {number[]} rows unit sources
 * @property {number} x m, centre
 * @property {number} y m
 * @property {number} depth m
 */

export class Waves {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.attrs = store.attrs;
    /** @type {import("/dashboard/store.js").Source[]} */
    this.sources = [];
    /** m @type {{name: string, x: number, y: number}[]} */
    this.stations = [];
    /** s @type {number[]} */
    this.times = [];
    /** m, points of the ground @type {{x: Float64Array, y: Float64Array} | null} */
    this.grid = null;
    /** m2 of each unit source @type {ArrayLike<number>} */
    this.areas = [];
    /** of the group that was read last, by array @type {Map<string, {group: number, size: number, data: Promise<any>}>} */
    this.last = new Map();
  }

  /** @param {string} path of the store @returns {Promise<Waves>} */
  static async open(path) {
    const store = await Store.open(path), waves = new Waves(store);
    const stations = store.has("station"), ground = store.has("column");
    const names = ["sample", "source_area", ...(stations ? ["station", "station_x", "station_y"] : []), ...(ground ? ["column", "row"] : [])];
    const [sources, ...read] = await Promise.all([store.sources(), ...names.map((name) => store.read(name))]);
    const found = Object.fromEntries(names.map((name, i) => [name, read[i].data]));
    waves.sources = sources;
    waves.times = Array.from(found.sample);
    waves.areas = found.source_area;
    if (stations) waves.stations = Array.from(found.station, (name, i) => ({ name: String(name), x: found.station_x[i], y: found.station_y[i] }));
    if (ground) waves.grid = { x: found.column, y: found.row };
    return waves;
  }

  /** s from one sample to the next */
  get step() { return this.times[1] - this.times[0]; }

  /** Each patch alone, then whole faults; of one component of slip. @param {string} component @returns {Slip[]} */
  slips(component) {
    const own = this.sources.filter((source) => source.component === component);
    const faults = [...new Set(own.map(({ fault }) => fault))];
    return [
      ...own.map((source) => ({
        label: `${source.fault}, along strike ${source.patch[0]}, down dip ${source.patch[1]}`,
        short: `${faults.length > 1 ? `${source.fault} ` : ""}${source.patch[0]}, ${source.patch[1]}`,
        rows: [source.index], x: source.x, y: source.y, depth: -source.z,
      })),
      ...faults.map((fault) => this.#together(`all of ${fault}`, own.filter((source) => source.fault === fault))),
    ];
  }

  /** @param {string} label @param {import("/dashboard/store.js").Source[]} sources @returns {Slip} */
  #together(label, sources) {
    const area = sources.reduce((sum, { index }) => sum + this.areas[index], 0);
    const mean = (/** @type {"x" | "y" | "z"} */ axis) => sources.reduce((sum, source) => sum + source[axis] * this.areas[source.index], 0) / area;
    return { label, short: label, rows: sources.map(({ index }) => index), x: mean("x"), y: mean("y"), depth: -mean("z") };
  }

  /** @param {Slip} slip @param {Quantity} quantity @returns {Promise<Float32Array | Float64Array>} (station, 3, sample) */
  async series({ rows }, quantity) {
    const sum = await this.#sum(rows, STORED[quantity]);
    if (sum.every(Number.isFinite)) return sum;
    throw new Problem(0, `The series of unit source ${rows.join(", ")} have holes. The command "afterslip fsck" says why.`);
  }

  /** @param {Slip} slip @returns {Promise<Float32Array | Float64Array>} (station, 3), NaN where sides hold no static load */
  offsets({ rows }) { return this.#sum(rows, "offset"); }

  /** @param {number[]} rows @param {string} name */
  async #sum(rows, name) {
    /** @type {Float64Array | null} */
    let sum = null;
    for (const row of rows) {
      const one = await this.#one(row, name);
      if (rows.length === 1) return one;
      sum ??= new Float64Array(one.length);
      for (let i = 0; i < one.length; i += 1) sum[i] += one[i];
    }
    return /** @type {Float64Array} */ (sum);
  }

  /** Of one unit source; its group lies in one file, which is read whole. @param {number} row @param {string} name */
  async #one(row, name) {
    const size = (await this.store.array(name)).chunks[0], group = Math.floor(row / size);
    let latest = this.last.get(name);
    if (latest?.group !== group) {
      const part = [slice(group * size, Math.min((group + 1) * size, this.sources.length))];
      const { shape } = await this.store.array(name);
      latest = { group, size, data: this.store.read(name, [...part, ...shape.slice(1).map(() => null)]) };
      this.last.set(name, latest);
      latest.data.catch(() => this.last.delete(name));
    }
    const { data } = await latest.data, count = (await this.store.array(name)).shape.slice(1).reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
    return data.slice((row - group * size) * count, (row - group * size + 1) * count);
  }

  /** Bytes of the ground's motion. @param {Slip} slip */
  bytes({ rows }) { return this.grid ? 12 * rows.length * this.grid.x.length * this.grid.y.length * this.times.length : 0; }

  /** What the reader is asked before the ground is read. @param {Slip} slip @returns {"read" | "ask" | "refuse"} */
  cost(slip) {
    const bytes = this.bytes(slip);
    return bytes <= UNASKED ? "read" : bytes <= MOST ? "ask" : "refuse";
  }

  /**
   * Displacement of the ground.
   * @param {Slip} slip
   * @param {(share: number) => boolean} going called with the share that is read; false stops
   * @returns {Promise<Float32Array | null>} (row, column, 3, sample); null: stopped
   */
  async ground({ rows }, going) {
    const grid = /** @type {{x: Float64Array, y: Float64Array}} */ (this.grid), high = grid.y.length;
    const line = grid.x.length * 3 * this.times.length, sum = new Float32Array(high * line);
    const block = Math.max(1, Math.min(16, Math.floor(4e6 / line)));
    for (const [i, row] of rows.entries()) {
      for (let first = 0; first < high; first += block) {
        const { data } = await this.store.read("wavefield", [row, slice(first, Math.min(first + block, high)), null, null, null]);
        for (let k = 0, at = first * line; k < data.length; k += 1, at += 1) sum[at] += data[k];
        if (!going((i + Math.min(first + block, high) / high) / rows.length)) return null;
      }
    }
    if (sum.every(Number.isFinite)) return sum;
    throw new Problem(0, `The ground's motion by unit source ${rows.join(", ")} has holes. The command "afterslip fsck" says why.`);
  }

  /**
   * One component of the ground's motion; velocity is the slope of the spline through displacement.
   * @param {Float32Array} ground of `ground` @param {number} axis @param {Quantity} quantity
   * @returns {Float32Array} (point, sample)
   */
  component(ground, axis, quantity) {
    const count = this.times.length, points = ground.length / (3 * count), found = new Float32Array(points * count);
    for (let point = 0; point < points; point += 1) {
      const from = (3 * point + axis) * count;
      found.set(ground.subarray(from, from + count), point * count);
    }
    return quantity === "velocity" ? slopes(found, count, this.step) : found;
  }
}

/** @param {ArrayLike<number>} values @returns {number} the largest, without its sign */
export function largest(values) {
  let most = 0;
  for (let i = 0; i < values.length; i += 1) most = Math.max(most, Math.abs(values[i]));
  return most;
}
