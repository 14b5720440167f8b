"""Solutions on the mesh that a refined one came from, as guesses on the refined one.

The error of a mesh is estimated from the same solves on the mesh before its last
refinement. Done first, they are guesses that cost nothing but their interpolation
(nested iteration: Brandt 1977, Math. Comput. 31, 333-390). Slip jumps across a fault,
as an offset of the elements that touch it, so that a coarse displacement is its nodal
part and, inside these elements, their offset.

Modes of the two relaxation curves are not the same directions, but near enough to
guess the solution for one by that for the other. A solve takes of its guess the part
that leaves least energy in the error, lane by lane (`krylov.pcg`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from afterslip_solver.backend import LANES, Backend
from afterslip_solver.greens import prolongation as tables
from afterslip_solver.greens.elastic_model import ElasticModel
from afterslip_solver.jit.threads import over
from afterslip_solver.model import Float

# from the number of a solve to a vector like its right-hand side, or None
Guesses = Callable[[int], Any]


@dataclass(slots=True)
class Solutions:
    """Those of a group's solves that were given no guess.

    Attributes
    ----------
    slip : by fault (n_fault_node, 3, LANES) m, that was solved for.
    values : by the number of the solve, the elastic one's is 0, (n_node, 3, lane)
        float32, of norm one. norms : (lane,) theirs.
    """

    slip: dict[str, Float] = field(default_factory=dict)
    values: dict[int, Any] = field(default_factory=dict)
    norms: dict[int, Float] = field(default_factory=dict)

    def add(self, backend: Backend, solve: int, values: Any) -> None:
        """Store a solution (n_node, 3, lane) in half its precision."""
        norm = np.sqrt(backend.dot(values, values))
        norm = np.where(norm > 0.0, norm, 1.0)
        out = backend.xp.empty(values.shape, dtype=np.float32)
        backend.scale_into(values, 1.0 / norm, out)
        self.values[solve], self.norms[solve] = out, norm


class NestedGuess:
    """Takes solutions from a coarse model to the one refined from it.

    Parameters
    ----------
    coarse, fine : elastic models; the fine mesh is the coarse one refined once.
    """

    def __init__(self, coarse: ElasticModel, fine: ElasticModel) -> None:
        self._backend, self._fine = fine.backend, fine
        self._middle = tables.middles(fine.model.mesh.elements, fine.space.n_node)
        self._meshes = fine.model.mesh.elements, coarse.model.mesh.elements
        self._embedding = self._matrix(coarse)
        real = np.float32
        mask = (~fine.space.fixed).astype(real)
        self._free = self._backend.asarray(mask)
        # a part of a model may have nothing of a fault
        found = {name: self._offset(coarse, name) for name in fine.model.faults}
        self._offsets = {name: own for name, own in found.items() if len(own[0])}
        del self._middle, self._meshes

    def guesses(self, solutions: Solutions) -> Guesses:
        """Return what guesses the solves of a group by those of the coarse model."""

        def guess(solve: int) -> Any:
            values = solutions.values.get(solve)
            if values is None:
                return None
            xp, shape = self._backend.xp, (*self._fine.space.nodes.shape, LANES)
            found = xp.empty(shape, dtype=np.float32)
            self._backend.transfer(self._embedding, self._free, values, found, False)
            out = xp.empty(shape)
            self._backend.scale_into(found, solutions.norms[solve], out)
            if solve == 0:
                self._add_offsets(solutions.slip, out)
            # two of its elements interpolate a node's value with different rounding
            self._fine.agree(out)
            return out

        return guess

    def _matrix(self, coarse: ElasticModel) -> Any:
        """Weights of the coarse nodes at the fine ones."""
        n, order = self._fine.space.n_node, self._fine.space.order
        parts = (*self._meshes, self._middle, tables.BETWEEN)
        counts = np.empty(n, dtype=np.int64)
        over(n, partial(tables.count, *parts, counts))
        indptr = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(counts[order], out=indptr[1:])
        indices = np.empty(indptr[-1], dtype=np.int32)
        weights = np.empty(indptr[-1], dtype=np.float32)
        rows = order, coarse.space.rank, indptr, indices, weights
        over(n, partial(tables.fill, *parts, *rows))
        return self._backend.weights(indptr, indices, weights, coarse.space.n_node)

    def _offset(self, coarse: ElasticModel, name: str) -> tuple[Any, Any, Any]:
        """Fine nodes, weights of the slip at them, and a mask of ones."""
        split = coarse.model.splits[name]
        known = np.zeros(len(self._middle), dtype=bool)
        # on the fault the offsets of both sides cancel
        known[self._fine.fault_nodes(name)] = True
        nodes, columns, weights = tables.inside(
            *self._meshes,
            self._middle,
            tables.BETWEEN,
            split.elements,
            split.index,
            split.sign,
            known,
        )
        used = weights != 0.0
        indptr = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        count = len(coarse.model.faults[name].nodes)
        at = self._backend.asarray(self._fine.space.rank[nodes])
        matrix = self._backend.weights(indptr, columns[used], weights[used], count)
        ones = self._backend.asarray(np.ones((len(nodes), 3), dtype=np.float32))
        return at, matrix, ones

    def _add_offsets(self, slip: dict[str, Float], out: Any) -> None:
        xp, backend = self._backend.xp, self._backend
        for name, (at, matrix, ones) in self._offsets.items():
            if name not in slip:
                continue
            offset = xp.empty((len(at), 3, LANES), dtype=np.float32)
            given = backend.asarray(slip[name].astype(np.float32))
            backend.transfer(matrix, ones, given, offset, False)
            out[at] += offset
        self._fine.system.operator.hold(out)
