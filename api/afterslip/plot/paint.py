"""Slip on the triangles of a fault: colour, contours, arrows; in a map or a plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.patheffects as path_effects
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.tri import Triangulation
from numpy.typing import NDArray

from afterslip.plot.maps import clip_to_faults
from afterslip.plot.style import INK, SLIP, nice_step

Float = NDArray[np.float64]

HALO = [path_effects.withStroke(linewidth=2.2, foreground="white")]
LEAST = 0.17
"""Share of the largest slip from which an arrow is drawn."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """A fault, or several, as they lie on the paper.

    Attributes
    ----------
    triangles : in the coordinates of the axes.
    borders : around the slipping rectangles, in the coordinates of the axes.
    stretch : length of a unit of y over that of x on the paper.
    motion : (n_node, 2) m, of the hanging wall, rightwards and upwards on paper.
    size : (n_node,) m, amount of slip.
    levels : contours, m; the last is the top of the colour scale.
    peak : largest slip of all faults, m.
    """

    triangles: Triangulation
    borders: Sequence[Float]
    stretch: float
    motion: Float
    size: Float
    levels: Float
    peak: float

    @property
    def nodes(self) -> NDArray[np.int64]:
        """Nodes that have a triangle here."""
        return np.unique(np.asarray(self.triangles.triangles, dtype=np.int64))


def contour_levels(peak: float) -> Float:
    """Return about six round values from zero to the peak or a little above."""
    step = nice_step(peak, 6)
    return np.asarray(np.arange(0.0, peak + step, step))


def colour(ax: Axes, canvas: Canvas) -> Any:
    """Paint slip; returns what a colour bar needs."""
    image = ax.tripcolor(
        canvas.triangles,
        canvas.size,
        cmap=SLIP,
        vmin=0.0,
        vmax=canvas.levels[-1],
        shading="gouraud",
    )
    image.set_zorder(2)
    clip_to_faults(ax, image, canvas.borders)
    return image


def contours(ax: Axes, canvas: Canvas, symbols: Float) -> Float:
    """Draw contour lines; returns (n, 2) where their labels stand.

    Parameters
    ----------
    symbols : (n, 2), places of what labels must not cover, beside border and peak.
    """
    most = float(canvas.size[canvas.nodes].max())
    inner = canvas.levels[1:][canvas.levels[1:] < most]
    if inner.size == 0:
        return np.empty((0, 2))
    lines = ax.tricontour(
        canvas.triangles,
        canvas.size,
        levels=inner,
        colors=INK,
        linewidths=0.55,
        alpha=0.55,
    )
    # a label on the smallest ring would cover the peak
    rings = [np.asarray(path.vertices) for path in lines.get_paths()[:-1:2]]
    places = _label_places(canvas, [ring for ring in rings if len(ring)], symbols)
    if not places:
        return np.empty((0, 2))
    texts = ax.clabel(lines, fmt=lambda v: f"{v:g}", fontsize=7.5, manual=places)
    for text in texts:
        text.set(color=INK, alpha=1.0, path_effects=HALO, zorder=6)
    return np.array([t.get_position() for t in texts], dtype=np.float64).reshape(-1, 2)


def _label_places(
    canvas: Canvas, rings: Sequence[Float], symbols: Float
) -> list[tuple[float, float]]:
    """Point of each contour that is farthest from everything else on the paper."""
    most = canvas.nodes[np.argmax(canvas.size[canvas.nodes])]
    peak = canvas.triangles.x[most], canvas.triangles.y[most]
    taken = np.vstack((symbols, *canvas.borders, peak))
    places: list[tuple[float, float]] = []
    for ring in rings:
        across = (ring[:, None, 0] - taken[:, 0]) / canvas.stretch
        near = np.hypot(across, ring[:, None, 1] - taken[:, 1]).min(axis=1)
        place = ring[np.argmax(near)]
        taken = np.vstack((taken, place))
        places.append((float(place[0]), float(place[1])))
    return places


def _spaced_nodes(canvas: Canvas, across: int = 15) -> NDArray[np.int64]:
    """Pick nodes about evenly spaced on the paper where slip is worth an arrow."""
    used = canvas.nodes
    x, y = canvas.triangles.x[used] / canvas.stretch, canvas.triangles.y[used]
    cell = max(float(np.ptp(x)), float(np.ptp(y))) / across
    i = np.floor((x - x.min()) / cell).astype(int)
    j = np.floor((y - y.min()) / cell).astype(int)
    off = np.hypot((x - x.min()) / cell - i - 0.5, (y - y.min()) / cell - j - 0.5)
    best: dict[tuple[int, int], int] = {}
    for n in np.argsort(off).tolist():
        if canvas.size[used[n]] >= LEAST * canvas.peak:
            best.setdefault((int(i[n]), int(j[n])), n)
    return used[np.array(sorted(best.values()), dtype=np.int64)]


def arrows(ax: Axes, canvas: Canvas, avoid: Float) -> None:
    """Draw the motion of the hanging wall, but not over what stands at ``avoid``."""
    nodes = _spaced_nodes(canvas)
    low, high = sorted(ax.get_ylim())
    dx = (canvas.triangles.x[nodes, None] - avoid[:, 0]) / canvas.stretch
    dy = canvas.triangles.y[nodes, None] - avoid[:, 1]
    nodes = nodes[(np.hypot(dx, dy) > 0.03 * (high - low)).all(axis=1)]
    if nodes.size == 0:
        return
    ax.quiver(
        canvas.triangles.x[nodes],
        canvas.triangles.y[nodes],
        canvas.motion[nodes, 0],
        canvas.motion[nodes, 1],
        angles="uv",
        scale_units="inches",
        scale=canvas.peak / 0.42,
        units="inches",
        width=0.017,
        headwidth=4.2,
        headlength=4.8,
        headaxislength=4.4,
        color=INK,
        edgecolor="white",
        linewidth=0.4,
        zorder=6,
    )


def mark_peak(ax: Axes, canvas: Canvas) -> Line2D:
    """Put a star on the largest slip of the canvas; returns the legend's handle."""
    most = int(canvas.nodes[np.argmax(canvas.size[canvas.nodes])])
    (handle,) = ax.plot(
        canvas.triangles.x[most],
        canvas.triangles.y[most],
        "*",
        markersize=11,
        markerfacecolor="#ffd33d",
        markeredgecolor=INK,
        markeredgewidth=0.7,
        linestyle="none",
        label="largest slip",
        zorder=7,
    )
    return handle
