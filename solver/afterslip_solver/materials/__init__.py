"""Elastic moduli and viscosities of the elements."""

from afterslip_common.properties import PropertyGrid
from afterslip_solver.materials.assign import assign, moduli_at
from afterslip_solver.materials.properties import (
    Body,
    Layer,
    MaterialError,
)
from afterslip_solver.materials.restoring import GRAVITY, restoring_force
from afterslip_solver.materials.steps import describe_misfits

__all__ = [
    "GRAVITY",
    "Body",
    "Layer",
    "MaterialError",
    "PropertyGrid",
    "assign",
    "describe_misfits",
    "moduli_at",
    "restoring_force",
]
