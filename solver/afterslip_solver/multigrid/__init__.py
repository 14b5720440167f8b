"""Preconditioners: a V-cycle, and the published three levels to compare it with."""

from __future__ import annotations

from afterslip_solver.multigrid.cycle import Cycle
from afterslip_solver.multigrid.hierarchy import build
from afterslip_solver.multigrid.preconditioner import Preconditioner
from afterslip_solver.multigrid.settings import MultigridSettings
from afterslip_solver.multigrid.three_level import ThreeLevel, build_three_level
from afterslip_solver.operators.elasticity import Elasticity

__all__ = [
    "Cycle",
    "MultigridSettings",
    "Preconditioner",
    "ThreeLevel",
    "build",
    "build_three_level",
    "make_preconditioner",
]


def make_preconditioner(name: str, operator: Elasticity) -> Preconditioner:
    """Preconditioner of the given name: "multigrid" or "three_level"."""
    return build_three_level(operator) if name == "three_level" else build(operator)
