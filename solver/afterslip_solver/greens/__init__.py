"""Elastic and viscoelastic responses of the surface to slip on faults."""

from __future__ import annotations

from afterslip_solver.greens.checkpoint import Checkpointer, StateError
from afterslip_solver.greens.curve import evaluate_curve
from afterslip_solver.greens.elastic_model import ElasticModel
from afterslip_solver.greens.prepared import Prepared, prepare
from afterslip_solver.greens.relaxation import Relaxation
from afterslip_solver.greens.settings import SettingsError

__all__ = [
    "Checkpointer",
    "ElasticModel",
    "Prepared",
    "Relaxation",
    "SettingsError",
    "StateError",
    "evaluate_curve",
    "prepare",
]
