"""How smoothness and sparsity were chosen: the score of cross-validation."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from afterslip.plot.style import FAINT, INK, SOFT, new_figure, styled

Float = NDArray[np.float64]

FAR = 60.0
"""Scores beyond this multiple of the least are outside of the figure."""


def _column(result: xr.Dataset, name: str) -> Float:
    return np.asarray(result[name].values, dtype=np.float64)


@styled
def cv_curve(result: xr.Dataset) -> Figure:
    """Score against smoothness, a line for each sparsity, and the choice.

    Bars are one standard error over the folds; the dotted line is the least
    score plus its standard error, the level of the one-standard-error rule.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says.
    """
    # without cross-validation there is a point, but no score
    scored = np.isfinite(np.asarray(result["cv_score"].values, dtype=np.float64))
    result = result.isel({result["cv_score"].dims[0]: scored})
    lam, mu = _column(result, "cv_smoothness"), _column(result, "cv_sparsity")
    swap = np.unique(lam).size < np.unique(mu).size
    across, family = (mu, lam) if swap else (lam, mu)
    symbols = ("μ", "λ") if swap else ("λ", "μ")
    figure = new_figure(3.5)
    ax = figure.add_subplot()
    if across.size == 0:
        text = "smoothness and sparsity were given, not chosen"
        ax.text(0.5, 0.5, text, ha="center", color=SOFT, transform=ax.transAxes)
        ax.set_axis_off()
        return figure
    position = _positions(across)
    _lines(ax, result, position, family, symbols[1])
    _chosen(ax, result, across, position, family, swap=swap)
    _axis(ax, across, position)
    word = "sparsity" if swap else "smoothness"
    ax.set_xlabel(f"{word} {symbols[0]}")
    ax.set_ylabel("held-out misfit\n(mean square of residual / sigma)")
    folds = result.attrs.get("folds")
    title = "Cross-validation" + (f", {int(folds)} folds" if folds else "")
    ax.set_title(f"{title} by station")
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


def _positions(values: Float) -> Float:
    """Logarithms; zero stands one step below the least positive value."""
    positive = values[values > 0.0]
    if positive.size == 0:
        return np.zeros_like(values)
    logs = np.log10(np.where(values > 0.0, values, positive.min()))
    steps = np.diff(np.unique(np.round(logs, 9)))
    below = float(steps.min()) if steps.size else 1.0
    return np.where(values > 0.0, logs, logs.min() - below)


def _lines(
    ax: Axes, result: xr.Dataset, position: Float, family: Float, symbol: str
) -> None:
    score, error = _column(result, "cv_score"), _column(result, "cv_score_se")
    kinds = np.unique(family)
    apart = _apart(position, kinds)
    # what is far worse than the best only shows that it is: no bars
    top = FAR * float(np.nanmin(score))
    error = np.where(score > top, np.nan, error)
    colours = colormaps["viridis"](np.linspace(0.0, 0.9, kinds.size))
    for i, (value, colour) in enumerate(zip(kinds, colours, strict=True)):
        rows = np.flatnonzero(family == value)
        rows = rows[np.argsort(position[rows])]
        shift = apart * (i - (kinds.size - 1) / 2.0)
        ax.errorbar(
            position[rows] + shift, score[rows], error[rows], color=colour, marker="o",
            markersize=3, elinewidth=0.8, capsize=2, label=f"{symbol} = {value:.3g}",
        )  # fmt: skip
    least = int(np.nanargmin(score))
    ax.axhline(score[least] + error[least], color=SOFT, linewidth=0.8, linestyle=":",
               label="least + 1 s.e.")  # fmt: skip
    finite = score[np.isfinite(score) & (score > 0.0)]
    if finite.size and 12.0 * finite.min() < finite.max():
        ax.set_yscale("log")
        ax.set_ylim(0.7 * finite.min(), min(1.3 * finite.max(), top))
    ax.grid(visible=True, color=FAINT, linewidth=0.5)


def _apart(position: Float, kinds: Float) -> float:
    """Return how far bars of two families stand apart, lest they hide each other."""
    return 0.04 * (float(np.ptp(position)) or 1.0) / max(4, kinds.size)


def _chosen(
    ax: Axes, result: xr.Dataset, across: Float, position: Float, family: Float,
    *, swap: bool,
) -> None:  # fmt: skip
    score = _column(result, "cv_score")
    names = ("sparsity", "smoothness") if swap else ("smoothness", "sparsity")
    want = [float(result.attrs[n]) for n in names if n in result.attrs]
    if len(want) < 2:
        return
    close = np.isclose(across, want[0], rtol=1e-6) & np.isclose(family, want[1])
    if not close.any():
        return
    row = int(np.flatnonzero(close)[0])
    kinds = np.unique(family)
    step = float(np.searchsorted(kinds, family[row])) - (kinds.size - 1) / 2.0
    shift = _apart(position, kinds) * step
    ax.plot(
        position[row] + shift, score[row], "*", markersize=14, markeredgecolor=INK,
        markerfacecolor="#ffd33d", markeredgewidth=0.8, linestyle="none", zorder=6,
        label=f"chosen: {score[row]:.3g}",
    )  # fmt: skip


def _axis(ax: Axes, across: Float, position: Float) -> None:
    """Powers of ten as ticks, and a plain 0 where zero was tried."""
    positive = position[across > 0.0]
    ticks, texts = [], []
    if positive.size:
        span = np.arange(np.ceil(positive.min()), np.floor(positive.max()) + 1)
        if span.size == 0:
            ticks, texts = [positive.min()], [f"{10 ** positive.min():.3g}"]
        for power in span[:: max(1, span.size // 8)]:
            ticks.append(power)
            texts.append(f"$10^{{{int(power)}}}$")
    if (across == 0.0).any():
        ticks.append(float(position[across == 0.0][0]))
        texts.append("0")
    ax.set_xticks(ticks, texts)
