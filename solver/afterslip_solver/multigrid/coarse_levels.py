"""The host's part of the hierarchy: coarse matrices and how they are scaled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_array

from afterslip_solver.array_cache import Arrays, CacheScope
from afterslip_solver.jit.threads import over
from afterslip_solver.model import Float
from afterslip_solver.multigrid.aggregation import HostLevel, aggregate
from afterslip_solver.multigrid.nested import linear_levels
from afterslip_solver.multigrid.settings import MultigridSettings
from afterslip_solver.operators import assembly
from afterslip_solver.operators.elasticity import (
    Elasticity,
    HostMatrix,
    diagonal_blocks,
    traces,
)


@dataclass(frozen=True, eq=False, slots=True)
class LinearLevel:
    """Scaled 3 x 3 block CSR of linear elements; ``diagonal`` is (n, 3, 3)."""

    indptr: Any
    indices: Any
    data: NDArray[np.floating[Any]]
    diagonal: Float


@dataclass(frozen=True, eq=False, slots=True)
class HostLevels:
    """All levels below the quadratic elements.

    Attributes
    ----------
    linear : of linear elements but the last, which is the first one ``below``.
    sizes : for each linear level (n_vertex,) the factors of its scaled unknowns.
    below : the last linear level and the aggregates above the coarsest.
    coarsest : matrix of the coarsest level, not scaled.
    """

    linear: list[LinearLevel]
    sizes: list[Float]
    below: list[HostLevel]
    coarsest: bsr_array

    def as_arrays(self) -> Arrays:
        """Return all in one flat dict; see `of_arrays`."""
        found: Arrays = {f"sizes.{k}": size for k, size in enumerate(self.sizes)}
        for k, level in enumerate(self.linear):
            for name in LinearLevel.__slots__:
                found[f"linear.{k}.{name}"] = getattr(level, name)
        for k, host in enumerate(self.below):
            found |= _arrays(f"below.{k}.matrix", host.matrix)
            found |= _arrays(f"below.{k}.prolongation", host.prolongation)
        return found | _arrays("coarsest", self.coarsest)

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> HostLevels:
        """Undo `as_arrays`."""

        def count(name: str) -> int:
            return len({key.split(".")[1] for key in arrays if key.startswith(name)})

        names = LinearLevel.__slots__
        return cls(
            [
                LinearLevel(*(arrays[f"linear.{k}.{name}"] for name in names))
                for k in range(count("linear."))
            ],
            [arrays[f"sizes.{k}"] for k in range(count("sizes."))],
            [
                HostLevel(
                    _matrix(arrays, f"below.{k}.matrix"),
                    _matrix(arrays, f"below.{k}.prolongation"),
                )
                for k in range(count("below."))
            ],
            _matrix(arrays, "coarsest"),
        )


def _arrays(name: str, matrix: Any) -> Arrays:
    parts = ("indptr", "indices", "data")
    found = {f"{name}.{part}": getattr(matrix, part) for part in parts}
    return {**found, f"{name}.shape": np.array(matrix.shape)}


def _matrix(arrays: Arrays, name: str) -> bsr_array:
    indptr, indices, data, shape = (
        arrays[f"{name}.{part}"] for part in ("indptr", "indices", "data", "shape")
    )
    return bsr_array((data, indices, indptr), shape=tuple(shape.tolist()))


def host_levels(
    operator: Elasticity,
    settings: MultigridSettings,
    unit: float,
    store: type[np.floating[Any]],
    cache: CacheScope,
) -> HostLevels:
    """Levels of an operator's coarse matrices over ``unit``.

    Parameters
    ----------
    store : precision of the linear levels' matrices.
    cache : arrays keyed by the operator and the settings.
    """

    def make() -> Arrays:
        return _made(operator, settings, unit, store).as_arrays()

    return HostLevels.of_arrays(cache.get(f"levels-{np.dtype(store)}", make))


def _made(
    operator: Elasticity,
    settings: MultigridSettings,
    unit: float,
    store: type[np.floating[Any]],
) -> HostLevels:
    space = operator.space
    linear = linear_levels(operator, settings.nested)
    last = linear[-1]
    below, coarsest = aggregate(
        last.matrix,
        space.nodes[last.vertices],
        space.fixed[last.vertices],
        settings.strength,
        settings.max_coarse,
    )
    below, size = balanced(below, unit, len(last.vertices))
    scaled = [_balanced_linear(level.matrix, unit, store) for level in linear[:-1]]
    sizes = [*(factors for _, factors in scaled), size]
    return HostLevels([level for level, _ in scaled], sizes, below, coarsest)


def _balanced_linear(
    matrix: HostMatrix, unit: float, store: type[np.floating[Any]]
) -> tuple[LinearLevel, Float]:
    """Do what `balanced` does, to a matrix of linear elements; also its factors."""
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    n = len(indptr) - 1
    diagonal = diagonal_blocks(indptr, indices, data)
    size = np.sqrt(traces(diagonal) / (3.0 * unit))
    diagonal /= (unit * size * size)[:, None, None]
    single = np.empty(data.shape, dtype=np.float32)
    over(n, partial(assembly.balance, indptr, indices, data, size, unit, single))
    stored = np.empty(data.shape, dtype=store)

    def convert(start: int, stop: int) -> None:
        stored[start:stop] = single[start:stop]

    over(len(stored), convert)
    return LinearLevel(indptr, indices, stored, diagonal), size


def balanced(
    levels: list[HostLevel], unit: float, n_vertex: int
) -> tuple[list[HostLevel], Float]:
    """Divide matrices by ``unit`` and give every unknown a diagonal entry near one.

    The unknowns of all levels but the coarsest are scaled, which FP16 needs: the
    stiffness of a node grows with its elements' size. Prolongations change with them.

    Parameters
    ----------
    n_vertex : unknowns of the first level, also where there is none but the coarsest.

    Returns
    -------
    The levels, and (n_vertex,) the factor of each vertex of the first.
    """
    if not levels:
        return [], np.ones(n_vertex)
    scales = [_scales(level.matrix, unit) for level in levels]
    out = []
    for k, level in enumerate(levels):
        a, p, s = level.matrix, level.prolongation, scales[k]
        after = None if k + 1 == len(levels) else 1.0 / scales[k + 1]
        out.append(HostLevel(_scaled(a, 1.0 / s / unit, 1.0 / s), _scaled(p, s, after)))
    return out, scales[0][:, 0]


def _scales(a: Any, unit: float) -> Float:
    """(n_row, size) roots of the mean diagonal entry of translations and the others."""
    size = a.blocksize[0]
    rows = np.repeat(np.arange(len(a.indptr) - 1), np.diff(a.indptr))
    own = rows == a.indices
    diagonal = np.full((len(a.indptr) - 1, size), unit)
    diagonal[rows[own]] = np.diagonal(a.data[own], axis1=1, axis2=2)
    # components of a vector share a factor, as they share weights
    mean = diagonal.reshape(len(diagonal), -1, 3).mean(axis=2)
    return np.asarray(np.sqrt(np.repeat(mean, 3, axis=1) / unit))


def _scaled(a: Any, left: Float, right: Float | None) -> bsr_array:
    """Matrix with rows and columns multiplied, both (n, size of a block)."""
    rows = np.repeat(np.arange(len(a.indptr) - 1), np.diff(a.indptr))
    data = a.data * left[rows][:, :, None]
    if right is not None:
        data *= right[a.indices][:, None, :]
    return bsr_array((data, a.indices, a.indptr), shape=a.shape)
