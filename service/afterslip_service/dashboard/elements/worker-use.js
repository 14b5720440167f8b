// @ts-check
/** What a worker's processes use of its machine, as the worker reports it. */

import { count, fixed } from "/dashboard/format.js";

const MIB = 1024 * 1024;

/** @param {number | null | undefined} bytes */
export const size = (bytes) => (bytes ? `${count(bytes / MIB)} MiB` : "–");

/** @param {any} facts */
export function device({ gpus, gpu_utilization: use, gpu_memory_used: memory }) {
  if (!gpus?.length) return "CPU";
  const parts = [gpus[0]];
  if (Number.isFinite(use)) parts.push(`${use} %`);
  if (memory) parts.push(size(memory));
  return parts.join(", ");
}

/** All of it in one line; empty where nothing is reported. @param {any} facts */
export function use(facts) {
  const parts = [];
  if (Number.isFinite(facts.cpu_percent)) parts.push(`CPU ${fixed(facts.cpu_percent, 0, " %")}`);
  if (facts.memory_used) parts.push(`memory ${size(facts.memory_used)}`);
  if (facts.gpus?.length) parts.push(device(facts));
  return parts.join(" · ");
}
