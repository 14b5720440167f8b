"""Moment through time, with its band, beside that of rock that does not flow."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from afterslip.plot.style import BLUE, FAINT, INK, SKY, new_figure, styled


@styled
def moment_history(result: xr.Dataset) -> Figure:
    """Moment of the slip so far against time.

    Slip grows at a steady rate within an interval, so the lines are straight there.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says, of an inversion with
        ``increments``.
    """
    figure = new_figure(3.2)
    ax = figure.subplots()
    time = np.asarray(result["increment_end"].values, dtype=np.float64)
    moment = np.asarray(result["moment_history"].values, dtype=np.float64)
    elastic = np.asarray(result["moment_history_elastic"].values, dtype=np.float64)
    if "moment_history_interval" in result:
        low, high = np.asarray(result["moment_history_interval"].values).T
        ax.fill_between(
            time, low, high, color=SKY, alpha=0.35, linewidth=0, label="95 %"
        )
    ax.plot(time, moment, color=BLUE, marker="o", markersize=3, label="viscoelastic")
    ax.plot(
        time, elastic, color=INK, linewidth=0.9, linestyle=(0, (4, 2)), label="elastic"
    )
    ax.set_xlabel("years after the event")
    ax.set_ylabel("moment (N m)")
    ax.set_ylim(bottom=0.0)
    ax.grid(visible=True, color=FAINT, linewidth=0.5)
    ax.legend(frameon=False)
    return figure
