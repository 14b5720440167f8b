// @ts-check
/** Numbers and times as people read them. */

const PLAIN = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** @param {number | null | undefined} value */
export const count = (value) => (Number.isFinite(value) ? PLAIN.format(/** @type {number} */ (value)) : "–");

/** @param {number | null | undefined} value @param {number} [digits] @param {string} [unit] */
export const fixed = (value, digits = 2, unit = "") =>
  // a residual that is nothing has no sign
  Number.isFinite(value) ? /** @type {number} */ (value).toFixed(digits).replace(/^-(0\.?0*)$/, "$1") + unit : "–";

/** A message and what helps, as one sentence. @param {...(string | null | undefined)} parts */
export const sentence = (...parts) => parts.filter(Boolean).join("; ");

/** @param {[number, number] | null | undefined} limits of 95 % @param {number} digits */
export const interval = (limits, digits) =>
  (limits ? ` (${fixed(limits[0], digits)} to ${fixed(limits[1], digits)})` : "");

/** @param {number | null | undefined} value */
export const percent = (value) =>
  Number.isFinite(value) ? `${(100 * /** @type {number} */ (value)).toFixed(1)} %` : "–";

/** @param {number | null | undefined} value */
export const tiny = (value) =>
  Number.isFinite(value) ? /** @type {number} */ (value).toExponential(1) : "–";

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const s = /** @type {number} */ (seconds);
  if (s < 9.95) return `${s.toFixed(1)} s`;
  // rounded first, so that no part of it becomes a whole 60
  const whole = Math.round(s), minutes = Math.round(s / 60);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** @param {string | null} time */
export function ago(time) {
  if (!time) return "–";
  const seconds = (new Date(time).getTime() - Date.now()) / 1000;
  for (const [unit, size] of /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ (
    [["day", 86400], ["hour", 3600], ["minute", 60]]
  )) {
    if (Math.abs(seconds) >= size) return RELATIVE.format(Math.round(seconds / size), unit);
  }
  return "just now";
}

/** @param {string} time */
export const moment = (time) => new Date(time).toLocaleString("en", {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZoneName: "short",
});
