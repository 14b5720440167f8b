"""Choices of the hierarchy."""

from __future__ import annotations

from dataclasses import dataclass

# elements from which a mesh is large, and up to which it is small
LARGE, SMALL = 500_000, 5_000


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
    local_cycles : that a random error goes through to find them.
    nested : where the mesh was refined, use linear elements of what it was made from.
    """

    degree: int = 3
    coarse_degree: int = 4
    visits: int = 2
    strength: float = 0.0
    max_coarse: int = 256
    safety: float = 1.0
    local_degree: int = 4
    local_share: float = 0.05
    local_cycles: int = 8
    nested: bool = True

    @classmethod
    def suiting(cls, elements: int) -> MultigridSettings:
        """Return the choices for a mesh of so many elements.

        In a large one fewer of them are slow, but take more cycles to be found: as many
        as a group takes iterations, which are then fewer for every group. The coarsest
        level of a small one would have all vertices, and devices could not share any.
        """
        if elements <= SMALL:
            return cls(max_coarse=100)
        if elements < LARGE:
            return cls()
        return cls(local_share=0.02, local_cycles=40)
