"""Meshes that honour faults: build, import, refine, locate, criterion."""

from afterslip_common.errors import MeshError
from afterslip_common.geometry import Box, PlaneFault
from afterslip_solver.mesh.boundary import boundary_conditions, opposite_conditions
from afterslip_solver.mesh.builder import build_mesh
from afterslip_solver.mesh.coarsen import coarsened
from afterslip_solver.mesh.exchange import export_vtu, import_mesh
from afterslip_solver.mesh.geometry import (
    CurvedFault,
    Geometry,
    MeshSize,
)
from afterslip_solver.mesh.interface import Interface
from afterslip_solver.mesh.locate import Locator
from afterslip_solver.mesh.placement import heights, place, placed, placed_slip
from afterslip_solver.mesh.quality import (
    QualityReport,
    check_quality,
    describe_spanning,
    quality_report,
)
from afterslip_solver.mesh.split import split_nodes
from afterslip_solver.mesh.trace import surface_trace

__all__ = [
    "Box",
    "CurvedFault",
    "Geometry",
    "Interface",
    "Locator",
    "MeshError",
    "MeshSize",
    "PlaneFault",
    "QualityReport",
    "boundary_conditions",
    "build_mesh",
    "check_quality",
    "coarsened",
    "describe_spanning",
    "export_vtu",
    "heights",
    "import_mesh",
    "opposite_conditions",
    "place",
    "placed",
    "placed_slip",
    "quality_report",
    "split_nodes",
    "surface_trace",
]
