"""Slip on split nodes as a load (Melosh & Raefsky 1981).

Elements on the + side of a fault see u + s/2 and those on the - side u - s/2, so a
slip s loads the rest of the body with f = -sum_e K_e s_e, and strain and stress of
the touching elements are those of u with their offset, not of u alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from afterslip_solver.backend import Backend
from afterslip_solver.backend.base import Tets
from afterslip_solver.model import Float, SplitNodes
from afterslip_solver.operators import Creep, Elasticity, Space


@dataclass(frozen=True, slots=True)
class _Touching:
    split: SplitNodes
    index: Any
    sign: Any
    elements: Any
    inside: Any
    rows: Any


class Loads:
    """Loads and offset strains of slip on all faults of a model."""

    def __init__(
        self,
        backend: Backend,
        space: Space,
        tets: Tets,
        splits: dict[str, SplitNodes],
        creep: Creep,
    ) -> None:
        self._backend = backend
        self._n_node = space.n_node
        self._tets = tets
        self._creep = creep
        self._faults: dict[str, _Touching] = {}
        for name, split in splits.items():
            elements = space.element_rank[split.elements]
            inside, rows = creep.rows(elements)
            self._faults[name] = _Touching(
                split,
                backend.asarray(np.maximum(split.index, 0).astype(np.int32)),
                backend.asarray(split.sign[:, :, None, None]),
                backend.asarray(elements),
                backend.asarray(inside),
                backend.asarray(rows),
            )

    def offsets(self, slip: dict[str, Float]) -> dict[str, Any]:
        """Offsets of the touching elements, (n_touch, 10, 3, lane), by fault."""
        out = {}
        for name, values in slip.items():
            fault = self._faults[name]
            # the few values of slip travel, not those of all elements
            out[name] = fault.sign * self._backend.asarray(values)[fault.index]
        return out

    def force(self, operator: Elasticity, offsets: dict[str, Any]) -> Any:
        """Right-hand side (n_node, 3, lane), zero on fixed components."""
        f = self._backend.xp.zeros(operator.shape)
        for name, values in offsets.items():
            f += self._backend.offset_forces(
                self._tets,
                self._faults[name].elements,
                operator.lam,
                operator.mu,
                values,
                self._n_node,
            )
            if operator.springs is not None:
                operator.springs.add_offset_load(self._faults[name].split, values, f)
        f *= operator.free
        return f

    def add_strain(self, offsets: dict[str, Any], strain: Any) -> None:
        """Add the deviatoric strain of the offsets to a state."""
        for name, values in offsets.items():
            fault = self._faults[name]
            if len(fault.inside):
                self._backend.add_offset_strain(
                    self._creep.tets, fault.rows, values[fault.inside], strain
                )
