"""Elastic moduli and viscosities of the elements."""

from afterslip_solver.materials.assign import assign
from afterslip_solver.materials.properties import (
    Body,
    Layer,
    MaterialError,
    PropertyGrid,
)

__all__ = ["Body", "Layer", "MaterialError", "PropertyGrid", "assign"]
