// @ts-check
/** Estimated error of the mesh, read from `greens.zarr`. */

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
