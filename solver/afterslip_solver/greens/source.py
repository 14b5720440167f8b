"""Slip on split nodes as a load (Melosh & Raefsky 1981).

Elements on the + side of a fault see u + s/2 and those on the - side u - s/2, so a
slip s loads the rest of the body with f = -sum_e K_e s_e, and strain and stress of
the touching elements are those of u with their offset, not of u alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from afterslip_solver.backend import LANES, Backend
from afterslip_solver.backend.base import Tets
from afterslip_solver.greens.settings import SettingsError
from afterslip_solver.model import Float, Int, Model, SplitNodes
from afterslip_solver.operators import Elasticity, Space

Slip = Mapping[str, Float] | Sequence[Float] | Float


@dataclass(frozen=True, slots=True)
class _Touching:
    split: SplitNodes
    index: Any
    sign: Any
    elements: Any


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
    """Loads of slip on all faults of a model.

    Attributes
    ----------
    touching : by fault, (n_touch,) the solver's numbers of the touching elements.
    body : (n_node, 3, lane) N, nodal forces that are added to every load, or None.
    """

    def __init__(
        self,
        backend: Backend,
        space: Space,
        tets: Tets,
        splits: dict[str, SplitNodes],
    ) -> None:
        self._backend = backend
        self._n_node = space.n_node
        self._tets = tets
        self.body: Any = None
        self.touching: dict[str, Int] = {}
        self._faults: dict[str, _Touching] = {}
        for name, split in splits.items():
            elements = self.touching[name] = space.element_rank[split.elements]
            self._faults[name] = _Touching(
                split,
                backend.asarray(np.maximum(split.index, 0).astype(np.int32)),
                backend.asarray(split.sign[:, :, None, None]),
                backend.asarray(elements),
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
        if self.body is not None:
            f += self.body
        operator.hold(f)
        return f


def padded(model: Model, slip: Slip) -> tuple[dict[str, Float], int]:
    """Slip by fault, padded to four lanes, and the number of real ones.

    Parameters
    ----------
    slip : per fault (n_fault_node, 3, n_lane) float64, m, see `Prepared.solve`.

    Raises
    ------
    SettingsError
        If it does not fit the model's faults, or is not finite.
    """
    names = list(model.splits)
    if isinstance(slip, np.ndarray):
        slip = [slip]
    if not isinstance(slip, Mapping):
        if len(slip) != len(names):
            message = f"slip is given for {len(slip)} of {len(names)} faults"
            raise SettingsError(message)
        slip = dict(zip(names, slip, strict=True))
    counts = {values.shape[2] for values in slip.values()}
    if len(counts) != 1 or not 1 <= max(counts) <= LANES:
        message = f"slip must have the same 1 to {LANES} lanes on every fault"
        raise SettingsError(message)
    n_lane = counts.pop()
    out = {}
    for name, values in slip.items():
        if name not in names:
            message = f"there is no fault {name!r}; there are {', '.join(names)}"
            raise SettingsError(message)
        expected = (len(model.faults[name].nodes), 3, n_lane)
        if values.shape != expected:
            message = f"slip on {name!r} has shape {values.shape}, not {expected}"
            raise SettingsError(message)
        if not np.isfinite(values).all():
            raise SettingsError(f"slip on {name!r} is not finite everywhere")
        out[name] = np.zeros((*values.shape[:2], LANES))
        out[name][:, :, :n_lane] = values
    return out, n_lane
