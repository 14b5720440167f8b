// @ts-check
/** Second-order triangles of the ground: where a place lies in them. */

// a place may be this far outside a triangle, in its own coordinates
const TOLERANCE = 1e-9;

export class Surface {
  /**
   * @param {Float64Array} x (node,) m
   * @param {Float64Array} y (node,) m
   * @param {Int32Array} faces (face, 6) corners and midpoints in turn
   */
  constructor(x, y, faces) {
    this.x = x;
    this.y = y;
    this.faces = faces;
    const [west, east] = extent(x), [south, north] = extent(y);
    this.box = { west, east, south, north };
  }

  /**
   * @param {number} face @param {number} x @param {number} y
   * @returns {number[]} barycentric coordinates
   */
  local(face, x, y) {
    const [a, b, c] = [0, 2, 4].map((corner) => this.faces[6 * face + corner]);
    const ax = this.x[a] - this.x[c], ay = this.y[a] - this.y[c];
    const bx = this.x[b] - this.x[c], by = this.y[b] - this.y[c];
    const px = x - this.x[c], py = y - this.y[c];
    const area = ax * by - bx * ay;
    const first = (px * by - bx * py) / area, second = (ax * py - px * ay) / area;
    return [first, second, 1 - first - second];
  }

  /**
   * @param {number} x m @param {number} y m
   * @returns {{nodes: number[], weights: number[]} | null} null outside
   */
  locate(x, y) {
    let best = -1, inside = -TOLERANCE;
    for (let face = 0; face < this.faces.length / 6 && best < 0; face += 1) {
      if (Math.min(...this.local(face, x, y)) >= inside) best = face;
    }
    if (best < 0) return null;
    return {
      nodes: [...this.faces.subarray(6 * best, 6 * best + 6)],
      weights: quadratic(this.local(best, x, y)),
    };
  }

  /**
   * Find the pixels of every face once, row by row. Along a row each shape function is of
   * second order: two sums a pixel give the next value, and that exactly.
   * @param {(x: number, y: number) => number[]} toPixel
   * @param {(column: number, row: number) => [number, number]} toPlace
   * @param {number} width @param {number} height
   * @returns {Runs}
   */
  raster(toPixel, toPlace, width, height) {
    /** @type {Record<"starts" | "lengths" | "faces" | "weights", number[]>} */
    const found = { starts: [], lengths: [], faces: [], weights: [] };
    for (let face = 0; face < this.faces.length / 6; face += 1) {
      const corners = [0, 2, 4].map((corner) => this.faces[6 * face + corner])
        .map((node) => toPixel(this.x[node], this.y[node]));
      const [left, right] = extent(corners.map(([column]) => column));
      const [top, bottom] = extent(corners.map(([, row]) => row));
      if (right < 0 || bottom < 0 || left > width || top > height) continue;
      // the coordinates are linear in column and row
      const [origin, along, down] = [[0, 0], [1, 0], [0, 1]]
        .map(([column, row]) => this.local(face, ...toPlace(column + 0.5, row + 0.5)));
      const at = (/** @type {number} */ column, /** @type {number} */ row) => [0, 1, 2]
        .map((k) => origin[k] + (along[k] - origin[k]) * column + (down[k] - origin[k]) * row);
      const from = Math.max(0, Math.floor(left)), to = Math.min(width - 1, Math.floor(right));
      for (let row = Math.max(0, Math.floor(top)); row <= Math.min(height - 1, bottom); row += 1) {
        let first = from, last = to;
        while (first <= last && Math.min(...at(first, row)) < -TOLERANCE) first += 1;
        while (last > first && Math.min(...at(last, row)) < -TOLERANCE) last -= 1;
        if (first > last) continue;
        found.starts.push(row * width + first);
        found.lengths.push(last - first + 1);
        found.faces.push(face);
        const [a, b, c] = [0, 1, 2].map((step) => quadratic(at(first + step, row)));
        found.weights.push(...a, ...a.map((v, k) => b[k] - v), ...a.map((v, k) => c[k] - 2 * b[k] + v));
      }
    }
    return new Runs(found);
  }
}

/** Neighbouring pixels of one row and one face. */
export class Runs {
  /** @param {Record<"starts" | "lengths" | "faces" | "weights", number[]>} found */
  constructor({ starts, lengths, faces, weights }) {
    this.starts = Int32Array.from(starts);
    this.lengths = Int32Array.from(lengths);
    this.faces = Int32Array.from(faces);
    /** of six nodes at the first pixel, their first and their second differences */
    this.weights = Float32Array.from(weights);
  }

  /**
   * @param {number} run @param {number} step pixels from the first
   * @returns {number[]} weights of the six nodes
   */
  at(run, step) {
    return [0, 1, 2, 3, 4, 5].map((k) => [0, 6, 12].map((i) => this.weights[18 * run + i + k])
      .reduce((sum, v, i) => sum + v * [1, step, (step * (step - 1)) / 2][i], 0));
  }
}

/** Shape functions of corners and midpoints in turn. @param {number[]} local */
function quadratic([a, b, c]) {
  return [a * (2 * a - 1), 4 * a * b, b * (2 * b - 1), 4 * b * c, c * (2 * c - 1), 4 * c * a];
}

/** @param {ArrayLike<number>} values */
function extent(values) {
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < values.length; i += 1) {
    low = Math.min(low, values[i]);
    high = Math.max(high, values[i]);
  }
  return [low, high];
}
