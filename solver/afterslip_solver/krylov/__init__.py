"""Krylov solvers for several right-hand sides in lockstep."""

from __future__ import annotations

from afterslip_solver.krylov.pcg import pcg
from afterslip_solver.krylov.result import SolveResult
from afterslip_solver.krylov.surface_error import (
    StoppingCriterion,
    SurfaceErrorCriterion,
)

__all__ = ["SolveResult", "StoppingCriterion", "SurfaceErrorCriterion", "pcg"]
