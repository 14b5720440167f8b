// @ts-check
/** Curves of displacement from `greens.zarr`, as `afterslip.GreensStore` evaluates them. */

import { Problem } from "/dashboard/api.js";
import { modeWeights, stepWeights } from "/dashboard/physics/viscoelastic/curve.js";
import { MeshError } from "/dashboard/physics/viscoelastic/mesh-error.js";
import { Curve } from "/dashboard/physics/viscoelastic/motion.js";
import { Store } from "/dashboard/store.js";
import { Surface } from "/dashboard/surface.js";
import { slice } from "/dashboard/vendor/libraries.js";

export const YEAR = 31557600;
// modes that are read before anything is drawn: two of the ground's motion at least
const FIRST = 5;

export class Greens {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.spectral = store.attrs.integrator !== "stepping";
    this.until = Number(store.attrs.until_yr) * YEAR;
    /** @type {any} */
    this.surface = null;
    /** @type {import("/dashboard/store.js").Source[]} */
    this.sources = [];
    /** s @type {number[]} */
    this.times = [];
    /** s, of the mesh's error; null where that was not estimated @type {number[] | null} */
    this.moments = null;
  }

  /** @param {string} path of the store @returns {Promise<Greens>} */
  static async open(path) {
    const store = await Store.open(path), greens = new Greens(store);
    const names = ["node_x", "node_y", "face_node_connectivity", "time"];
    const [sources, x, y, faces, time] = await Promise.all([store.sources(), ...names.map((name) => store.read(name))]);
    greens.sources = sources;
    greens.surface = new Surface(x.data, y.data, faces.data);
    greens.times = Array.from(time.data, (t) => t * YEAR);
    if (store.has("error_time")) {
      const { data: moments } = await store.read("error_time");
      greens.moments = Array.from(moments, (t) => t * YEAR);
    }
    return greens;
  }

  /** @param {number} source @returns {Promise<Curve>} of which the first modes are read */
  async curve(source) {
    const { data: counts } = await this.store.read("mode_count");
    const count = counts[source];
    if (!(count > 0)) throw new Problem(0, `The store lacks unit source ${source}. The command "afterslip fsck" says why.`);
    const parts = {
      count, until: this.until, spectral: this.spectral, weights: await this.weights(source, count),
      read: async (/** @type {number} */ mode) => {
        const { data } = await this.store.read("response", [source, mode, null, null]);
        if (data.every(Number.isFinite)) return data;
        throw new Problem(0, `The response of unit source ${source} has holes. The command "afterslip fsck" says why.`);
      },
      estimate: () => this.error(source),
    };
    const curve = new Curve(parts);
    await curve.upTo(this.spectral ? FIRST : count);
    return curve;
  }

  /** @param {number} source @param {number} count @returns {Promise<(t: number) => number[]>} of the modes at a time in s */
  async weights(source, count) {
    if (!this.spectral) {
      const { data: steps } = await this.store.read("step_time", [slice(0, count)]);
      return (t) => stepWeights(steps.map((/** @type {number} */ s) => s * YEAR), t);
    }
    const [pairs, norm, shift] = await Promise.all([
      this.store.read("recurrence", [source, slice(0, count), null]),
      this.store.read("start_norm"), this.store.read("shift"),
    ]);
    return (t) => modeWeights(pairs.data, norm.data[source], shift.data[source], t);
  }

  /** @param {number} source @returns {Promise<MeshError | null>} */
  async error(source) {
    if (!this.moments) return null;
    const { data } = await this.store.read("space_error", [source, null, null]);
    return data.every(Number.isFinite) ? new MeshError(data, this.moments) : null;
  }
}

/**
 * Whether two campaigns have the same nodes and unit sources: only the rock differs.
 * @param {Greens} one @param {Greens} other
 */
export function comparable(one, other) {
  const same = (/** @type {ArrayLike<number>} */ a, /** @type {ArrayLike<number>} */ b) =>
    a.length === b.length && Array.prototype.every.call(a, (v, i) => v === b[i]);
  return ["x", "y", "faces"].every((name) => same(one.surface[name], other.surface[name]))
    && one.sources.length === other.sources.length
    && one.sources.every(({ label, x, y }, i) => label === other.sources[i].label && x === other.sources[i].x && y === other.sources[i].y);
}
