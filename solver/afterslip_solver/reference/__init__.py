"""Independent answers: closed forms that tests, the suite and users compare with."""

from afterslip_solver.reference.antiplane import LongFault
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
from afterslip_solver.reference.interior import interior_displacement
from afterslip_solver.reference.layered import Stratum, layered_displacement
from afterslip_solver.reference.maxwell import (
    confined_axial_stress,
    layered_opening,
    layered_shear,
    shear_stress,
    uniaxial_stress,
)
from afterslip_solver.reference.okada import Rectangles, surface_displacement

__all__ = [
    "LongFault",
    "PointSources",
    "Rectangles",
    "Stratum",
    "burgers_compliance",
    "burgers_shear_stress",
    "confined_axial_stress",
    "dislocation_surface",
    "interior_displacement",
    "layered_burgers_shear",
    "layered_displacement",
    "layered_opening",
    "layered_shear",
    "point_source_surface",
    "shear_stress",
    "surface_displacement",
    "triangle_sources",
    "uniaxial_stress",
]
