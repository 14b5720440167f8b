// @ts-check
/** Motion of the ground by one unit source: a sum of modes, of which few may be enough. */

// times at which the weights of modes are looked at
const SAMPLES = 40;

/** @typedef {import("/dashboard/physics/viscoelastic/mesh-error.js").MeshError} MeshError */

/** Displacement per metre of slip of one unit source. */
export class Curve {
  /**
   * @param {object} parts
   * @param {number} parts.count of the modes
   * @param {number} parts.until s
   * @param {boolean} parts.spectral Lanczos modes, whose weights decay; else steps of time
   * @param {(t: number) => number[]} parts.weights of the modes at a time in s
   * @param {(mode: number) => Promise<Float32Array>} parts.read (node, 3) of one mode
   * @param {() => Promise<MeshError | null>} parts.estimate
   */
  constructor({ count, until, spectral, weights, read, estimate }) {
    this.count = count;
    this.spectral = spectral;
    this.weights = weights;
    this.read = read;
    this.estimate = estimate;
    /** undefined: not read yet @type {MeshError | null | undefined} */
    this.errors = undefined;
    /** (node, 3) of each that was read, the first ones @type {Float32Array[]} */
    this.modes = [];
    /** asked for @type {Promise<Float32Array>[]} */
    this.asked = [];
    /** m/m of slip, the longest vector of each Lanczos mode that was read, for a weight of 1 */
    this.longest = 0;
    const all = Array.from({ length: SAMPLES + 1 }, (_, i) => weights((until * i) / SAMPLES));
    this.peaks = all[0].map((_, mode) => Math.max(...all.map((row) => Math.abs(row[mode]))));
  }

  /** Read the first modes, those that were not. @param {number} wanted */
  async upTo(wanted) {
    for (let mode = this.asked.length; mode < Math.min(wanted, this.count); mode += 1) this.asked.push(this.read(mode));
    try {
      const found = await Promise.all(this.asked.slice(0, wanted));
      for (let mode = this.modes.length; mode < found.length; mode += 1) {
        this.modes.push(found[mode]);
        if (mode) this.longest = Math.max(this.longest, longest(found[mode]));
      }
    } catch (error) {
      this.asked.length = this.modes.length;
      throw error;
    }
  }

  async withErrors() { this.errors = await this.estimate(); }

  /** About the longest vector of what the modes after the first ones add, m/m of slip. @param {number} known */
  missing(known) {
    if (known >= this.count) return 0;
    if (!this.spectral) return Infinity;
    // the modes are orthogonal vectors of one length: none of them moves the ground far more
    return this.longest * this.peaks.slice(known).reduce((sum, v) => sum + v, 0);
  }

  /** @returns {[number, number]} modes that were read, and all */
  get known() { return [this.modes.length, this.count]; }

  /** @param {number} t s @returns {Float64Array} (node, 3) east, north, up */
  at(t) {
    const found = new Float64Array(this.modes[0].length), weights = this.weights(t);
    // a step's other steps have no part in it
    const used = this.modes.map((values, mode) => ({ values, weight: weights[mode] })).filter(({ weight }) => weight !== 0);
    // four at a time: writing the sum takes longer than the sum
    for (let first = 0; first < used.length; first += 4) {
      const [a, b, c, d] = [0, 1, 2, 3].map((k) => used[first + k] ?? { values: used[first].values, weight: 0 });
      add(found, [a.values, b.values, c.values, d.values], [a.weight, b.weight, c.weight, d.weight]);
    }
    return found;
  }

  /**
   * @param {{nodes: number[], weights: number[]}} place
   * @param {number[]} times s
   * @returns {number[][]} east, north and up at each time
   */
  series(place, times) {
    const sums = this.modes.map((values) => [0, 1, 2].map((axis) =>
      place.nodes.reduce((sum, node, corner) => sum + place.weights[corner] * values[3 * node + axis], 0)));
    return times.map((t) => {
      const weights = this.weights(t);
      return [0, 1, 2].map((axis) => sums.reduce((sum, mode, i) => sum + weights[i] * mode[axis], 0));
    });
  }
}

/** Curves of two campaigns on nodes that both have, read together; the first one is drawn, the second beside it. */
export class Pair {
  /** @param {Curve} first @param {Curve} second */
  constructor(first, second) {
    this.first = first;
    this.second = second;
    this.errors = null;
  }

  /** @param {number} wanted of both together */
  async upTo(wanted) {
    const more = wanted - this.known[0];
    await Promise.all([this.first, this.second].map((curve) => curve.upTo(curve.modes.length + more)));
  }

  async withErrors() {}

  /** @param {number} known of both together, as `upTo` reads them */
  missing(known) {
    const more = known - this.known[0];
    return [this.first, this.second].reduce((sum, curve) => sum + curve.missing(curve.modes.length + more), 0);
  }

  /** @returns {[number, number]} */
  get known() { return [this.first.modes.length + this.second.modes.length, this.first.count + this.second.count]; }

  /** @param {number} t s @returns {Float64Array} (node, 3) */
  at(t) { return this.first.at(t); }

  /** @param {{nodes: number[], weights: number[]}} place @param {number[]} times s @returns {number[][]} */
  series(place, times) { return this.first.series(place, times); }
}

/** What one campaign's ground does less than another's. */
export class Difference extends Pair {
  /** @param {number} t s @returns {Float64Array} (node, 3) */
  at(t) {
    const found = this.first.at(t), less = this.second.at(t);
    for (let i = 0; i < found.length; i += 1) found[i] -= less[i];
    return found;
  }

  /** @param {{nodes: number[], weights: number[]}} place @param {number[]} times s @returns {number[][]} */
  series(place, times) {
    const less = this.second.series(place, times);
    return this.first.series(place, times).map((row, i) => row.map((v, axis) => v - less[i][axis]));
  }
}

/** @param {Float32Array} values (node, 3) */
function longest(values) {
  let most = 0;
  for (let i = 0; i < values.length; i += 3) {
    most = Math.max(most, values[i] ** 2 + values[i + 1] ** 2 + values[i + 2] ** 2);
  }
  return Math.sqrt(most);
}

/** @param {Float64Array} sum @param {Float32Array[]} parts four @param {number[]} weights four */
function add(sum, [a, b, c, d], [p, q, r, s]) {
  for (let i = 0; i < sum.length; i += 1) sum[i] += p * a[i] + q * b[i] + r * c[i] + s * d[i];
}

/** @param {Float64Array} values changed here @param {Float64Array | null | undefined} first */
export function less(values, first) {
  if (first) for (let i = 0; i < values.length; i += 1) values[i] -= first[i];
  return values;
}
