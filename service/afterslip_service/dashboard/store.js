// @ts-check
/** `greens.zarr` of a campaign, read part by part over HTTP. */

import { Problem } from "/dashboard/api.js";
import { FetchStore, get, open, root } from "/dashboard/vendor/libraries.js";

/**
 * @typedef {object} Source
 * @property {number} index
 * @property {string} label
 * @property {string} fault
 * @property {number[]} patch along strike, down dip
 * @property {string} component of slip
 * @property {number} x m
 * @property {number} y m
 * @property {number} z m, up
 */

export class Store {
  /** @param {any} group @param {Record<string, string> | null} files checksums of what no group writes; none in stores of 0.1.0 */
  constructor(group, files) {
    this.group = group;
    this.attrs = group.attrs;
    this.files = files;
    /** by name, those that were opened @type {Map<string, Promise<any>>} */
    this.arrays = new Map();
  }

  /** @param {string} path of the store @returns {Promise<Store>} */
  static async open(path) {
    const files = (await whole(`${path}/checksums/zarr.json`))?.attributes?.files ?? null;
    const store = new FetchStore(new URL(path, location.href).href, {
      useSuffixRequest: true, fetch: (request) => chunk(request, files),
    });
    return new Store(await readable(open.v3(root(store), { kind: "group" })), files);
  }

  /** Whether it holds an array that is written when it is created. @param {string} name */
  has(name) { return Object.keys(this.files ?? {}).some((file) => file.startsWith(`${name}/`)); }

  /** @param {string} name an array, which stays open: it knows where its chunks lie @returns {Promise<any>} */
  array(name) {
    let array = this.arrays.get(name);
    if (!array) {
      array = readable(open.v3(this.group.resolve(name), { kind: "array" }));
      this.arrays.set(name, array);
      array.catch(() => this.arrays.delete(name));
    }
    return array;
  }

  /** @param {string} name @param {any[] | null} [part] @returns {Promise<{data: any, attrs: any}>} */
  async read(name, part = null) {
    try {
      const array = await this.array(name), found = await readable(get(array, part));
      return { data: found.data ?? found, attrs: array.attrs };
    } catch (error) {
      this.arrays.delete(name);
      throw error;
    }
  }

  /** @returns {Promise<Source[]>} */
  async sources() {
    const names = ["source_position", "source_patch", "source_fault", "source_component"];
    const [position, patch, fault, component] = await Promise.all(names.map((name) => this.read(name)));
    const meaning = (/** @type {any} */ flags, /** @type {number} */ row) =>
      String(flags.attrs.flag_meanings).split(" ")[flags.data[row]];
    return Array.from(fault.data, (_, row) => {
      const [along, down] = patch.data.slice(2 * row, 2 * row + 2), [x, y, z] = position.data.slice(3 * row, 3 * row + 3);
      const named = meaning(fault, row), slip = meaning(component, row);
      return {
        index: row, fault: named, patch: [along, down], component: slip, x, y, z,
        label: `${row} · ${named}, along strike ${along}, down dip ${down}, ${slip} slip`,
      };
    });
  }
}

/**
 * Fetch a part of the store. Zarr takes a missing file for its fill value: that is true of
 * what describes sources and stations (all zeros are never written), and else a loss.
 * @param {Request} request
 * @param {Record<string, string> | null} files
 */
async function chunk(request, files) {
  const [name, ...rest] = new URL(request.url).pathname.split("/greens.zarr/").pop()?.split("/") ?? "";
  const key = [name, ...rest].join("/"), filled = /^(source|station)_/.test(name) && rest[0] === "c";
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
