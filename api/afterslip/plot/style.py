"""One look for all figures: sizes, type, colours; no state of pyplot is touched."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

WIDTH = 7.2
"""Width of a figure in inches: a column of the report."""
DPI = 160

INK = "#1f2328"
SOFT = "#6e7781"
FAINT = "#d0d7de"
# Okabe & Ito's palette: distinct for all common kinds of colour vision
BLUE = "#0072b2"
VERMILLION = "#d55e00"
GREEN = "#009e73"
PURPLE = "#cc79a7"
SKY = "#56b4e9"
ORANGE = "#e69f00"
SERIES_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)

RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "legend.fontsize": 7.5,
    "legend.frameon": True,
    "legend.framealpha": 0.92,
    "legend.edgecolor": FAINT,
    "legend.fancybox": False,
    "lines.linewidth": 1.4,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "mathtext.default": "regular",
}


def _from_white(name: str, start: float) -> LinearSegmentedColormap:
    base = mpl.colormaps[name]
    colours = base(np.linspace(start, 0.94, 240))
    ramp = np.linspace(np.ones(4), colours[0], 16, endpoint=False)
    return LinearSegmentedColormap.from_list(f"slip_{name}", np.vstack([ramp, colours]))


# lightness falls steadily from white, so it reads in grey and for all eyes
SLIP = _from_white("magma_r", 0.04)
SHARE = mpl.colormaps["cividis"]

P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Make a figure under the settings above."""

    @functools.wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with mpl.rc_context(RC):
            return draw(*args, **kwargs)

    return inside


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """Return an empty figure that belongs to no window; sizes in inches."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure, its kind by the file's suffix; returns the path."""
    path = Path(path)
    with mpl.rc_context(RC):
        figure.savefig(path, dpi=DPI)
    return path


def nice_step(largest: float, parts: int = 6) -> float:
    """1, 2 or 5 times a power of ten that cuts ``largest`` into about ``parts``."""
    if not np.isfinite(largest) or largest <= 0.0:
        return 1.0
    raw = largest / parts
    power = 10.0 ** np.floor(np.log10(raw))
    best = min((1.0, 2.0, 5.0, 10.0), key=lambda s: abs(np.log(s * power / raw)))
    return float(best * power)


def metres(value: float) -> str:
    """Write a length as people say it: ``20 m``, ``5 cm``, ``3 mm``."""
    if value >= 1.0:
        return f"{value:g} m"
    if value >= 0.01:
        return f"{value * 100:g} cm"
    return f"{value * 1000:g} mm"
