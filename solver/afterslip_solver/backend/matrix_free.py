"""The P2 stiffness on a CUDA device without a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.base import LANES, Discretisation
from afterslip_solver.kernels import variants
from afterslip_solver.kernels.loader import kernel
from afterslip_solver.kernels.plan import Plan, make_plan
from afterslip_solver.model import Float

# per cent of the blocks that share one launch, hence one size of shared memory
COMMON = 95


@dataclass(frozen=True, slots=True)
class PlanOnDevice:
    """Tables that all operators on one mesh share."""

    host: Plan
    volume: Float
    tables: tuple[Any, ...]
    launches: list[tuple[Any, int]]
    shared: Any
    _gradients: dict[Any, Any]
    _on_host: Float

    @classmethod
    def of(cls, space: Discretisation) -> PlanOnDevice:
        """Make the plan of a mesh and copy it to the device."""
        plan = make_plan(
            space.elements,
            space.nodes,
            space.fixed,
            variants.BLOCK,
            variants.THREADS // 32,
        )
        tables = (plan.tasks, plan.slots, plan.nodes, plan.local, plan.phases)
        return cls(
            plan,
            space.volume,
            tuple(cupy.asarray(table) for table in tables),
            _launches(np.diff(plan.slots)),
            cupy.asarray(plan.shared),
            {},
            space.gradients,
        )

    def gradients(self, real: Any) -> Any:
        """(n_task, 9, 8) of barycentric coordinates 1..3."""
        if real not in self._gradients:
            values = self._on_host[:, 1:].reshape(-1, 9)
            self._gradients[real] = self.packed(values, real)
        return self._gradients[real]

    def packed(self, values: Float, real: Any) -> Any:
        """Element values (n_elem, k) as (n_task, k, 8); zeros where none is."""
        out = np.zeros((*self.host.members.shape, values.shape[1]), dtype=real)
        there = self.host.members >= 0
        out[there] = values[self.host.members[there]]
        return cupy.asarray(np.ascontiguousarray(out.transpose(0, 2, 1)))


def _launches(slots: NDArray[np.int32]) -> list[tuple[Any, int]]:
    """Blocks of one launch and their largest number of slots."""
    common = int(np.percentile(slots, COMMON, method="lower"))
    chosen = (np.flatnonzero(slots <= common), np.flatnonzero(slots > common))
    return [
        (cupy.asarray(which.astype(np.int32)), int(slots[which].max()))
        for which in chosen
        if len(which)
    ]


class MatrixFree:
    """K u of one set of moduli in one precision, zero on held components.

    Parameters
    ----------
    plan : of the mesh.
    lam, mu : (n_elem,) float64, Pa, or in units that keep FP32 numbers in range.
    real : NumPy's dtype of float32 or float64.
    """

    def __init__(self, plan: PlanOnDevice, lam: Float, mu: Float, real: Any) -> None:
        weight = plan.volume[:, None] / 20.0
        moduli = plan.packed(weight * np.stack([lam, mu], axis=1), real)
        gradients = plan.gradients(real)
        self._apply, self._clear, self._step = (
            kernel("elastic.cu", name, *variants.elastic(real))
            for name in ("apply", "clear", "step")
        )
        per_slot = 3 * LANES * real.itemsize + 4
        # the few largest blocks go apart, so that they do not cost the others memory
        self._launches = [(which, slots * per_slot) for which, slots in plan.launches]
        self._apply.max_dynamic_shared_size_bytes = max(
            memory for _, memory in self._launches
        )
        self._chunks = 3 * LANES * real.itemsize // 16
        self._shared = plan.shared
        self._tables = (*plan.tables, gradients, moduli)
        self.bytes = int(sum(table.nbytes for table in self._tables))

    def apply(self, u: Any, out: Any) -> None:
        """Out = K u."""
        n = len(self._shared)
        if n:
            grid = -(-n * self._chunks // 256)
            self._clear((grid,), (256,), (np.int32(n), self._shared, out))
        for which, memory in self._launches:
            self._apply(
                (len(which),),
                (variants.THREADS,),
                (which, *self._tables, u, out),
                shared_mem=memory,
            )

    def chebyshev(
        self,
        inverse: Any,
        b: Any,
        x: Any,
        d: Any,
        keep: float,
        gain: float,
        out: Any,
    ) -> None:
        """See `Backend`."""
        self.apply(x, out)
        n, real = len(inverse), x.dtype.type
        grid = -(-n * LANES // 256)
        factors = (real(keep), real(gain))
        self._step((grid,), (256,), (np.int32(n), inverse, b, x, d, *factors, out))
