"""Where the suite's curves are solved."""

from __future__ import annotations

from contextvars import ContextVar

from afterslip_solver.greens import Prepared, prepare
from afterslip_solver.model import Model, SolverSettings

BACKEND: ContextVar[str] = ContextVar("verification backend", default="cpu")


def prepared(model: Model, settings: SolverSettings) -> Prepared:
    """`greens.prepare` on the backend that this run of the suite verifies."""
    return prepare(model, settings, backend=BACKEND.get())
