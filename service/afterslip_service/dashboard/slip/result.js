// @ts-check
/** An inversion's result, read here from its NetCDF file. */

import { Problem } from "/dashboard/api.js";
import { File } from "/dashboard/vendor/netcdf.js";

const KM = 1e3;
const YEAR = 365.25 * 86400;
const COMPONENTS = ["east", "north", "up", "line of sight"];

/**
 * @typedef {object} Datum
 * @property {string} component
 * @property {number} axis 0, 1, 2: east, north, up; 3: along a line of sight
 * @property {number} epoch yr
 * @property {number} observed m
 * @property {number} predicted m
 * @property {number} sigma m
 * @typedef {{name: string, x: number, y: number, data: Datum[]}} Station in km
 */

export class SlipResult {
  /** @param {any} inversion as the API shows it @param {ArrayBuffer} content */
  constructor(inversion, content) {
    this.inversion = inversion;
    this.file = new File(content, "result.nc");
    const [x, y] = ["fault_x", "fault_y"].map((name) => this.read(name).map((/** @type {number} */ v) => v / KM));
    /** (node, 2) km @type {number[][]} */
    this.nodes = x.map((/** @type {number} */ v, /** @type {number} */ i) => [v, y[i]]);
    /** (triangle, 3) @type {number[][]} */
    this.triangles = this.#within(rows(this.read("fault_triangles"), 3));
    /** (node, 2) m @type {number[][]} */
    this.slip = rows(this.read("fault_slip"), 2);
    const z = this.read("fault_z");
    /** (node, 3) km, z up @type {number[][]} */
    this.points = this.nodes.map(([east, north], i) => [east, north, z[i] / KM]);
    /** of the campaign's model @type {any} */
    this.frame = null;
    const [strike, updip] = ["fault_strike", "fault_updip"].map((name) => rows(this.read(name), 3));
    /** (node, 2) m, horizontal part of the slip of the side above @type {number[][]} */
    this.vectors = this.slip.map(([s, d], i) => [0, 1].map((axis) => s * strike[i][axis] + d * updip[i][axis]));
    this.stations = this.#stations();
    this.epochs = [...new Set(this.stations.flatMap(({ data }) => data.map(({ epoch }) => epoch)))].sort((a, b) => a - b);
    this.sources = this.#sources();
  }

  /** @param {any} inversion @returns {Promise<SlipResult>} */
  static async open(inversion) {
    const answer = await fetch(inversion.links.result);
    if (!answer.ok) {
      const body = await answer.json().catch(() => null);
      throw new Problem(answer.status, body?.detail ?? answer.statusText);
    }
    try {
      return new SlipResult(inversion, await answer.arrayBuffer());
    } catch (error) {
      throw new Problem(0, `The result of ${inversion.name} cannot be read: ${/** @type {Error} */ (error).message}`);
    }
  }

  /** @param {string} name @returns {any} values in C order */
  read(name) { return this.file.get(name).value; }

  /**
   * Triangles of the faults: the mesh goes on beyond them, and slip falls to zero there.
   * @param {number[][]} triangles (triangle, 3)
   */
  #within(triangles) {
    const names = ["fault_along", "fault_down", "fault_index", "fault_length", "fault_width"];
    if (!names.every((name) => this.has(name))) return triangles;
    const [along, down, fault, length, width] = names.map((name) => this.read(name));
    const inside = (/** @type {number} */ node) => {
      const [l, w] = [length[fault[node]], width[fault[node]]], edge = 1e-6 * Math.max(l, w);
      return along[node] >= -edge && along[node] <= l + edge && down[node] >= -edge && down[node] <= w + edge;
    };
    const within = triangles.filter((corners) => corners.every(inside));
    return within.length ? within : triangles;
  }

  /** @param {string} name */
  has(name) { return this.file.keys.includes(name); }

  /**
   * A value at each node of the fault.
   * @param {string} name of `SHADES`
   * @returns {number[]}
   */
  field(name) {
    if (name === "interval") return rows(this.read("fault_slip_interval"), 2).map(([low, high]) => high - low);
    if (name === "exceeds") return this.read("fault_slip_exceeds");
    return this.slip.map(([s, d]) => Math.hypot(s, d));
  }

  /**
   * Predicted displacement at a station through time.
   * @param {number} station
   * @returns {{times: number[], values: number[][], unit: string}} values (time, 3) m
   */
  series(station) {
    const years = [...this.read("time")], all = this.read("series"), count = this.stations.length;
    // a rupture is followed through seconds
    const [unit, scale] = this.has("moment_rate") ? ["s", YEAR] : ["yr", 1];
    return {
      times: years.map((t) => scale * t),
      unit,
      values: years.map((/** @type {number} */ _, /** @type {number} */ t) => [0, 1, 2].map((axis) => all[3 * (t * count + station) + axis])),
    };
  }

  /** What was tried, and what was chosen. */
  scores() {
    const of = (/** @type {string} */ name) => (this.has(name) ? [...this.read(name)] : []);
    const { smoothness, sparsity } = this.inversion.summary ?? {};
    return {
      smoothness: of("cv_smoothness"), sparsity: of("cv_sparsity"), score: of("cv_score"), error: of("cv_score_se"),
      chosen: { smoothness: Number(smoothness), sparsity: Number(sparsity) },
    };
  }

  /** @returns {Station[]} */
  #stations() {
    const [x, y] = ["station_x", "station_y"].map((name) => this.read(name));
    const stations = this.read("station").map((/** @type {string} */ name, /** @type {number} */ i) =>
      ({ name, x: x[i] / KM, y: y[i] / KM, data: [] }));
    const [where, axes, epochs, observed, predicted, sigma] = ["obs_station", "obs_component", "obs_epoch", "observed", "predicted", "sigma"]
      .map((name) => this.read(name));
    // of series of ground motion; the page shows what stays
    const seconds = this.has("obs_time") ? this.read("obs_time") : [];
    for (let i = 0; i < where.length; i += 1) {
      if (Number.isFinite(seconds[i])) continue;
      const axis = Number(axes[i]);
      stations[Number(where[i])].data.push({
        axis, component: COMPONENTS[axis], epoch: epochs[i], observed: observed[i], predicted: predicted[i], sigma: sigma[i],
      });
    }
    return stations;
  }

  /** Places of the unit sources, one for all components, with the least resolution there. */
  #sources() {
    const places = rows(this.read("source_position"), 3), resolution = this.read("resolution");
    const found = new Map();
    places.forEach(([x, y], i) => {
      const key = `${Math.round(x)} ${Math.round(y)}`, known = found.get(key);
      found.set(key, { x: x / KM, y: y / KM, resolution: Math.min(known?.resolution ?? 1, resolution[i]) });
    });
    return [...found.values()];
  }
}

/** @param {any} values @param {number} width @returns {any[][]} */
function rows(values, width) {
  return Array.from({ length: values.length / width }, (_, i) =>
    Array.from({ length: width }, (__, k) => values[width * i + k]));
}
