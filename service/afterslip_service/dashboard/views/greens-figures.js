// @ts-check
/** Drawings of Green's functions for print. */

import { css, table } from "/dashboard/elements/colours.js";
import { standalone, withField } from "/dashboard/figure.js";

/** Each map as it is shown, with its scale and the name of its file. @param {import("/dashboard/views/greens.js").GreensView} view */
export function figures(view) {
  const { campaign: { name }, greens, legend, when, axis } = view, second = view.others[Number(view.other.field.value) - 1]?.name;
  const words = [...legend.children].map(({ textContent }) => textContent ?? "");
  return view.maps.map((map, i) => {
    const shown = i ? second : name, figure = standalone(map.over, `Green's functions of ${shown}`);
    withField(figure, map.canvas, Array.from(table(axis >= 3 ? "one" : "two"), css), words.slice(0, 3),
      [shown, greens.sources[map.source.index].label, `${when.value} after the event`, ...words.slice(3)].join(" · "));
    return { figure, name: i ? `${name}-${second}` : name };
  });
}
