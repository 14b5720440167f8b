// @ts-check
/** What damage was found in stored files, and what happens about it. */

import { h } from "/dashboard/dom.js";

const WHERE = { inversion: "an inversion", upload: "an uploaded file", model: "a cached mesh", campaign: "the campaign's store" };
const SHOWN = 5;

/** @param {any} data of the event `store.damaged` */
export function damageNote({ kind, index, files, again, hint }) {
  const where = kind === "group" ? `group ${index}` : /** @type {any} */ (WHERE)[kind] ?? kind;
  const then = again ? "It is computed again." : `What to do: ${hint}.`;
  const more = files.length > SHOWN ? `\nand ${files.length - SHOWN} more` : "";
  return h("div.note.bad", { role: "alert" },
    h("b", {}, `Damaged files in ${where}`), `${then}\n`,
    h("span.mono", {}, files.slice(0, SHOWN).join("\n")), more);
}
