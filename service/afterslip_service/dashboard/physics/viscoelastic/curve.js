// @ts-check
/** Weights of a curve's modes; the same formulas as in `afterslip_common.curve`. */

import { EigenvalueDecomposition, Matrix } from "/dashboard/vendor/libraries.js";

/** @type {WeakMap<object, {rates: number[], factors: number[], vectors: number[][]}>} */
const decomposed = new WeakMap();

/**
 * y(t) = |c0| t phi_1(-t T) e_1 of Lanczos modes, after a 1 for the elastic one.
 * @param {Float64Array} pairs (mode, 2) alpha and beta; row 0 is not used
 * @param {number} norm of the first creep rate
 * @param {number} shift gamma of shift-invert, s; 0: polynomial
 * @param {number} t s
 * @returns {number[]}
 */
export function modeWeights(pairs, norm, shift, t) {
  const size = pairs.length / 2 - 1;
  if (!size) return [1];
  let parts = decomposed.get(pairs);
  if (!parts) decomposed.set(pairs, parts = decompose(pairs, size, shift));
  const { rates, factors, vectors } = parts;
  const growth = rates.map((rate, k) => {
    const decay = t * rate;
    const phi = decay < 1e-8 ? 1 - 0.5 * decay : -Math.expm1(-decay) / decay;
    return t * phi * factors[k] * vectors[0][k];
  });
  return [1, ...vectors.map((row) => norm * row.reduce((sum, v, k) => sum + v * growth[k], 0))];
}

/** @param {Float64Array} pairs @param {number} size @param {number} shift */
function decompose(pairs, size, shift) {
  const matrix = Matrix.zeros(size, size);
  for (let i = 0; i < size; i += 1) {
    matrix.set(i, i, pairs[2 * i + 2]);
    if (i + 1 < size) {
      matrix.set(i, i + 1, pairs[2 * i + 3]);
      matrix.set(i + 1, i, pairs[2 * i + 3]);
    }
  }
  const found = new EigenvalueDecomposition(matrix, { assumeSymmetric: true });
  // rounding may leave tiny negative values; nothing grows
  const values = found.realEigenvalues.map((/** @type {number} */ v) => (shift > 0 ? Math.max(v, 1e-14) : v));
  return {
    rates: values.map((v) => Math.max(shift > 0 ? (1 / v - 1) / shift : v, 0)),
    factors: values.map((v) => (shift > 0 ? 1 / v : 1)),
    vectors: found.eigenvectorMatrix.to2DArray(),
  };
}

/**
 * Linear interpolation between steps.
 * @param {Float64Array} steps s, increasing
 * @param {number} t s
 * @returns {number[]}
 */
export function stepWeights(steps, t) {
  const weights = Array(steps.length).fill(0);
  if (steps.length === 1) return [1];
  let after = 1;
  while (after < steps.length - 1 && steps[after] < t) after += 1;
  const part = (t - steps[after - 1]) / (steps[after] - steps[after - 1]);
  weights[after] = Math.min(Math.max(part, 0), 1);
  weights[after - 1] = 1 - weights[after];
  return weights;
}
