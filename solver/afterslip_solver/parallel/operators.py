"""What differs from the whole model's operators on a part of it."""

from __future__ import annotations

from typing import Any

from afterslip_solver.model import Int
from afterslip_solver.operators import Creep, Springs
from afterslip_solver.parallel.rank_backend import RankBackend


class RankSprings(Springs):
    """Springs on the faces of a part's elements."""

    def add(self, u: Any, out: Any) -> None:
        """See `Springs`."""
        backend = self._part_backend
        own = backend.xp.zeros_like(out)
        super().add(u, own)
        out += backend.complete(own)

    def add_offset_load(self, elements: Int, offsets: Any, f: Any) -> None:
        """See `Springs`."""
        backend = self._part_backend
        own = backend.xp.zeros_like(f)
        super().add_offset_load(elements, offsets, own)
        f += backend.complete(own)

    @property
    def _part_backend(self) -> RankBackend:
        assert isinstance(self._backend, RankBackend)  # noqa: S101 - made with one
        return self._backend


class RankCreep(Creep):
    """Creep in the elements of a part, which may have none that creeps."""

    @property
    def anywhere(self) -> bool:
        """Whether anything creeps in any part."""
        return self._largest(float(super().anywhere)) > 0.0

    @property
    def fastest(self) -> float:
        """See `Creep`; of all parts."""
        return self._largest(super().fastest if len(self.which) else 0.0)

    def softening(self, shift: float) -> float:
        """See `Creep`; of all parts."""
        return self._largest(super().softening(shift) if len(self.which) else 0.0)

    def _largest(self, value: float) -> float:
        backend = self.backend
        assert isinstance(backend, RankBackend)  # noqa: S101 - made with one
        return float(backend.largest(value))
