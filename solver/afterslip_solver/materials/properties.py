"""Where materials come from: layers, bodies under an interface, grids."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterslip_common.errors import InputError
from afterslip_solver.mesh.interface import Interface
from afterslip_solver.model import Float
from afterslip_solver.rheology import BranchesOf


class MaterialError(InputError, ValueError):
    """Materials that make no sense or leave elements without any."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Horizontal layer, or the material of a named part of an imported mesh.

    Attributes
    ----------
    bottom : m, depth of its bottom; the top is the bottom of the layer above.
    vp, vs : m/s. rho : kg/m3.
    viscosity : Pa s of the Maxwell dashpot; inf where elastic.
    kelvin_viscosity : Pa s of a Kelvin element in series with the Maxwell one (a
        Burgers body); inf where there is none.
    kelvin_ratio : shear modulus of the Kelvin element over that of the Maxwell
        element's spring, which is rho vs^2; inf where there is none.
    branches : of another rheology, in place of the viscosities.
    """

    name: str
    bottom: float
    vp: float
    vs: float
    rho: float
    viscosity: float = float("inf")
    kelvin_viscosity: float = float("inf")
    kelvin_ratio: float = float("inf")
    branches: BranchesOf | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """Plate of even thickness under an interface, such as a slab.

    Seaward of the trench, where the interface has depth 0, it lies under the free
    surface.

    Attributes
    ----------
    thickness : m, at right angles to the interface.
    vp, vs, rho, viscosity, kelvin_viscosity, kelvin_ratio, branches : as of ``Layer``.
    """

    name: str
    interface: Interface
    thickness: float
    vp: float
    vs: float
    rho: float
    viscosity: float = float("inf")
    kelvin_viscosity: float = float("inf")
    kelvin_ratio: float = float("inf")
    branches: BranchesOf | None = None

    def across(self, points: Float) -> Float:
        """Distance (n,), m, of points (n, 3) below the body's top, at right angles."""
        depth, dip = self.interface.depth_and_dip(points[:, 0], points[:, 1])
        return np.asarray((-points[:, 2] - depth) * np.cos(dip))


def check_properties(part: Layer | Body) -> None:
    """Refuse a material that is not stable."""
    name, vp, vs = part.name, part.vp, part.vs
    for key in ("vp", "vs", "rho", "viscosity", "kelvin_viscosity", "kelvin_ratio"):
        value = getattr(part, key)
        if not value > 0.0 or (np.isinf(value) and key in ("vp", "vs", "rho")):
            raise MaterialError(f"{name}: {key} = {value:g} must be positive")
    if np.isfinite(part.kelvin_viscosity) != np.isfinite(part.kelvin_ratio):
        raise MaterialError(
            f"{name}: a Kelvin element needs kelvin_viscosity and kelvin_ratio"
        )
    if np.isfinite(part.kelvin_viscosity) and np.isinf(part.viscosity):
        raise MaterialError(
            f"{name}: a Burgers body needs the viscosity of its Maxwell dashpot too"
        )
    if vs >= vp * np.sqrt(0.75):
        raise MaterialError(
            f"{name}: vs = {vs:g} m/s must be below vp / 1.155 = {vp / 1.1547:.0f} "
            "m/s, else the bulk modulus is not positive"
        )
