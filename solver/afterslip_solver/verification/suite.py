"""The items of the suite by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from afterslip_solver.verification import (
    burgers,
    conservation,
    correspondence,
    curved,
    halfspace,
    integrators,
    manufactured,
    patch,
    plates,
    reciprocity,
    relaxation,
    restoring,
    robustness,
    scec,
    spacetime,
    strata,
    studies,
)
from afterslip_solver.verification.check import Check, Size
from afterslip_solver.verification.device import BACKEND

_ITEMS: dict[str, Callable[[Size], Iterator[Check]]] = {
    module.NAME: module.run
    for module in (
        patch,
        conservation,
        manufactured,
        relaxation,
        reciprocity,
        correspondence,
        burgers,
        restoring,
        integrators,
        spacetime,
        studies,
        robustness,
        halfspace,
        curved,
        scec,
        strata,
        plates,
    )
}


def names() -> list[str]:
    """Names of the items, quick ones first."""
    return list(_ITEMS)


def run(name: str, size: Size = "small", backend: str = "cpu") -> list[Check]:
    """Measure one item.

    Parameters
    ----------
    name : one of `names`.
    size : "small" takes seconds, "full" minutes and finer meshes.
    backend : where curves are solved, "cpu" or "gpu"; references stay on the CPU.

    Raises
    ------
    KeyError
        If there is no such item; the message lists those there are.
    """
    if name not in _ITEMS:
        raise KeyError(f"no verification {name!r}; there are {', '.join(_ITEMS)}")
    token = BACKEND.set(backend)
    try:
        return list(_ITEMS[name](size))
    finally:
        BACKEND.reset(token)


def run_all(
    items: Sequence[str], size: Size = "small", backend: str = "cpu"
) -> Iterator[list[Check]]:
    """Measure items and give their checks in order.

    Small ones run on the CPU in as many processes as there are cores, at most four;
    large ones may need all memory, and a GPU is for one.
    """
    workers = min(len(items), os.cpu_count() or 1, 4)
    if workers < 2 or size != "small" or backend != "cpu":
        for name in items:
            yield run(name, size, backend)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        # quick ones come first in the list, and fill the gaps at the end
        begun = [pool.submit(run, name, size, backend) for name in reversed(items)]
        for future in reversed(begun):
            yield future.result()
