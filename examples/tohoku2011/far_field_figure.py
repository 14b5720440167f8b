"""What a spherical and a flat Earth leave of offsets, as a table and a figure."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from afterslip.plot.style import BLUE, INK, SOFT, VERMILLION, new_figure, styled

# km from the earthquake
BANDS = (0, 300, 600, 1000, 1500, 2000, 4000)


@dataclass(frozen=True)
class Fit:
    """What one Earth makes of the data.

    Attributes
    ----------
    interval : of the magnitude, 95 %. peak : m.
    distance : (n,) km, of each site from the origin. land : (n,) those not at sea.
    observed, predicted, sigma : (n, 3) m, east, north, up.
    on_flat : (n, 3) m, what the same slip does to the sites on a flat Earth.
    """

    magnitude: float
    interval: tuple[float, ...]
    peak: float
    n_unknowns: int
    distance: np.ndarray
    observed: np.ndarray
    predicted: np.ndarray
    on_flat: np.ndarray
    sigma: np.ndarray
    land: np.ndarray


@dataclass(frozen=True)
class Band:
    """Sites on land of some distances, horizontally.

    Attributes
    ----------
    size, rms : m, root mean square of observed displacements and residuals.
    chi : the same of residuals over errors.
    curvature : of what one slip does on the two Earths, the root mean square of the
        difference over that on the first.
    """

    name: str
    count: int
    size: float
    rms: float
    chi: float
    curvature: float


def bands(fit: Fit) -> Iterator[Band]:
    """Return the bands in which there are sites."""
    for low, high in pairwise(BANDS):
        mine = fit.land & (fit.distance >= low) & (fit.distance < high)
        if not mine.any():
            continue
        left = (fit.observed - fit.predicted)[mine, :2]
        apart = (fit.on_flat - fit.predicted)[mine, :2]
        yield Band(
            f"{low}-{high}",
            int(mine.sum()),
            rms(fit.observed[mine, :2]),
            rms(left),
            float(np.sqrt(np.nanmean((left / fit.sigma[mine, :2]) ** 2))),
            rms(apart) / rms(fit.predicted[mine, :2]),
        )


def rms(values: np.ndarray) -> float:
    """Root mean square length of vectors (n, 2); missing components count as none."""
    return float(np.sqrt(np.mean(np.nansum(values**2, axis=1))))


def table(found: dict[str, Fit]) -> list[str]:
    """Lines of Markdown: magnitudes, and what is left by distance."""
    said = [
        f"{shape}: Mw {fit.magnitude:.2f} ({fit.interval[0]:.2f} to "
        f"{fit.interval[1]:.2f}), largest slip {fit.peak:.1f} m, {fit.n_unknowns:,} "
        f"unknowns, {len(fit.distance):,} sites"
        for shape, fit in found.items()
    ]
    said += ["", "| km | sites | observed, mm | left: sphere, mm | flat, mm "]
    said[-1] += "| left over errors: sphere | flat | curvature moves by |"
    said.append("|---" * 8 + "|")
    pairs = zip(bands(found["sphere"]), bands(found["flat"]), strict=True)
    for ours, flat in pairs:
        said.append(
            f"| {ours.name} | {ours.count} | {1e3 * ours.size:.1f} | "
            f"{1e3 * ours.rms:.1f} | {1e3 * flat.rms:.1f} | {ours.chi:.2f} | "
            f"{flat.chi:.2f} | {ours.curvature:.0%} |"
        )
    return said


@styled
def draw(sphere: Fit, flat: Fit) -> Figure:
    """Return horizontal motion against distance, and what is left of it."""
    figure = new_figure(4.2)
    left, right = figure.subplots(1, 2, sharex=True)
    land = sphere.land
    far, size = sphere.distance[land], np.linalg.norm(sphere.observed[land, :2], axis=1)
    left.loglog(far, 1e3 * size, ".", ms=3, color=SOFT, label="observed")
    slip = np.linalg.norm(sphere.predicted[land, :2], axis=1)
    left.loglog(far, 1e3 * slip, ".", ms=2, color=BLUE, label="sphere")
    slip = np.linalg.norm(sphere.on_flat[land, :2], axis=1)
    label = "the same slip, flat"
    left.loglog(far, 1e3 * slip, ".", ms=2, color=VERMILLION, label=label)
    left.set_ylabel("horizontal displacement, mm")
    for fit, colour, name in (
        (sphere, BLUE, "sphere"),
        (flat, VERMILLION, "flat, its own slip"),
    ):
        rows = list(bands(fit))
        middle = [
            np.sqrt(max(a, 100) * b)
            for a, b in (map(float, r.name.split("-")) for r in rows)
        ]
        right.loglog(
            middle, [1e3 * r.rms for r in rows], "o-", color=colour, label=name
        )
    right.loglog(
        middle, [1e3 * r.size for r in rows], "s--", ms=4, color=INK, label="observed"
    )
    right.set_ylabel("root mean square left, mm")
    for axes in (left, right):
        axes.set_xlabel("distance from the earthquake, km")
        axes.legend()
    return figure
