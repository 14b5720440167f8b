"""What conjugate gradients ask of a preconditioner."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray


class Preconditioner(Protocol):
    """An approximate inverse of K for four lanes.

    Attributes
    ----------
    varies : it is not the same linear map at every call, so that directions must be
        made conjugate explicitly.
    """

    varies: bool

    @property
    def bytes(self) -> int:
        """Memory of all levels on the backend."""

    def apply(self, r: Any, scale: NDArray[Any], out: Any) -> None:
        """Out = M^-1 r; r is (n_node, 3, lane) float64, ``scale`` its size by lane."""

    def inner_iterations(self) -> list[int]:
        """Count the iterations per level since this was last asked, finest first."""
