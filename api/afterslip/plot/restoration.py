"""Slip that was put in, and what the inversion makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from afterslip.plot import maps
from afterslip.plot.resolution import colour, on_nodes, round_up, views
from afterslip.plot.style import FAINT, SLIP, WIDTH, new_figure, styled


@styled
def restoration(result: xr.Dataset, tests: xr.Dataset | None = None) -> Figure:
    """Draw slip and restored slip of each test side by side.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says.
    tests : as ``afterslip.restoration`` makes them; None: those of the result.
    """
    tests = result if tests is None else tests
    names = [str(name) for name in np.asarray(tests["test"].values)]
    pairs = [(row, view) for row in range(len(names)) for view in views(result)]
    panel = min((WIDTH - 0.9) / 2 - 0.2, 3.0)
    high = [view.height(panel) for _, view in pairs]
    figure = new_figure(sum(high) + 0.2, 2 * panel + 1.3)
    grid = figure.subplots(len(pairs), 2, squeeze=False, height_ratios=high)
    for axes, (row, view) in zip(grid, pairs, strict=True):
        both = ("test_slip", "test_restored")
        amounts = [_amount(result, tests[key].values[row]) for key in both]
        top = round_up(amounts)
        for ax, word, amount in zip(axes, ("put in", "restored"), amounts, strict=True):
            triangles = view.prepare(ax)
            image: Any = colour(ax, triangles, amount, SLIP, top)
            maps.clip_to_faults(ax, image, view.borders())
            view.decorate(ax)
            ax.set_title(f"{names[row]}, {word}")
        axes[1].set_ylabel("")
        axes[1].tick_params(labelleft=False)
        bar = figure.colorbar(image, ax=list(axes), shrink=0.75, aspect=24, pad=0.02)
        bar.outline.set_edgecolor(FAINT)
        bar.set_label("m")
    return figure


def _amount(result: xr.Dataset, slip: Any) -> Any:
    """(n_fault_node,) amount of slip, from that of the sources' cells."""
    own = result.assign(_shown=(("source",), np.asarray(slip, dtype=np.float64)))
    parts = [on_nodes(own, "_shown", component) for component in range(2)]
    there = [np.nan_to_num(part) for part in parts if part is not None]
    return np.sqrt(sum(part**2 for part in there))
