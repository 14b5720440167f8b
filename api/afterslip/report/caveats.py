"""What a reader should doubt: sentences found in the result itself."""

from __future__ import annotations

import numpy as np
import xarray as xr

from afterslip.plot.resolution import on_nodes
from afterslip.report.tables import worst_stations
from afterslip.result import facts, fit_by_type, slip_magnitude
from afterslip.units import rounded

RESOLVED = 0.5
"""Resolution below which the regularisation says more than the data."""

ROUGH = (
    "of 200 known earthquakes with such slip, inverted in an earth that was not the "
    "true one, 95 % intervals held Mw of 41 %, potency of 72 % and 78 % of the mean "
    "slips of blocks; beside seven other earths 100, 77 and 77 % "
    "(examples/synthetic/study.py)"
)
"""What was measured; the table is in the README beside that program."""


def caveats(result: xr.Dataset) -> list[str]:
    """Sentences about what the data cannot see or the model does not explain."""
    said = [*_unresolved(result), *_averaged(result), *_edges(result)]
    return [*said, *_misfits(result)]


def _averaged(result: xr.Dataset) -> list[str]:
    """Over what distance the data say how large slip is, and in which earth."""
    length = result.attrs.get("peak_slip_length")
    if length is None:
        return []
    most = slip_magnitude(result).max()
    return [
        f"Data say how large slip is over about {rounded(float(length) / 1e3)} km: the "
        f"largest slip, {most:.2g} m, has no interval, and slip that varies over less "
        "may be larger. Slip that is rough within this length is in intervals less "
        f"often than they say: {ROUGH}.",
        _earths(result),
    ]


def _earths(result: xr.Dataset) -> str:
    """Say which earths the intervals count."""
    error = (facts(result, "request") or {}).get("model_error") or {}
    if named := sum(map(len, error.get("campaigns") or [])):
        return (
            f"Intervals count the {named} other earths that the inversion names, and "
            "no others."
        )
    return (
        "Intervals are those of one earth: in another one they hold the truth far less "
        "often than they say. `model_error: {perturb: ...}` of an inversion adds how "
        "uncertain layers and viscosities are."
    )


def _unresolved(result: xr.Dataset) -> list[str]:
    slip = np.abs(np.asarray(result["fault_slip"].values, dtype=np.float64))
    size = slip_magnitude(result)
    total = float(slip.sum())
    if total == 0.0:
        return ["No slip was found: the data are fitted best by none."]
    blind, at_peak = 0.0, 1.0
    for component in range(2):
        resolved = on_nodes(result, "resolution", component)
        if resolved is not None:
            blind += float(slip[np.nan_to_num(resolved) < RESOLVED, component].sum())
            if component == int(np.argmax(slip[np.argmax(size)])):
                at_peak = float(resolved[np.argmax(size)])
    sentences = []
    if blind > 0.1 * total:
        sentences.append(
            f"{100 * blind / total:.0f} % of the slip lies where the resolution is "
            f"below {RESOLVED:g}: there its amount and place follow from the smoothing "
            "more than from the data."
        )
    if at_peak < RESOLVED:
        sentences.append(
            f"The largest slip stands where the resolution is only {at_peak:.2f}; "
            "the data hardly constrain the peak value."
        )
    return sentences


def _edges(result: xr.Dataset) -> list[str]:
    """Slip, or the choice of smoothness, at the border of what was allowed."""
    sentences = []
    size = slip_magnitude(result)
    most = int(np.argmax(size))
    down = np.asarray(result["fault_down"].values, dtype=np.float64)
    along = np.asarray(result["fault_along"].values, dtype=np.float64)
    own = np.unique(np.asarray(result["fault_triangles"].values, dtype=np.int64))
    for name, place, low in (
        ("the bottom edge", down, False),
        ("the start along strike", along, True),
        ("the end along strike", along, False),
    ):
        span = float(np.ptp(place[own]))
        border = place[own].min() if low else place[own].max()
        near = own[np.abs(place[own] - border) < 0.03 * span]
        if near.size and size[near].max() > 0.25 * size[most] > 0.0:
            sentences.append(
                f"Slip is large at {name} of the fault "
                f"({size[near].max():.2g} m): it may go on beyond the fault."
            )
    lam = np.asarray(result["cv_smoothness"].values, dtype=np.float64)
    chosen = result.attrs.get("smoothness")
    if chosen is not None and np.unique(lam).size > 2:
        for border, word in ((lam.min(), "least"), (lam.max(), "largest")):
            if np.isclose(chosen, border):
                sentences.append(
                    f"The {word} smoothness that was tried was chosen; the best one "
                    "may lie beyond."
                )
    return sentences


def _misfits(result: xr.Dataset) -> list[str]:
    sentences = []
    whole = fit_by_type(result)[-1]
    if whole.chi > 2.0:
        sentences.append(
            f"Residuals are {whole.chi:.1f} times the stated errors: the errors are "
            "too small, or the model misses something that the data show."
        )
    worst = worst_stations(result)
    if worst:
        names = ", ".join(worst[:8]) + (
            f" and {len(worst) - 8} more" if len(worst) > 8 else ""
        )
        sentences.append(f"Not fitted within four standard deviations: {names}.")
    return sentences
