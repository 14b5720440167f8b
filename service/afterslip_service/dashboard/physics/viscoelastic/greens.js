// @ts-check
/** Curves of displacement from `greens.zarr`, as `afterslip.GreensStore` evaluates them. */

import { Problem } from "/dashboard/api.js";
import { modeWeights, stepWeights } from "/dashboard/physics/viscoelastic/curve.js";
import { Surface } from "/dashboard/surface.js";
import { FetchStore, get, open, root, slice } from "/dashboard/vendor/libraries.js";

export const YEAR = 31557600;

/**
 * @typedef {object} Source
 * @property {number} index
 * @property {string} label
 * @property {number} x m
 * @property {number} y m
 */

export class Greens {
  /** @param {any} group */
  constructor(group) {
    this.group = group;
    this.spectral = group.attrs.integrator !== "stepping";
    this.until = Number(group.attrs.until_yr) * YEAR;
    /** @type {any} */
    this.surface = null;
    /** @type {Source[]} */
    this.sources = [];
    /** s @type {number[]} */
    this.times = [];
    /** s, of the mesh's error; null where that was not estimated @type {number[] | null} */
    this.moments = null;
  }

  /** @param {string} path of the store @returns {Promise<Greens>} */
  static async open(path) {
    const files = (await whole(`${path}/checksums/zarr.json`))?.attributes?.files ?? null;
    const store = new FetchStore(new URL(path, location.href).href, {
      useSuffixRequest: true, fetch: (request) => chunk(request, files),
    });
    const greens = new Greens(await readable(open.v3(root(store), { kind: "group" })));
    const names = ["node_x", "node_y", "face_node_connectivity", "source_position",
      "source_patch", "source_fault", "source_component", "time"];
    const [x, y, faces, position, patch, fault, component, time] =
      await Promise.all(names.map((name) => greens.read(name)));
    greens.surface = new Surface(x.data, y.data, faces.data);
    greens.times = Array.from(time.data, (t) => t * YEAR);
    if (Object.keys(files ?? {}).some((file) => file.startsWith("error_time/"))) {
      const { data: moments } = await greens.read("error_time");
      greens.moments = Array.from(moments, (t) => t * YEAR);
    }
    const meaning = (/** @type {any} */ flags, /** @type {number} */ row) =>
      String(flags.attrs.flag_meanings).split(" ")[flags.data[row]];
    greens.sources = Array.from(fault.data, (_, row) => ({
      index: row,
      label: `${row} · ${meaning(fault, row)}, along strike ${patch.data[2 * row]}, `
        + `down dip ${patch.data[2 * row + 1]}, ${meaning(component, row)} slip`,
      x: position.data[3 * row],
      y: position.data[3 * row + 1],
    }));
    return greens;
  }

  /** @param {string} name @param {any[] | null} [part] @returns {Promise<{data: any, attrs: any}>} */
  async read(name, part = null) {
    const array = await readable(open.v3(this.group.resolve(name), { kind: "array" }));
    const found = await readable(get(array, part));
    return { data: found.data ?? found, attrs: array.attrs };
  }

  /** @param {number} source @returns {Promise<Curve>} */
  async curve(source) {
    const { data: counts } = await this.read("mode_count");
    const count = counts[source];
    if (!(count > 0)) throw new Problem(0, `The store lacks unit source ${source}. The command "afterslip fsck" says why.`);
    const { data: modes } = await this.read("response", [source, slice(0, count), null, null]);
    if (!modes.every(Number.isFinite)) {
      throw new Problem(0, `The response of unit source ${source} has holes. The command "afterslip fsck" says why.`);
    }
    let weights;
    if (this.spectral) {
      const [pairs, norm, shift] = await Promise.all([
        this.read("recurrence", [source, slice(0, count), null]),
        this.read("start_norm"), this.read("shift"),
      ]);
      weights = (/** @type {number} */ t) => modeWeights(pairs.data, norm.data[source], shift.data[source], t);
    } else {
      const { data: steps } = await this.read("step_time", [slice(0, count)]);
      weights = (/** @type {number} */ t) => stepWeights(steps.map((/** @type {number} */ s) => s * YEAR), t);
    }
    return new Curve(modes, count, weights, await this.error(source));
  }

  /** @param {number} source @returns {Promise<MeshError | null>} */
  async error(source) {
    if (!this.moments) return null;
    const { data } = await this.read("space_error", [source, null, null]);
    return data.every(Number.isFinite) ? new MeshError(data, this.moments) : null;
  }
}

/** Estimated error of the mesh: lengths, of the elastic displacement and of the change since. */
export class MeshError {
  /**
   * @param {Float32Array} values (moment, node), at the first moment of the elastic one
   * @param {number[]} moments s
   */
  constructor(values, moments) {
    this.values = values;
    this.moments = moments;
    this.size = values.length / moments.length;
  }

  /**
   * @param {number} t s
   * @param {boolean} change only of the change
   * @returns {number[]} weights of the moments
   */
  weights(t, change) {
    const { moments } = this, last = moments.length - 1;
    const found = moments.map(() => 0);
    // the change, from nothing; after the last moment as then
    const after = moments.findIndex((moment) => moment > t);
    if (after < 0) found[last] = last ? 1 : 0;
    else if (after > 0) {
      const part = (t - moments[after - 1]) / (moments[after] - moments[after - 1]);
      found[after - 1] = 1 - part;
      found[after] = part;
    }
    found[0] = change ? 0 : 1;
    return found;
  }

  /** @param {number} t s @param {boolean} change @returns {Float64Array} (node, 3), for maps of lengths */
  at(t, change) {
    const found = new Float64Array(3 * this.size);
    this.weights(t, change).forEach((weight, moment) => {
      if (weight === 0) return;
      for (let i = 0; i < this.size; i += 1) found[3 * i + 2] += weight * this.values[moment * this.size + i];
    });
    return found;
  }

  /** @param {{nodes: number[], weights: number[]}} place @param {number} t s @param {boolean} change */
  near(place, t, change) {
    return this.weights(t, change).reduce((total, weight, moment) => total + weight * Math.max(0,
      place.nodes.reduce((sum, node, corner) => sum + place.weights[corner] * this.values[moment * this.size + node], 0)), 0);
  }
}

/** Displacement per metre of slip of one unit source. */
export class Curve {
  /**
   * @param {Float32Array} modes (count, node, 3)
   * @param {number} count
   * @param {(t: number) => number[]} weights of the modes at a time in s
   * @param {MeshError | null} errors
   */
  constructor(modes, count, weights, errors) {
    this.errors = errors;
    this.modes = modes;
    this.weights = weights;
    this.size = modes.length / count;
  }

  /** @param {number} t s @returns {Float64Array} (node, 3) east, north, up */
  at(t) {
    const { modes, size } = this;
    const found = new Float64Array(size);
    this.weights(t).forEach((weight, mode) => {
      // a step's other steps have no part in it
      if (weight === 0) return;
      const start = mode * size;
      for (let i = 0; i < size; i += 1) found[i] += weight * modes[start + i];
    });
    return found;
  }

  /**
   * @param {{nodes: number[], weights: number[]}} place
   * @param {number[]} times s
   * @returns {number[][]} east, north and up at each time
   */
  series(place, times) {
    const sums = Array.from({ length: this.modes.length / this.size }, (_, mode) =>
      [0, 1, 2].map((axis) => place.nodes.reduce((sum, node, corner) =>
        sum + place.weights[corner] * this.modes[mode * this.size + 3 * node + axis], 0)));
    return times.map((t) => {
      const weights = this.weights(t);
      return [0, 1, 2].map((axis) => sums.reduce((sum, mode, i) => sum + weights[i] * mode[axis], 0));
    });
  }
}

/** What one campaign's ground does less than another's, on nodes that both have. */
export class Difference {
  /** @param {Curve} first @param {Curve} second */
  constructor(first, second) {
    this.first = first;
    this.second = second;
    this.errors = null;
  }

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

/**
 * Fetch a part of the store. Zarr takes a missing file for its fill value: that is true of
 * what describes the sources (all zeros are never written), and else a loss.
 * @param {Request} request
 * @param {Record<string, string> | null} files checksums of what no group writes; none in stores of 0.1.0
 */
async function chunk(request, files) {
  const [name, ...rest] = new URL(request.url).pathname.split("/greens.zarr/").pop()?.split("/") ?? "";
  const key = [name, ...rest].join("/"), filled = name.startsWith("source_") && rest[0] === "c";
  if (filled && files && !(key in files)) return new Response(null, { status: 404 });
  const answer = await fetch(request);
  if (answer.ok || (filled && !files && answer.status === 404)) return answer;
  const body = await answer.json().catch(() => null);
  throw new Problem(answer.status, body?.detail ?? `${key}: ${answer.statusText}`);
}

/** @param {string} path of a document; stores of 0.1.0 have no checksums */
async function whole(path) {
  const answer = await fetch(path);
  return answer.ok ? answer.json() : null;
}

/** @template T @param {Promise<T>} answer @returns {Promise<T>} */
async function readable(answer) {
  try {
    return await answer;
  } catch (error) {
    throw new Problem(0, `The Green's functions cannot be read: ${/** @type {Error} */ (error).message}`);
  }
}
