// @ts-check
/** Slopes of the cubic spline through even samples, not-a-knot, as Python's velocities are. */

/**
 * @param {ArrayLike<number>} values samples of many series, one after the other
 * @param {number} count samples of each, 4 at least
 * @param {number} step between samples
 * @returns {Float32Array} slopes at the samples
 */
export function slopes(values, count, step) {
  const found = new Float32Array(values.length), right = new Float64Array(count);
  // the matrix has 1 2 in its first row, 1 4 1 between and 2 1 in its last one
  const upper = new Float64Array(count);
  upper[0] = 2;
  for (let i = 1; i < count - 1; i += 1) upper[i] = 1 / (4 - upper[i - 1]);
  const last = 1 - 2 * upper[count - 2];
  for (let from = 0; from < values.length; from += count) {
    const rise = (/** @type {number} */ i) => (values[from + i + 1] - values[from + i]) / step;
    right[0] = (5 * rise(0) + rise(1)) / 2;
    for (let i = 1; i < count - 1; i += 1) right[i] = (3 * (rise(i - 1) + rise(i)) - right[i - 1]) * upper[i];
    let slope = ((5 * rise(count - 2) + rise(count - 3)) / 2 - 2 * right[count - 2]) / last;
    found[from + count - 1] = slope;
    for (let i = count - 2; i >= 0; i -= 1) {
      slope = right[i] - upper[i] * slope;
      found[from + i] = slope;
    }
  }
  return found;
}
