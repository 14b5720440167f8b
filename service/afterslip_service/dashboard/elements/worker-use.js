// @ts-check
/** What a worker's processes use of its machine, as the worker reports it. */

import { count, fixed } from "/dashboard/format.js";

const MIB = 1024 * 1024;

/** @param {number | null | undefined} bytes */
export const size = (bytes) => (bytes ? `${count(bytes / MIB)} MiB` : "–");

/** @param {number | undefined} busy @param {number | undefined} memory */
const used = (busy, memory) => [Number.isFinite(busy) && `${busy} %`, memory && size(memory)].filter(Boolean).join(", ") || "–";

/** The worker's own processes first, then the whole GPU; a dash is what the driver does not tell. @param {any} facts */
export function device(facts) {
  if (!facts.gpus?.length) return "CPU";
  const own = used(facts.gpu_process_utilization, facts.gpu_process_memory);
  return `${facts.gpus[0]}: ${own} (whole GPU ${used(facts.gpu_utilization, facts.gpu_memory_used)})`;
}

/** All of it in one line; empty where nothing is reported. @param {any} facts */
export function use(facts) {
  const parts = [];
  if (Number.isFinite(facts.cpu_percent)) parts.push(`CPU ${fixed(facts.cpu_percent, 0, " %")}`);
  if (facts.memory_used) parts.push(`memory ${size(facts.memory_used)}`);
  if (facts.gpus?.length) parts.push(device(facts));
  return parts.join(" · ");
}
