"""Priors of slip by the name that a spec gives them; one file each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from afterslip_solver.inversion.regularisers.laplacian import Laplacian
from afterslip_solver.inversion.regularisers.protocol import Regulariser, SourceGrid
from afterslip_solver.inversion.regularisers.von_karman import VonKarman

__all__ = [
    "REGULARISERS",
    "Laplacian",
    "Regulariser",
    "SourceGrid",
    "VonKarman",
    "make_regulariser",
]

REGULARISERS: dict[str, Callable[..., Regulariser]] = {
    "laplacian": Laplacian,
    "von_karman": VonKarman,
}


def make_regulariser(name: str, parameters: Mapping[str, float]) -> Regulariser:
    """Make the regulariser of a name.

    Raises
    ------
    ValueError
        Where there is none of this name, or a parameter is unknown or out of range.
    """
    if name not in REGULARISERS:
        priors = ", ".join(sorted(REGULARISERS))
        raise ValueError(f"there is no prior {name!r}: use {priors}")
    made: Any = REGULARISERS[name]
    known = [item.name for item in fields(made)]
    for key in parameters:
        if key not in known:
            names = ", ".join(known) or "no parameters"
            raise ValueError(f"prior {name} has no {key!r}: it knows {names}")
    found: Regulariser = made(**parameters)
    return found
