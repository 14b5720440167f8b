"""What a solve returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

Outcome = Literal["converged", "not_converged", "nan", "stopped"]

ADVICE: dict[Outcome, str] = {
    "converged": "",
    "not_converged": (
        "the linear solver ran out of iterations: raise max_iterations, or look at "
        "the mesh's quality report for elements of high aspect ratio"
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
    outcome : "converged", "not_converged", "nan" or "stopped".
    relative : (lane,) float64, norm of ``remainder`` over the reference norm.
    initial : (lane,) float64, the same of the guess.
    history : relative residual per lane after each iteration.
    iterations : matrix products of the iteration.
    """

    values: Any
    remainder: Any
    outcome: Outcome
    relative: NDArray[Any]
    initial: NDArray[Any]
    history: list[list[float]]
    iterations: int

    @property
    def advice(self) -> str:
        """What to try next; empty when converged."""
        return ADVICE[self.outcome]
