"""What a mesh is built from, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterslip_solver.model import FaultMesh, Float, SplitNodes, TetMesh


@dataclass(frozen=True, slots=True)
class Box:
    """The domain, a box under the free surface z = 0.

    Attributes
    ----------
    x, y : (low, high), m.
    depth : m, positive.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    depth: float


@dataclass(frozen=True, slots=True)
class PlaneFault:
    """A rectangle.

    Attributes
    ----------
    x, y : m, centre of the top edge.
    top : m, depth of the top edge; 0 breaks the surface.
    strike : degrees clockwise from north; the fault dips to its right.
    dip : degrees from horizontal, 0 < dip <= 90.
    length, width : m, along strike and down dip.
    """

    name: str
    x: float
    y: float
    top: float
    strike: float
    dip: float
    length: float
    width: float

    @property
    def axes(self) -> tuple[Float, Float, Float]:
        """Unit vectors along strike, up dip, and normal into the hanging wall."""
        phi, delta = np.radians(self.strike), np.radians(self.dip)
        strike = np.array([np.sin(phi), np.cos(phi), 0.0])
        # exact zero keeps a vertical fault on its plane
        flat = 0.0 if self.dip == 90.0 else np.cos(delta)
        updip = np.array([-flat * np.cos(phi), flat * np.sin(phi), np.sin(delta)])
        return strike, updip, np.cross(strike, updip)

    @property
    def origin(self) -> Float:
        """(3,) m, where along = down = 0."""
        return np.array([self.x, self.y, -self.top]) - 0.5 * self.length * self.axes[0]


@dataclass(frozen=True, slots=True, eq=False)
class CurvedFault:
    """A smooth interface through scattered points.

    Attributes
    ----------
    points : (n, 3) float64, m, local x, y, z (z negative below the surface).
    outline : (k, 2) float64, m, closed or open polygon in x, y that limits the
        slipping part, or None for the range of the points.
    max_depth : m, deepest point of the slipping part, or None.
    """

    name: str
    points: Float
    outline: Float | None = None
    max_depth: float | None = None


@dataclass(frozen=True, slots=True)
class MeshSize:
    """Sizes of elements.

    Attributes
    ----------
    fault, far : m, on the faults and far from them.
    growth : increase of the size per metre of distance from a fault.
    """

    fault: float
    far: float
    growth: float = 0.35


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
