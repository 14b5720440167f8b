"""What a spec may ask of the service, in numbers, before anything of it is read."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pydantic import BaseModel

from afterslip.errors import Problem, SpecError
from afterslip.references import refs
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.values import SHA256
from afterslip_service.db import datasets
from afterslip_service.routes.deps import Service

MESH_FILE = "model.mesh.file"
# volume of a regular tetrahedron and area of a triangle, of unit edges
TETRAHEDRON = math.sqrt(2.0) / 12.0
TRIANGLE = math.sqrt(3.0) / 4.0


def check_files(service: Service, spec: BaseModel) -> None:
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


def check_work(service: Service, campaign: Campaign) -> None:
    """Refuse a campaign that would fill the machine before it could fail.

    Raises
    ------
    SpecError
        With the numbers.
    """
    settings = service.settings
    problems = list(_sources(campaign, settings.max_sources))
    problems += _elements(campaign, settings.max_elements)
    if problems:
        raise SpecError(problems)


def _sources(campaign: Campaign, most: int) -> Iterator[Problem]:
    sources = campaign.sources
    count = sources.along_strike * sources.down_dip * len(sources.components)
    if count > most:
        message = f"makes {count:,} unit sources, and {most:,} are allowed here"
        yield Problem("sources", None, message, "ask for fewer, or an operator")


def _elements(campaign: Campaign, most: int) -> Iterator[Problem]:
    """Bound the elements of the mesh from below by edges of the lengths asked for."""
    model = campaign.model
    size = model.mesh.size
    if size is None:
        return
    (west, east), (south, north) = model.domain.x, model.domain.y
    volume = (east - west) * (north - south) * model.domain.depth
    count = volume / (TETRAHEDRON * size.far**3)
    for fault in model.faults:
        if fault.plane is not None:
            # each triangle of a fault has an element on both of its sides
            area = fault.plane.length * fault.plane.width
            count = max(count, 2.0 * area / (TRIANGLE * size.fault**2))
    count *= 8.0**model.mesh.refine
    if count > most:
        message = f"makes {count:,.0f} elements or more, and {most:,} are allowed here"
        yield Problem("model.mesh", None, message, "make size or domain coarser")
