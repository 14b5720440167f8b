"""Independent answers: closed forms that tests, the suite and users compare with."""

from afterslip_solver.reference.burgers import (
    burgers_compliance,
    burgers_shear_stress,
    layered_burgers_shear,
)
from afterslip_solver.reference.halfspace import (
    PointSources,
    dislocation_surface,
    point_source_surface,
    triangle_sources,
)
from afterslip_solver.reference.maxwell import (
    confined_axial_stress,
    layered_opening,
    layered_shear,
    shear_stress,
    uniaxial_stress,
)
from afterslip_solver.reference.okada import Rectangles, surface_displacement

__all__ = [
    "PointSources",
    "Rectangles",
    "burgers_compliance",
    "burgers_shear_stress",
    "confined_axial_stress",
    "dislocation_surface",
    "layered_burgers_shear",
    "layered_opening",
    "layered_shear",
    "point_source_surface",
    "shear_stress",
    "surface_displacement",
    "triangle_sources",
    "uniaxial_stress",
]
