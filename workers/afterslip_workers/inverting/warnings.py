"""What a reader of an inversion's result must know before trusting it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from afterslip.schemas.windows import Windows
from afterslip.units import KM
from afterslip_solver.inversion import InversionSolution

FEW_DRAWS = 50
WARNING = "warning: "
MANY_AT_BOUNDS = 0.25
"""Share of the slips from which a warning says that bounds shape the intervals."""


LATE_SHARE = 0.25
"""Of the moment in the last window, from which a warning says that more may follow."""


def warnings_of(solution: InversionSolution, notes: Sequence[str] = ()) -> list[str]:
    """Sentences for the result and its report.

    Parameters
    ----------
    notes : of the model; those that begin with "warning" are passed on.
    """
    said = [solution.advice] if solution.advice else []
    said += [n.removeprefix(WARNING) for n in notes if n.startswith(WARNING)]
    hidden = int(solution.unseen.sum())
    if hidden:
        said.append(
            f"{hidden} of {len(solution.unseen)} sources are hardly resolved: "
            "their slip comes from the smoothness"
        )
    table = solution.cross_validation
    if table is not None and table.contradicts:
        said.append(
            f"data held out prefer smoothness {table.smoothness[table.best]:.3g} "
            f"to the chosen {solution.smoothness:.3g} "
            f"(score {table.score[table.best]:.3g}, "
            f"not {table.score[table.chosen]:.3g}): "
            "the errors may be correlated, or the model may miss something"
        )
    if solution.posterior is not None and solution.posterior.effective < FEW_DRAWS:
        said.append(
            f"the draws count as {solution.posterior.effective:.0f} independent ones: "
            "limits of intervals are rough"
        )
    near = solution.near_bound
    if solution.posterior is not None and near.mean() >= MANY_AT_BOUNDS:
        said.append(
            f"{near.sum()} of {len(near)} slips lie within a standard deviation of a "
            "bound, which shapes their intervals: where slip is rougher than its "
            "prior, the interval of Mw holds the truth less often than it says."
        )
    if solution.posterior is None:
        said.append("no intervals: they are not drawn where slip is sparse or free")
    return said


def windows_of(found: xr.Dataset, asked: Windows | None) -> list[str]:
    """Return sentences about the windows of a rupture; none where there are none.

    Parameters
    ----------
    found : the result, with what the windows found.
    """
    if asked is None:
        return []
    said = []
    weight = (found["source_area"] * found["source_rigidity"]).values
    moment = np.abs(found["slip_window"].values) @ weight
    last = float(moment[-1] / moment.sum()) if moment.sum() > 0.0 else 0.0
    if len(moment) > 1 and last > LATE_SHARE:
        said.append(
            f"{last:.0%} of the moment is in the last of {len(moment)} windows: slip "
            "may go on after it; give more windows"
        )
    size = float(np.sqrt(found["source_area"].values.max()))
    cross = size / (KM * asked.rupture_speed)
    rise = float(found.attrs["window_rise"])
    if cross > rise:
        said.append(
            f"a front takes {cross:.2g} s to cross a source, longer than the "
            f"{rise:.2g} s in which it slips: give more and smaller sources"
        )
    return said
