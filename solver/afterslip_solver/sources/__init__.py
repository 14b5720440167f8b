"""Slip on faults: unit sources, prescribed slip, potencies."""

from afterslip_solver.sources.basis import (
    CLAMPED,
    FREE,
    Edges,
    SourceError,
    UnitSource,
    group_in_fours,
    list_sources,
    shape_values,
    slip_of,
    slips_of,
    spacing,
    unit_sources,
)
from afterslip_solver.sources.potency import (
    SourceIntegrals,
    potency,
    source_integrals,
)
from afterslip_solver.sources.prescribed import interpolated_slip, uniform_slip
from afterslip_solver.sources.window import element_width

__all__ = [
    "CLAMPED",
    "FREE",
    "Edges",
    "SourceError",
    "SourceIntegrals",
    "UnitSource",
    "element_width",
    "group_in_fours",
    "interpolated_slip",
    "list_sources",
    "potency",
    "shape_values",
    "slip_of",
    "slips_of",
    "source_integrals",
    "spacing",
    "uniform_slip",
    "unit_sources",
]
