"""What a spec may ask of the service, in numbers, before anything of it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from afterslip.errors import Problem, SpecError
from afterslip.physics.registry import find
from afterslip.readers.rows import Rows
from afterslip.schemas.base import Schema
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset
from afterslip.schemas.values import SHA256
from afterslip.spec.inputs import Inputs
from afterslip.spec.references import refs
from afterslip_service.db import datasets
from afterslip_service.http.deps import Service
from afterslip_workers import entry

MESH_FILE = "model.mesh.file"
# what to do where most of an inversion's memory is for this
LESS = {
    "data": "thin the data out, or ask for fewer sources",
    "other earths": "name fewer campaigns in model_error",
    "correlated errors": "reduce scenes to fewer pixels, series to fewer epochs",
    "unknowns": "ask for fewer sources, increments or terms",
}


def check_files(service: Service, spec: Schema) -> None:
    """Refuse files that are too large to be read into memory.

    Raises
    ------
    SpecError
        With the path of each and the numbers.
    """
    settings, problems = service.settings, []
    for path, ref in refs(spec).items():
        most = settings.max_mesh if path == MESH_FILE else settings.max_table
        size = _size(service, ref)
        if size is not None and size > most:
            message = f"has {size:,} bytes, and {most:,} may be read here"
            problems.append(Problem(path, ref, message))
    if problems:
        raise SpecError(problems)


def _size(service: Service, ref: str) -> int | None:
    """Return the size of a file, None for what reading it will complain about."""
    if SHA256.match(ref):
        with service.database.read() as connection:
            return datasets.file_size(connection, ref)
    local = service.files.local
    try:
        return None if local is None else local.path(ref).stat().st_size
    except (OSError, SpecError):
        return None


def check_sources(service: Service, campaign: Campaign) -> None:
    """Refuse a campaign with too many unit sources.

    Raises
    ------
    SpecError
        With the numbers.
    """
    most = service.settings.max_sources
    count = find(campaign.physics).work(campaign).sources
    if count > most:
        message = f"makes {count:,} unit sources, and {most:,} are allowed here"
        hint = "ask for fewer, or an operator"
        raise SpecError([Problem("sources", None, message, hint)])


def check_machine(service: Service, campaign: Campaign, inputs: Inputs) -> None:
    """Refuse what the workers of this machine could never solve.

    Workers of other machines are not known here: their own check comes later.

    Raises
    ------
    SpecError
        With the numbers.
    """
    if service.settings.scheduler != "local" or service.placement is None:
        return
    machine = entry.describe_worker()
    solver = getattr(campaign, "solver", None)
    if getattr(solver, "backend", "auto") == "gpu" and not machine["gpus"]:
        message = "needs a GPU, and the workers of this service have none"
        hint = "write backend: auto, or use a service with GPUs"
        raise SpecError([Problem("solver.backend", "gpu", message, hint)])
    planned = plan_of(service, campaign, inputs)
    if planned is None:
        return
    memory = planned["memory"]
    free = machine["memory_bytes"]
    if memory["backend"] == "gpu":
        free = min((gpu["memory_bytes"] for gpu in machine["gpus"]), default=0)
    if memory["least_bytes"] > free:
        what = "elements" if planned.get("steps") is None else "voxels"
        message = (
            f"makes about {planned['elements']:,} {what}, which need at least "
            f"{memory['least_bytes'] / 1e9:.0f} GB of memory, and the "
            f"{'GPU' if memory['backend'] == 'gpu' else 'machine'} has "
            f"{free / 1e9:.0f} GB"
        )
        parts = planned["parts"]
        hint = f"most {what} are {max(parts, key=lambda part: parts[part])}"
        path = "model.mesh" if what == "elements" else "model.domain"
        raise SpecError([Problem(path, None, message, hint)])


def plan_of(
    service: Service, campaign: Campaign, inputs: Inputs, *, trial: bool = False
) -> dict[str, Any] | None:
    """Return what a campaign will need; None where nobody here can say."""
    mesh = campaign.model.mesh.file
    size = None if mesh is None else _size(service, mesh)
    backend = service.settings.backend
    return entry.plan(campaign, inputs, service.files, size, backend, trial=trial)


def check_elements(service: Service, campaign: Campaign, inputs: Inputs) -> None:
    """Refuse a mesh that would fill the machine before it could fail.

    Parameters
    ----------
    inputs : the campaign's files.

    Raises
    ------
    SpecError
        With the numbers, and what makes most of the elements.
    """
    model, most = campaign.model, service.settings.max_elements
    size = None if model.mesh.file is None else _size(service, model.mesh.file)
    parts = find(campaign.physics).work(campaign, inputs, size).elements
    count = sum(parts.values())
    if count > most:
        message = f"makes {count:,.0f} elements or more, and {most:,} are allowed here"
        hint = f"most are {max(parts, key=lambda part: parts[part])}"
        raise SpecError([Problem("model.mesh", None, message, hint)])


def check_inversion(
    service: Service,
    spec: Campaign,
    request: Inversion,
    settings: Mapping[str, Dataset],
    rows: Mapping[str, Rows],
) -> None:
    """Refuse an inversion that would fill the memory of its worker.

    Parameters
    ----------
    settings, rows : of the request's data sets, by name.

    Raises
    ------
    SpecError
        With the numbers, and what takes most of the memory.
    """
    sources = find(spec.physics).work(spec).sources
    needs = entry.inversion_needs(request, settings, rows, sources)
    most, whose = service.settings.max_inversion, "are allowed here"
    if service.settings.scheduler == "local" and service.placement is not None:
        there = int(entry.describe_worker()["memory_bytes"])
        if there < most:
            most, whose = there, "are in the machine"
    if needs["bytes"] > most:
        parts = needs["parts"]
        message = (
            f"needs about {needs['bytes'] / 1e9:.1f} GB of memory for "
            f"{needs['data']:,} data and {needs['unknowns']:,} unknowns, and "
            f"{most / 1e9:.1f} GB {whose}"
        )
        part = max(parts, key=lambda part: parts[part])
        hint = f"most is for {part}: {LESS[part]}, or ask an operator"
        raise SpecError([Problem("", None, message, hint)])
