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
    rows: Any


@dataclass(frozen=True, slots=True)
class Offsets:
    """Of the touching elements of a fault that see slip; most see none of a source's.

    Attributes
    ----------
    at : (n,) positions among the touching elements. values : (n, 10, 3, lane) m.
    """

    at: Any
    values: Any


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
            self._faults[name] = _Touching(
                split,
                backend.asarray(np.maximum(split.index, 0).astype(np.int32)),
                backend.asarray(split.sign[:, :, None, None]),
                backend.asarray(elements),
                backend.asarray(creep.rows(elements)),
            )

    def offsets(self, slip: dict[str, Float]) -> dict[str, Offsets]:
        """Offsets by fault, from slip (n_fault_node, 3, lane), m."""
        backend, out = self._backend, {}
        for name, values in slip.items():
            fault = self._faults[name]
            slips = backend.asarray(values.any(axis=(1, 2)))
            sees = slips[fault.index] & (fault.sign[:, :, 0, 0] != 0.0)
            at = backend.xp.flatnonzero(sees.any(axis=1))
            # the few values of slip travel, not those of all elements
            near = backend.asarray(values)[fault.index[at]]
            out[name] = Offsets(at, fault.sign[at] * near)
        return out

    def force(self, operator: Elasticity, offsets: dict[str, Offsets]) -> Any:
        """Right-hand side (n_node, 3, lane), zero on fixed components."""
        f = self._backend.xp.zeros(operator.shape)
        for name, own in offsets.items():
            f += self._backend.offset_forces(
                self._tets,
                self._faults[name].elements[own.at],
                operator.lam,
                operator.mu,
                own.values,
                self._n_node,
            )
            if operator.springs is not None:
                elements = self._faults[name].split.elements
                seeing = elements[self._backend.to_host(own.at)]
                operator.springs.add_offset_load(seeing, own.values, f)
        f *= operator.free
        return f

    def add_strain(self, offsets: dict[str, Offsets], strain: Any) -> None:
        """Add the deviatoric strain of the offsets to a state."""
        for name, own in offsets.items():
            rows = self._faults[name].rows[own.at]
            creeps = self._backend.xp.flatnonzero(rows >= 0)
            if len(creeps):
                self._backend.add_offset_strain(
                    self._creep.tets, rows[creeps], own.values[creeps], strain
                )
