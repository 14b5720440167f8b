"""Models of the earth beside each other: evidence, and prediction of data held out."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from afterslip.plot.style import BLUE, FAINT, INK, VERMILLION, new_figure, styled


@styled
def comparison(found: xr.Dataset) -> Figure:
    """Draw evidence and held-out score of each model, with their errors.

    Parameters
    ----------
    found : as ``afterslip compare-rheologies`` writes it.
    """
    names = [str(name) for name in found["model"].values]
    place = np.arange(len(names))[::-1]
    figure = new_figure(1.3 + 0.32 * len(names))
    left, right = figure.subplots(1, 2, sharey=True)
    left.errorbar(
        found["log_evidence"].values,
        place,
        xerr=found["log_evidence_error"].values,
        fmt="o",
        color=BLUE,
        capsize=3,
    )
    left.set_yticks(place, names)
    left.set_ylim(-0.6, len(names) - 0.4)
    left.set_xlabel("log evidence, less that of the best")
    left.axvline(0.0, color=INK, linewidth=0.8)
    right.errorbar(
        found["score_less_best"].values,
        place,
        xerr=found["score_less_best_error"].values,
        fmt="o",
        color=VERMILLION,
        capsize=3,
    )
    right.axvline(0.0, color=INK, linewidth=0.8)
    right.set_xlabel("held-out misfit, more than the best")
    for ax in (left, right):
        ax.grid(visible=True, axis="x", color=FAINT, linewidth=0.5)
    return figure
