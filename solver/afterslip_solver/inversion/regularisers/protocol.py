"""What a regulariser is: a prior precision of slip, known up to its scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from afterslip_solver.model import Bool, Float, Int


@dataclass(frozen=True, slots=True)
class SourceGrid:
    """Where the unit sources stand on their faults.

    Attributes
    ----------
    place : (n_par, 4) int64: fault, component (0 strike, 1 dip), along strike, down
        dip (0 at the top).
    spacing : (n_fault, 2) float64, m, along strike and down dip.
    open_top : (n_fault,) bool, slip may reach the top edge (trench).
    """

    place: Int
    spacing: Float
    open_top: Bool


class Regulariser(Protocol):
    """Prior of slip, one file of this folder each.

    A regulariser is a frozen dataclass; its fields are the parameters that a spec
    may give, numbers with lengths in km.
    """

    def precision(self, sources: SourceGrid) -> Float:
        """(n_par, n_par) float64, L of the penalty ``lambda a' L a``.

        Symmetric, positive definite; its scale is free, since lambda multiplies it.
        """
        ...
