// @ts-check
/** Lines of equal value on triangles. */

/** Round steps between contours, at most so many. @param {number} most @param {number} [count] */
export function step(most, count = 6) {
  if (!(most > 0)) return 0;
  const rough = most / count, power = 10 ** Math.floor(Math.log10(rough));
  return /** @type {number} */ ([1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * (1 - 1e-9)));
}

/**
 * @param {number[][]} nodes (node, 2)
 * @param {number[][]} triangles (triangle, 3)
 * @param {number[]} values at the nodes
 * @param {number} level
 * @returns {number[][][]} pieces of a line, each two points
 */
export function contour(nodes, triangles, values, level) {
  const found = [];
  for (const corners of triangles) {
    const points = [];
    for (let i = 0; i < 3; i += 1) {
      const a = corners[i], b = corners[(i + 1) % 3];
      const [va, vb] = [values[a] - level, values[b] - level];
      // a node on the level belongs to the side above
      if ((va < 0) === (vb < 0)) continue;
      const part = va / (va - vb);
      points.push([0, 1].map((axis) => nodes[a][axis] + part * (nodes[b][axis] - nodes[a][axis])));
    }
    if (points.length === 2) found.push(points);
  }
  return found;
}
