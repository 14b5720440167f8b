"""A grid of properties, as it is read and as materials are assigned from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PropertyGrid:
    """Properties on a rectilinear grid in local metres, interpolated trilinearly.

    Attributes
    ----------
    x, y, depth : (n_x,), (n_y,), (n_depth,) float64, m, increasing; depth positive
        down.
    vp, vs : (n_x, n_y, n_depth) float64, m/s; rho the same, kg/m3. NaN where layers
        and bodies hold.
    viscosity : (n_x, n_y, n_depth) float64, Pa s (interpolated in its logarithm), inf
        where elastic; None for the viscosity of layers and bodies. Kelvin elements
        stay those of layers and bodies, except where this viscosity is infinite.
    """

    x: Float
    y: Float
    depth: Float
    vp: Float
    vs: Float
    rho: Float
    viscosity: Float | None = None
