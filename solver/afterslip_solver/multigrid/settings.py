"""Choices of the hierarchy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MultigridSettings:
    """Choices of the hierarchy; the defaults were measured (benchmarks).

    Attributes
    ----------
    degree : of the smoother on quadratic elements, before and after.
    coarse_degree : of the smoother on linear elements and aggregates.
    visits : how often the first level of aggregates is corrected from below, where it
        lies under the mesh's own linear elements.
    strength : threshold of the strength of connection.
    max_coarse : nodes of the coarsest level, which is inverted densely.
    safety : factor on the estimated largest eigenvalue.
    local_degree : of more smoothing where the cycle is slow; 0 for none.
    local_share : largest share of the elements with more smoothing.
    nested : where the mesh was refined, use linear elements of what it was made from.
    """

    degree: int = 3
    coarse_degree: int = 4
    visits: int = 2
    strength: float = 0.0
    max_coarse: int = 100
    safety: float = 1.0
    local_degree: int = 4
    local_share: float = 0.05
    nested: bool = True
