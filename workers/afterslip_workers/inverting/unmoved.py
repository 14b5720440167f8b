"""Unit sources that move no datum: their slip is what the prior says of it."""

from __future__ import annotations

import numpy as np
import xarray as xr

from afterslip.error_class import ErrorClass
from afterslip_common.terms import SLIP_COMPONENTS
from afterslip_solver.model import Float, Int
from afterslip_workers.errors import TaskError

# below this share of the largest response there is none
_NOTHING = 1e-12
_NAMED = 5


def without_response(G: Float) -> Int:
    """(k,) int64, the sources of a design (n_obs, n_source) that move no datum."""
    size = np.linalg.norm(G, axis=0)
    most = size.max(initial=0.0, where=np.isfinite(size))
    return np.flatnonzero(size <= _NOTHING * most)


def refuse_without_any(G: Float) -> None:
    """Refuse a design (n_obs, n_source) of which no source moves any datum (TaskError).

    Where only some move none, slip is still estimated: the prior says theirs, and
    `unmoved_warning` names them.
    """
    if len(without_response(G)) == G.shape[1]:
        raise TaskError(
            ErrorClass.BAD_INPUT,
            f"none of {G.shape[1]} sources moves any of the {len(G)} data; give data "
            "near the faults, of times after the event",
        )


def unmoved_warning(G: Float, greens: xr.Dataset) -> list[str]:
    """Return one sentence that names the sources without response, or nothing."""
    blind = without_response(G)
    if not len(blind):
        return []
    faults = str(greens["source_fault"].attrs.get("flag_meanings", "")).split()
    named = []
    for k in blind[:_NAMED]:
        fault = faults[int(greens["source_fault"].values[k])]
        component = SLIP_COMPONENTS[int(greens["source_component"].values[k])]
        i, j = greens["source_patch"].values[k].tolist()
        named.append(f"{component} of patch ({i}, {j}) on {fault}")
    more = f" and {len(blind) - _NAMED} more" if len(blind) > _NAMED else ""
    return [
        f"{len(blind)} of {G.shape[1]} sources move none of the data: "
        f"{', '.join(named)}{more}; their slip and its intervals are the prior's"
    ]
