// @ts-check
/** Numbers along an axis. */

// of them, about: with one alone no distance can be read
const LEAST = 3;

/** The largest of 1, 2 and 5 times a power of ten that an axis holds often enough. @param {number} length of the axis, where numbers have room */
export function tickStep(length) {
  const most = length / LEAST, power = 10 ** Math.floor(Math.log10(most));
  return [5 * power, 2 * power].find((step) => step <= most) ?? power;
}
