"""The items of the suite by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from afterslip_solver.verification import (
    burgers,
    conservation,
    correspondence,
    halfspace,
    integrators,
    manufactured,
    patch,
    reciprocity,
    relaxation,
    restoring,
)
from afterslip_solver.verification.check import Check, Size

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
        halfspace,
    )
}


def names() -> list[str]:
    """Names of the items, quick ones first."""
    return list(_ITEMS)


def run(name: str, size: Size = "small") -> list[Check]:
    """Measure one item.

    Parameters
    ----------
    name : one of `names`.
    size : "small" takes seconds, "full" minutes and finer meshes.

    Raises
    ------
    KeyError
        If there is no such item; the message lists those there are.
    """
    if name not in _ITEMS:
        raise KeyError(f"no verification {name!r}; there are {', '.join(_ITEMS)}")
    return list(_ITEMS[name](size))
