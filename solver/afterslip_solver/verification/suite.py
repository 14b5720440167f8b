"""The items of the suite by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
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
    waves,
)
from afterslip_solver.verification.check import Check, Part, Size
from afterslip_solver.verification.device import BACKEND

_MODULES = (
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
    waves,
)
# libraries read these when a process begins
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# items by name, and each item's parts, which may be measured side by side
_ITEMS: dict[str, dict[str, Part]] = {
    module.NAME: getattr(module, "PARTS", {"": module.run}) for module in _MODULES
}


def names() -> list[str]:
    """Names of the items, quick ones first."""
    return list(_ITEMS)


def parts(name: str) -> list[str]:
    """Names of an item's parts; one without a name where it is not divided."""
    return list(_item(name))


def run(
    name: str, size: Size = "small", backend: str = "cpu", part: str | None = None
) -> list[Check]:
    """Measure one item.

    Parameters
    ----------
    name : one of `names`.
    size : "small" takes seconds, "full" minutes and finer meshes.
    backend : where curves are solved, "cpu" or "gpu"; references stay on the CPU.
    part : one of its `parts`; all of them if None.

    Raises
    ------
    KeyError
        If there is no such item; the message lists those there are.
    """
    known = _item(name)
    token = BACKEND.set(backend)
    try:
        chosen = known.values() if part is None else [known[part]]
        return [check for measure in chosen for check in measure(size)]
    finally:
        BACKEND.reset(token)


def _item(name: str) -> dict[str, Part]:
    if name not in _ITEMS:
        raise KeyError(f"no verification {name!r}; there are {', '.join(_ITEMS)}")
    return _ITEMS[name]


def run_all(
    items: Sequence[str], size: Size = "small", backend: str = "cpu"
) -> Iterator[list[Check]]:
    """Measure items and give their checks in order.

    Small ones run on the CPU in as many processes as there are cores, at most four;
    large ones may need all memory, and a GPU is for one.
    """
    tasks = [(name, part) for name in items for part in parts(name)]
    workers = min(len(tasks), os.cpu_count() or 1, 4)
    if workers < 2 or size != "small" or backend != "cpu":
        for name in items:
            yield run(name, size, backend)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        # quick ones come first in the list, and fill the gaps at the end
        with single_threaded():
            begun = {
                task: pool.submit(run, task[0], size, backend, task[1])
                for task in reversed(tasks)
            }
        for name in items:
            yield [c for part in parts(name) for c in begun[name, part].result()]


@contextmanager
def single_threaded() -> Iterator[None]:
    """Let libraries of processes that begin now use one thread each.

    There is a process for each core: more threads wait for each other, spinning.
    """
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
