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
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
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
