"""Observed against predicted values, and residuals in units of their errors."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from afterslip.plot import maps
from afterslip.plot.style import FAINT, INK, SERIES_COLOURS, SOFT, new_figure, styled
from afterslip.result import TYPE_NAMES, fit_by_type, labels, normalised_residual

Float = NDArray[np.float64]


@styled
def misfit(result: xr.Dataset) -> Figure:
    """Observed against predicted, and the residuals in units of their errors.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says.
    """
    kinds = labels(result, "obs_type")
    figure = new_figure(3.3)
    left, right = figure.subplots(1, 2)
    names = list(dict.fromkeys(kinds.tolist()))
    _identity(left, result, kinds, names)
    _histogram(right, result, kinds, names)
    return figure


def _identity(
    ax: Axes, result: xr.Dataset, kinds: NDArray[np.str_], names: list[str]
) -> None:
    observed = np.asarray(result["observed"].values, dtype=np.float64)
    predicted = np.asarray(result["predicted"].values, dtype=np.float64)
    size = np.abs(np.concatenate([observed, predicted]))
    # linear around zero, logarithmic beyond: centimetres and tens of metres together
    bend = float(max(np.percentile(size, 20), 1e-4 * size.max(), 1e-9))
    bend = 10.0 ** np.ceil(np.log10(bend))
    ends = np.array([-1.5, 1.5]) * max(float(size.max()), bend)
    ax.plot(ends, ends, color=SOFT, linewidth=0.8, zorder=1)
    for name, colour in zip(names, SERIES_COLOURS * 4, strict=False):
        mine = kinds == name
        ax.plot(observed[mine], predicted[mine], maps.MARKERS.get(name, "^"),
                markersize=3, color=colour, alpha=0.75, markeredgewidth=0,
                linestyle="none", label=TYPE_NAMES.get(name, name))  # fmt: skip
    ax.set_xscale("symlog", linthresh=bend)
    ax.set_yscale("symlog", linthresh=bend)
    ticks = _symlog_ticks(bend, float(size.max()))
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.set(xlim=ends, ylim=ends, xlabel="observed (m)", ylabel="predicted (m)")
    ax.set_title("Observed and predicted")
    ax.grid(visible=True, color=FAINT, linewidth=0.5)
    ax.legend(loc="upper left")


def _symlog_ticks(bend: float, largest: float) -> Float:
    powers = np.arange(np.log10(bend), np.ceil(np.log10(largest)) + 1e-9)
    if powers.size > 4:
        powers = powers[::2]
    side = 10.0**powers
    return np.concatenate([-side[::-1], [0.0], side])


def _histogram(
    ax: Axes, result: xr.Dataset, kinds: NDArray[np.str_], names: list[str]
) -> None:
    z = normalised_residual(result)
    reach = float(np.clip(np.ceil(np.abs(z).max()), 3.0, 8.0))
    inside = np.clip(z, -reach, reach)
    bins = np.linspace(-reach, reach, 4 * int(reach) + 1)
    ax.hist([inside[kinds == n] for n in names], bins=list(bins), stacked=True,
            color=[c for _, c in zip(names, SERIES_COLOURS * 4, strict=False)],
            edgecolor="white", linewidth=0.4)  # fmt: skip
    x = np.linspace(-reach, reach, 200)
    bell = np.exp(-(x**2) / 2.0) / np.sqrt(2.0 * np.pi) * z.size * (bins[1] - bins[0])
    ax.plot(x, bell, color=INK, linewidth=1.0, label="errors as stated")
    ax.set(xlabel="residual / sigma", ylabel="number of data", xlim=(-reach, reach))
    ax.set_title("Residuals")
    everything = fit_by_type(result)[-1]
    beyond = int((np.abs(z) > reach).sum())
    note = (
        f"rms {everything.chi:.2f} σ; variance reduction "
        f"{100 * everything.variance_reduction:.2f} %"
    )
    if beyond:
        note += f"\n{beyond} beyond the axis, in the end bins"
    ax.set_ylim(top=1.3 * ax.get_ylim()[1])
    ax.legend(loc="upper center", title=note, title_fontsize=7.5)
