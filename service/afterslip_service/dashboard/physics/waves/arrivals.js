// @ts-check
/** When the first P or S waves of a point arrive at the ground, through flat layers. */

/** @typedef {{thickness: number, speed: number}} Slab km, km/s */

/**
 * @param {any} model of a spec
 * @param {"vp" | "vs"} speed
 * @returns {{bottom: number, speed: number}[] | null} null where more than flat layers makes the rock
 */
export function layered(model, speed) {
  if (!model?.layers?.length || model.bodies?.length || model.grid || model.topography) return null;
  return model.layers.map((/** @type {any} */ layer) => ({ bottom: layer.bottom, speed: layer[speed] }));
}

/**
 * The earliest of the direct ray and those along the tops of faster layers below.
 * @param {{bottom: number, speed: number}[]} layers km, km/s
 * @param {number} depth km, of the source
 * @param {number} distance km, along the ground
 * @returns {number} s
 */
export function arrival(layers, depth, distance) {
  const above = /** @type {Slab[]} */ ([]), below = /** @type {Slab[]} */ ([]);
  let top = 0, first = direct([{ thickness: 0, speed: layers[0].speed }], distance);
  layers.forEach(({ bottom, speed }, i) => {
    // the last layer has no end
    const end = i === layers.length - 1 ? Infinity : bottom;
    const fastest = [...above, ...below].every((slab) => slab.speed < speed);
    if (above.length && top >= depth && fastest) first = Math.min(first, along(above, below, speed, distance));
    if (top < depth) above.push({ thickness: Math.min(end, depth) - top, speed });
    if (end > depth && end < Infinity) below.push({ thickness: end - Math.max(top, depth), speed });
    if (top <= depth && depth <= end) first = direct(above.length ? above : [{ thickness: 0, speed }], distance);
    top = end;
  });
  return first;
}

/** @param {Slab[]} above @param {number} distance @returns {number} s */
function direct(above, distance) {
  const fastest = Math.max(...above.map(({ speed }) => speed));
  let low = 0, high = 1 / fastest;
  for (let i = 0; i < 100; i += 1) {
    const middle = (low + high) / 2;
    if (reach(above, middle) < distance) low = middle;
    else high = middle;
  }
  // what the ray parameter is wrong by counts twice only
  return delay(above, low) + low * distance;
}

/** Down, along the top of a faster layer and up again. @param {Slab[]} above @param {Slab[]} below @param {number} speed @param {number} distance */
function along(above, below, speed, distance) {
  const p = 1 / speed, way = [...above, ...below, ...below];
  return reach(way, p) <= distance ? delay(way, p) + p * distance : Infinity;
}

/** Distance of a ray through slabs. @param {Slab[]} slabs @param {number} p s/km */
const reach = (slabs, p) => slabs.reduce((sum, { thickness, speed }) => sum + (thickness * p * speed) / Math.sqrt(1 - (p * speed) ** 2), 0);

/** Its time less that of its distance at 1 / p. @param {Slab[]} slabs @param {number} p s/km */
const delay = (slabs, p) => slabs.reduce((sum, { thickness, speed }) => sum + (thickness * Math.sqrt(1 - (p * speed) ** 2)) / speed, 0);
