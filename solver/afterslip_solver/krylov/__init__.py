"""Krylov solvers for several right-hand sides in lockstep."""

from __future__ import annotations

from afterslip_solver.krylov.judge import Judge, TraceJudge
from afterslip_solver.krylov.pcg import pcg
from afterslip_solver.krylov.result import SolveResult

__all__ = ["Judge", "SolveResult", "TraceJudge", "pcg"]
