"""What a solve returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

Precision = Literal["mixed", "double"]
Outcome = Literal["converged", "not_converged", "nan", "stopped"]
# how conjugate gradients end; two of them are ways not to converge
Ending = Literal[
    "converged", "not_converged", "indefinite", "stagnated", "nan", "stopped"
]

ADVICE: dict[Ending, str] = {
    "converged": "",
    "not_converged": (
        "the linear solver ran out of iterations: raise max_iterations, or look at "
        "the mesh's quality report for elements of high aspect ratio"
    ),
    "indefinite": (
        "conjugate gradients met a direction without positive energy: look for moduli "
        "that are not positive, a body that is not fixed, or degenerate elements"
    ),
    "stagnated": (
        "rounding leaves the residual above the tolerance: ask for less, or look for "
        "extreme contrasts in moduli and in the size of elements"
    ),
    "nan": (
        "the linear solver met a value that is not finite: look for extreme contrasts "
        "in moduli or viscosity, or for degenerate elements"
    ),
    "stopped": "the solve was asked to stop",
}


@dataclass(frozen=True, slots=True)
class SolveResult:
    """Outcome of one solve of four lanes; failure is a value, not an exception.

    Attributes
    ----------
    values : (n_node, 3, lane) float64.
    remainder : (n_node, 3, lane) float64, f - K u recomputed from the elements.
    ending : how the iterations ended.
    relative : (lane,) float64, norm of ``remainder`` over the reference norm.
    initial : (lane,) float64, the same of the guess.
    history : relative residual per lane after each iteration.
    iterations : matrix products of the iteration.
    precision : "mixed", or "double" where that was asked for or needed.
    """

    values: Any
    remainder: Any
    ending: Ending
    relative: NDArray[Any]
    initial: NDArray[Any]
    history: list[list[float]]
    iterations: int
    precision: Precision

    @property
    def outcome(self) -> Outcome:
        """What callers act on: "converged", "not_converged", "nan" or "stopped"."""
        if self.ending == "indefinite" or self.ending == "stagnated":
            return "not_converged"
        return self.ending

    @property
    def advice(self) -> str:
        """What to try next; empty when converged."""
        return ADVICE[self.ending]
