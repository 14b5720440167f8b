"""What campaigns in other earths say of the Green's functions' errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from afterslip.archive import GreensStore
from afterslip.error_class import ErrorClass
from afterslip.readers.rows import Rows
from afterslip_solver.inversion import InversionProblem
from afterslip_workers.errors import TaskError
from afterslip_workers.inverting.predict import design_matrix
from afterslip_workers.store import reading
from afterslip_workers.store.backend import StoreBackend

_EQUAL = ("source_fault", "source_component", "source_patch")


def with_changes(
    backend: StoreBackend,
    campaigns: Sequence[Sequence[str]],
    store: GreensStore,
    rows: Rows,
    problem: InversionProblem,
) -> InversionProblem:
    """Return the problem with what other earths change.

    Each item of ``campaigns`` changes one thing by a standard deviation; n alternatives
    of one item count 1 / n of its variance each (``changes`` of the problem).

    Raises
    ------
    TaskError
        A campaign has other sources, or does not reach the times of the data.
    """
    named = [(identity, len(group)) for group in campaigns for identity in group]
    # filled in place: a list of all of them would be held twice
    changes = np.empty((len(named), *problem.G.shape))
    rigidity = np.empty((len(named), *problem.rigidity.shape))
    for k, (identity, alternatives) in enumerate(named):
        other = GreensStore(reading.greens(backend, identity))
        _refuse_others(identity, other, store, rows)
        share = 1.0 / np.sqrt(alternatives)
        theirs = other.dataset["source_rigidity"].values
        changes[k] = share * (design_matrix(other, rows) - problem.G)
        rigidity[k] = share * (theirs - problem.rigidity)
    return replace(problem, changes=changes, rigidity_changes=rigidity)


def _refuse_others(
    identity: str, other: GreensStore, store: GreensStore, rows: Rows
) -> None:
    """Refuse other sources (TaskError); a fault of another place has the same ones."""
    wrong = ""
    mine, theirs = store.dataset, other.dataset
    if mine.sizes["source"] != theirs.sizes["source"] or any(
        not np.array_equal(mine[name].values, theirs[name].values) for name in _EQUAL
    ):
        wrong = "has other sources"
    last = float(rows.epoch.max(initial=0.0))
    if not wrong and last > other.until:
        wrong = "ends before the data"
    if wrong:
        raise TaskError(
            ErrorClass.BAD_INPUT,
            f"model_error.campaigns: {identity} {wrong}; name campaigns that differ in "
            "their earth alone",
        )
