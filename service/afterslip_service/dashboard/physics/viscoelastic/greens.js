// @ts-check
/** Curves of displacement from `greens.zarr`, as `afterslip.GreensStore` evaluates them. */

import { Problem } from "/dashboard/api.js";
import { modeWeights, stepWeights } from "/dashboard/physics/viscoelastic/curve.js";
import { MeshError } from "/dashboard/physics/viscoelastic/mesh-error.js";
import { Curve } from "/dashboard/physics/viscoelastic/motion.js";
import { Surface } from "/dashboard/surface.js";
import { FetchStore, get, open, root, slice } from "/dashboard/vendor/libraries.js";

export const YEAR = 31557600;
// modes that are read before anything is drawn: two of the ground's motion at least
const FIRST = 5;

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
    /** by name, those that were opened @type {Map<string, Promise<any>>} */
    this.arrays = new Map();
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
    let array = this.arrays.get(name);
    // an array that stays open knows where its chunks lie
    if (!array) this.arrays.set(name, array = readable(open.v3(this.group.resolve(name), { kind: "array" })));
    try {
      const { attrs } = await array, found = await readable(get(await array, part));
      return { data: found.data ?? found, attrs };
    } catch (error) {
      this.arrays.delete(name);
      throw error;
    }
  }

  /** @param {number} source @returns {Promise<Curve>} of which the first modes are read */
  async curve(source) {
    const { data: counts } = await this.read("mode_count");
    const count = counts[source];
    if (!(count > 0)) throw new Problem(0, `The store lacks unit source ${source}. The command "afterslip fsck" says why.`);
    const parts = {
      count, until: this.until, spectral: this.spectral, weights: await this.weights(source, count),
      read: async (/** @type {number} */ mode) => {
        const { data } = await this.read("response", [source, mode, null, null]);
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
      const { data: steps } = await this.read("step_time", [slice(0, count)]);
      return (t) => stepWeights(steps.map((/** @type {number} */ s) => s * YEAR), t);
    }
    const [pairs, norm, shift] = await Promise.all([
      this.read("recurrence", [source, slice(0, count), null]),
      this.read("start_norm"), this.read("shift"),
    ]);
    return (t) => modeWeights(pairs.data, norm.data[source], shift.data[source], t);
  }

  /** @param {number} source @returns {Promise<MeshError | null>} */
  async error(source) {
    if (!this.moments) return null;
    const { data } = await this.read("space_error", [source, null, null]);
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
