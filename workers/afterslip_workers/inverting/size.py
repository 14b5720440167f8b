"""What an inversion will need, from its request and the sizes of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from afterslip.readers.rows import Rows
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset

# unknowns of a component of a station
_OF_TERM = {"offset": 1, "rate": 1, "annual": 2, "semiannual": 2}
_OF_RAMP = {"linear": 2, "quadratic": 5}


def inversion_needs(
    request: Inversion,
    settings: Mapping[str, Dataset],
    rows: Mapping[str, Rows],
    sources: int,
) -> dict[str, Any]:
    """Return {"data", "unknowns", "bytes", "parts": {what: bytes}}.

    Parameters
    ----------
    settings, rows : of the request's data sets, by name.
    sources : unit sources of its campaign.
    """
    # the solver's packages take a second to import
    from afterslip_solver.inversion.memory import Sizes, memory_needed

    used = [(settings[name], rows[name]) for name in request.datasets if name in rows]
    parts = 1 if request.increments is None else 1 + len(request.increments.ends)
    if request.windows is not None:
        parts = request.windows.count
    error = request.model_error
    made = [*(error.campaigns or []), *(error.perturb or {}).values()]
    sizes = Sizes(
        rows=sum(len(part) for _, part in used),
        sources=sources,
        parts=parts,
        beside=sum(_beside(dataset, part) for dataset, part in used),
        datasets=max(len(used), 1),
        correlated=tuple(
            n for dataset, part in used for n in _blocks(dataset, part, error.mesh)
        ),
        changes=sum(len(group) for group in made),
        problems=request.folds * request.repeats,
    )
    by_part = memory_needed(sizes)
    return {
        "data": sizes.rows,
        "unknowns": sizes.unknowns,
        "bytes": sum(by_part.values()),
        "parts": by_part,
    }


def _beside(dataset: Dataset, rows: Rows) -> int:
    """Unknowns beside slip of a data set, at most."""
    scenes = len(np.unique(rows.epoch[rows.component == 3]))
    found = 3 + scenes if dataset.translation else 0
    if dataset.ramp is not None:
        found += scenes * (1 + _OF_RAMP[dataset.ramp])
    terms = sum(_OF_TERM[term] for term in dataset.terms or [])
    pairs = np.unique(np.column_stack((rows.station, rows.component)), axis=0)
    return found + terms * len(pairs)


def _blocks(dataset: Dataset, rows: Rows, mesh: bool) -> list[int]:
    """Sizes of the blocks of data whose errors are correlated.

    Those of the mesh are one error for all epochs of a component of a station.
    """
    found = [len(index) for index, _ in rows.blocks]
    covariance = dataset.covariance
    if covariance is not None and covariance.file is None:
        found += np.unique(rows.epoch, return_counts=True)[1].tolist()
    elif mesh:
        place = np.column_stack((rows.station, rows.component))
        epochs = np.unique(place, axis=0, return_counts=True)[1]
        found += epochs[epochs > 1].tolist()
    return found
