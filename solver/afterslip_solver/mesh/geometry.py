"""What a mesh is built from, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

from afterslip_solver.model import FaultMesh, Float, SplitNodes, TetMesh


@dataclass(frozen=True, slots=True, eq=False)
class CurvedFault:
    """A smooth interface through scattered points.

    Attributes
    ----------
    points : (n, 3) float64, m, local x, y, z (z negative below the surface).
    outline : (k, 2) float64, m, closed or open polygon in x, y that limits the
        slipping part, or None for the range of the points.
    max_depth : m, deepest point of the slipping part, or None.
    tolerance : m, largest root mean square of the surface's misfit, or None.
    """

    name: str
    points: Float
    outline: Float | None = None
    max_depth: float | None = None
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class MeshSize:
    """Sizes of elements.

    Attributes
    ----------
    fault, far : m, on the faults and far from them.
    growth : increase of the size per metre of distance from a fault.
    ends : size where a fault ends at the ground, over that on the faults.
    """

    fault: float
    far: float
    growth: float = 0.35
    ends: float = 1.0


@dataclass(frozen=True, slots=True)
class Geometry:
    """A mesh with its faults.

    Attributes
    ----------
    faults, splits : by the fault's name.
    notes : what the builder did that the user may want to know.
    """

    mesh: TetMesh
    faults: dict[str, FaultMesh]
    splits: dict[str, SplitNodes]
    notes: tuple[str, ...] = ()
