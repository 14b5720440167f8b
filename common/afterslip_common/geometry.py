"""The domain and its plane faults, as a spec describes them and a mesh is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
EdgeCondition = Literal["free", "zero", "clamped"]
"""What slip does at an edge: anything, vanish, or vanish with its gradient."""
Ends = tuple[EdgeCondition, EdgeCondition]
# from an edge to the peak of the outermost B-spline, in knot intervals
FROM_EDGE: dict[EdgeCondition, int] = {"free": 0, "zero": 1, "clamped": 2}


def bspline_spacing(size: float, count: int, ends: Ends) -> float:
    """Distance of neighbouring B-splines and of their knots, m.

    n functions stand on n - 1 intervals, and one more for every end where slip is
    zero, two more for every end where it is clamped.

    Parameters
    ----------
    size : m, of the fault in this direction.
    ends : conditions at 0 and at ``size``.
    """
    return size / max(count - 1 + FROM_EDGE[ends[0]] + FROM_EDGE[ends[1]], 1)


Bool = NDArray[np.bool_]


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

    def holds(self, x: Float, y: Float) -> Bool:
        """Say which places, x and y in m, are inside or on the edge."""
        return np.asarray(
            (x >= self.x[0]) & (x <= self.x[1]) & (y >= self.y[0]) & (y <= self.y[1])
        )

    def stretched(self, z: Float, height: Float) -> Float:
        """Return where z goes when the top is moved up to the ground.

        Parameters
        ----------
        z : m, in the box. height : m, of the ground there; the bottom stays.
        """
        return np.asarray(z * (1.0 + height / self.depth) + height)

    def unstretched(self, z: Float, height: Float) -> Float:
        """Return what `stretched` moves to z, m."""
        return np.asarray((z - height) / (1.0 + height / self.depth))


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

    @property
    def corners(self) -> Float:
        """(4, 3) m: the top edge from its start, then the bottom edge backwards."""
        strike, updip, _ = self.axes
        along, down = self.length * strike, -self.width * updip
        corners: Float = self.origin + np.array(
            [0.0 * along, along, along + down, down]
        )
        return corners
