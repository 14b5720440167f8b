// @ts-check
/** Drawings of Green's functions for print. */

import { css, table } from "/dashboard/elements/colours.js";
import { standalone, styled, withField } from "/dashboard/figure.js";

/** Each map as it is shown, with its scale and the name of its file. @param {import("/dashboard/views/greens.js").GreensView} view */
export function figures(view) {
  const { campaign: { name }, greens, legend, when, axis } = view, second = view.others[Number(view.other.field.value) - 1]?.name;
  const words = [...legend.querySelectorAll(":scope > span:not(.all)")].map(({ textContent }) => textContent ?? "");
  const keys = /** @type {[SVGElement, string][]} */ ([...legend.querySelectorAll(".all svg")].map((drawing) => [drawing, drawing.parentElement?.textContent ?? ""]));
  const colours = view.unknown() ? [] : Array.from(table(axis >= 3 ? "one" : "two"), css);
  return view.maps.map((map, i) => {
    const shown = i ? second : name, figure = standalone(map.over, `Green's functions of ${shown}`);
    withField(figure, map.canvas, colours, words,
      [shown, greens.sources[map.source.index].label, `${when.value} after the event`].join(" · "), keys.map(([drawing, said]) => ({ mark: styled(drawing), words: said })));
    return { figure, name: i ? `${name}-${second}` : name };
  });
}
