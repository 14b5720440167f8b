// @ts-check
/** Scales of colours: viridis, one for uncertainty, and blue to red with zero in the middle. */

const RAMPS = {
  one: ["440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"],
  slip: ["fffbe6", "fee9a8", "fdc968", "f99b3f", "e96a2b", "c43c2c", "8c1f3b", "561641"],
  two: ["2166ac", "67a9cf", "d1e5f0", "f7f7f7", "fddbc7", "ef8a62", "b2182b"],
};

/** @typedef {keyof typeof RAMPS} Ramp */

/** 256 colours, as an image holds them. @param {Ramp} name */
export function table(name) {
  const rgb = RAMPS[name].map((text) => [0, 2, 4].map((i) => parseInt(text.slice(i, i + 2), 16)));
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (rgb.length - 1), low = Math.min(Math.floor(at), rgb.length - 2);
    const [r, g, b] = [0, 1, 2].map((c) => Math.round(rgb[low][c] + (at - low) * (rgb[low + 1][c] - rgb[low][c])));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}

/** @param {number} c @returns {string} */
export const css = (c) => `rgb(${c & 255}, ${(c >> 8) & 255}, ${(c >> 16) & 255})`;
