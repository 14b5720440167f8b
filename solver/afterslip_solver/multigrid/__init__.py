"""Multigrid preconditioner: quadratic, linear, then smoothed aggregation."""

from __future__ import annotations

from afterslip_solver.multigrid.cycle import Cycle
from afterslip_solver.multigrid.hierarchy import MultigridSettings, build

__all__ = ["Cycle", "MultigridSettings", "build"]
