"""Elastic and viscoelastic responses of the surface to slip on faults."""

from __future__ import annotations

from afterslip_solver.greens.checkpoint import Checkpointer, StateError
from afterslip_solver.greens.curve import evaluate_curve, mode_weights
from afterslip_solver.greens.prepared import Prepared, prepare
from afterslip_solver.greens.settings import SettingsError

__all__ = [
    "Checkpointer",
    "Prepared",
    "SettingsError",
    "StateError",
    "evaluate_curve",
    "mode_weights",
    "prepare",
]
