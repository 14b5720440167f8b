"""Discrete operators: the elastic stiffness and the creep strain."""

from __future__ import annotations

from afterslip_solver.operators.checks import ModelError, check_model
from afterslip_solver.operators.creep import Creep, Resolvent
from afterslip_solver.operators.elasticity import Elasticity
from afterslip_solver.operators.space import Space, along_curve
from afterslip_solver.operators.springs import Springs

__all__ = [
    "Creep",
    "Elasticity",
    "ModelError",
    "Resolvent",
    "Space",
    "Springs",
    "along_curve",
    "check_model",
]
