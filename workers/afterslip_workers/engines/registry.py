"""Which engines are installed on this worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from afterslip.error_class import ErrorClass
from afterslip.physics.registry import described
from afterslip.schemas import rheology
from afterslip.schemas.campaign import Campaign
from afterslip.spec.files import Files
from afterslip.spec.inputs import Inputs
from afterslip_workers.engines.base import Engine, PlanningEngine
from afterslip_workers.errors import TaskError
from afterslip_workers.machine import device
from afterslip_workers.machine.collector import no_collection

GROUP = "afterslip.engines"


@cache
def find(physics: str) -> Engine:
    """Return the engine of a physics.

    Raises
    ------
    TaskError
        Class ``not_installed``: this worker has none, or its package cannot be
        imported.
    """
    points = list(entry_points(group=GROUP, name=physics))
    if not points:
        known = ", ".join(sorted({point.name for point in entry_points(group=GROUP)}))
        raise TaskError(
            ErrorClass.NOT_INSTALLED,
            f"this worker has no engine for the physics {physics!r}, it has {known}: "
            "install the package of that engine where workers run, then retry",
        )
    try:
        with no_collection():
            found: Engine = points[0].load()
    except Exception as error:
        raise TaskError(
            ErrorClass.NOT_INSTALLED,
            f"the engine of the physics {physics!r} cannot be imported from "
            f"{points[0].value} on this worker ({described(error)}): install its "
            "package again, with what it needs, then retry",
        ) from error
    return found


def check_rheologies(spec: Mapping[str, Any]) -> None:
    """Refuse, as class ``not_installed``, a rheology that this worker lacks."""
    missing = rheology.lacking(spec)
    if missing is not None:
        raise TaskError(
            ErrorClass.NOT_INSTALLED,
            f"this worker lacks a rheology of the spec, {missing}: install its package "
            "where workers run, then retry",
        ) from missing


def load_all() -> None:
    """Import every engine; one that cannot be imported is reported by `find`."""
    for point in entry_points(group=GROUP):
        with suppress(TaskError):
            find(point.name)


@contextmanager
def failures_of(engine: Engine) -> Iterator[None]:
    """Turn the engine's own errors into those of tasks."""
    try:
        yield
    except tuple(engine.failures) as error:
        kind = next(
            meaning
            for known, meaning in engine.failures.items()
            if isinstance(error, known)
        )
        raise TaskError(kind, str(error)) from error


def plan(
    campaign: Campaign,
    inputs: Inputs,
    files: Files,
    mesh_bytes: int | None,
    backend: str,
    *,
    trial: bool,
) -> dict[str, Any] | None:
    """Say what a campaign will need, see `afterslip_workers.entry.plan`."""
    try:
        engine = find(campaign.physics)
    except TaskError:
        return None
    if not isinstance(engine, PlanningEngine):
        return None
    if backend == "auto":
        backend = "gpu" if device.graphics() else "cpu"
    return engine.plan(campaign, inputs, files, mesh_bytes, backend, trial=trial)
