"""What a campaign would cost, before anything of it is recorded or computed."""

from __future__ import annotations

from dataclasses import asdict
from math import ceil, dist, isfinite
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel, Field

from afterslip.errors import SpecError
from afterslip.identity import campaign_digest, canonical_spec, plain
from afterslip.physics.base import Physics
from afterslip.physics.registry import find
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.fault import Sources
from afterslip.schemas.inversion import Inversion
from afterslip.spec import parse_campaign
from afterslip.spec.coverage import plane_fault
from afterslip.spec.geometry import geometry
from afterslip.spec.inputs import Inputs
from afterslip_common.geometry import bspline_spacing
from afterslip_service.db import measured
from afterslip_service.db.measured import Measured
from afterslip_service.engine.forecast import Forecast
from afterslip_service.http.body import JsonRoute
from afterslip_service.http.deps import PrincipalDep, Service, ServiceDep
from afterslip_service.http.problems import responses
from afterslip_service.routes import limits, named_earths, plan_time, submission
from afterslip_service.routes.campaigns import SPEC
from afterslip_workers import entry

router = APIRouter(prefix="/v1/plan", tags=["campaigns"], route_class=JsonRoute)

# a domain that ends nearer to the fault than this times its size bends the curve
NEAR = 2.0
# edges over the spacing of unit sources; half is advised, and a mesh varies about it
LONGEST_EDGE = 0.6
KM = 1e3


class TimeResponse(BaseModel):
    """How long it will take, from campaigns that were solved here, in s."""

    group: float
    low: float = Field(description="of a group, by the fastest of those campaigns")
    high: float
    model: float | None
    total: float = Field(description="until the last group is accepted")
    worker: float = Field(description="of all workers together; GPU-seconds on GPUs")
    slots: int = Field(description="groups at a time")
    campaigns: int = Field(description="how many it was estimated from")


class CostResponse(BaseModel):
    """What the time of all workers costs at the price that the service was given."""

    amount: float = Field(description="without electricity, storage and people")
    currency: str = Field(description="as the operator names it")
    price: float = Field(description="of an hour of one worker, or of one GPU")


class ReusePlan(BaseModel):
    """What is stored already, as far as specs tell."""

    model: str | None = Field(description="a campaign with the same model")
    sources: str | None = Field(description="a campaign with the same sources as well")


class WarningResponse(BaseModel):
    """Something that is allowed and perhaps not meant."""

    path: str
    message: str
    hint: str


class InversionPlan(BaseModel):
    """What an inversion would need."""

    name: str
    data: int
    unknowns: int
    bytes: int = Field(description="of memory, at most")


class PlanResponse(BaseModel):
    """What a campaign would need."""

    name: str
    digest: str
    physics: str
    sources: int
    groups: int
    elements: int | None = Field(description="null where no engine here can say")
    unknowns: int | None
    steps: int | None = Field(
        description="of time, of each group; null where their number is not fixed"
    )
    memory: dict[str, Any] | None = Field(
        description="of each worker at most: backend, bytes, least_bytes, parts"
    )
    memory_free: int | None = Field(
        description="bytes of this machine or its GPU, where workers are local"
    )
    trial: dict[str, Any] | None = Field(description="a coarser mesh that was made")
    mesh: dict[str, Any] | None = Field(
        description="edges: fault, far, km; growth, ends; null where imported"
    )
    time: TimeResponse | None = Field(description="null where nothing was measured")
    cost: CostResponse | None = Field(description="null without a price or a time")
    reuse: ReusePlan
    inversions: list[InversionPlan]
    perturbed: list[str] = Field(
        description="campaigns in other earths that inversions ask for, by name; each "
        "solves as many sources again"
    )
    warnings: list[WarningResponse]
    geometry: dict[str, Any] = Field(description="where everything lies, km")


@router.post(
    "",
    responses=responses(400, 413, 422, 503),
    openapi_extra={
        "requestBody": {"content": {"application/json": {"schema": SPEC}}},
        "x-role": "viewer",
    },
)
def plan_campaign(
    service: ServiceDep,
    principal: PrincipalDep,
    spec: Annotated[Any, Body()],
    mesh: Annotated[
        bool, Query(description="make a coarser mesh, to count elements better")
    ] = False,
) -> PlanResponse:
    """Check a campaign spec and its files, and say what it would need.

    Everything that a submit refuses is refused here, with the same numbers; nothing
    is recorded.
    """
    campaign, inputs = submission.read_campaign(service, spec)
    physics = find(campaign.physics)
    needs = limits.plan_of(service, campaign, inputs, trial=mesh) or {}
    canonical = canonical_spec(campaign, service.files)
    named_earths.check(service, principal, canonical)
    made = submission.check_others(service, campaign)
    work = physics.work(campaign, inputs)
    count, groups = work.sources, -(-work.sources // physics.group_size)
    with service.database.read() as connection:
        others = measured.newest(connection, campaign.physics)
    found = plan_time.expected(service, work, groups, needs, others)
    return PlanResponse(
        name=campaign.name,
        digest=campaign_digest(campaign, service.files),
        physics=campaign.physics,
        sources=count,
        groups=groups,
        elements=needs.get("elements"),
        unknowns=needs.get("unknowns"),
        steps=needs.get("steps"),
        memory=needs.get("memory"),
        memory_free=_free(service, needs),
        trial=needs.get("trial"),
        mesh=needs.get("mesh"),
        time=None if found is None else TimeResponse(**asdict(found)),
        cost=_cost(service, campaign, found),
        reuse=_reuse(physics, campaign, canonical, others),
        inversions=_inversions(campaign, inputs, count),
        perturbed=_names(made),
        warnings=_warnings(campaign, inputs, needs, count),
        geometry=geometry(campaign, inputs),
    )


def _inversions(campaign: Campaign, inputs: Inputs, count: int) -> list[InversionPlan]:
    settings = {dataset.name: dataset for dataset in campaign.datasets}
    found = []
    for request in campaign.inversions:
        needs = entry.inversion_needs(request, settings, inputs.datasets, count)
        numbers = {key: needs[key] for key in ("data", "unknowns", "bytes")}
        found.append(InversionPlan(name=request.name, **numbers))
    return found


def _names(made: list[list[list[Campaign]]]) -> list[str]:
    """Names of campaigns, each once: inversions may share them."""
    every = [one.name for groups in made for group in groups for one in group]
    return list(dict.fromkeys(every))


def _cost(
    service: Service, campaign: Campaign, time: Forecast | None
) -> CostResponse | None:
    price = service.settings.price
    if price is None or time is None:
        return None
    gpus = find(campaign.physics).gpus(plain(campaign))
    hours = time.worker * gpus / 3600
    return CostResponse(
        amount=hours * price, currency=service.settings.currency, price=price
    )


def _free(service: Service, needs: dict[str, Any]) -> int | None:
    if not needs or service.settings.scheduler != "local":
        return None
    machine = entry.describe_worker()
    if needs["memory"]["backend"] == "gpu":
        return min((gpu["memory_bytes"] for gpu in machine["gpus"]), default=None)
    return int(machine["memory_bytes"])


def _reuse(
    physics: Physics,
    campaign: Campaign,
    canonical: dict[str, Any],
    others: list[Measured],
) -> ReusePlan:
    """Compare with earlier specs; the keys of sources are known with the mesh."""
    wanted = physics.quality(campaign)
    model = sources = None
    for other in others:
        theirs = other.canonical
        if any(theirs.get(k) != canonical.get(k) for k in physics.parts["model"]):
            continue
        slips = all(theirs.get(k) == canonical.get(k) for k in physics.parts["slip"])
        # a mesh that is to have an accuracy depends on the sources
        if slips or campaign.model.mesh.accuracy is None:
            model = model or other.id
        if not slips:
            continue
        try:
            stored = physics.quality(parse_campaign(theirs))
        except SpecError:
            continue
        if other.group_s and physics.serves(stored, wanted):
            sources = sources or other.id
    return ReusePlan(model=model, sources=sources)


def _warnings(
    campaign: Campaign, inputs: Inputs, needs: dict[str, Any], count: int
) -> list[WarningResponse]:
    shape = geometry(campaign, inputs)
    near = [
        _near_a_side(number, fault["outline"], shape["domain"], needs.get("room"))
        for number, fault in enumerate(shape["faults"])
    ]
    few = [
        _few_data(number, inversion, inputs, count)
        for number, inversion in enumerate(campaign.inversions)
    ]
    coarse = _coarse(campaign, inputs, needs.get("mesh"))
    faint = [
        warning
        for number, inversion in enumerate(campaign.inversions)
        for warning in _faint(number, inversion, campaign, inputs)
    ]
    found = (*near, *few, *coarse, *faint)
    return [warning for warning in found if warning is not None]


def _faint(
    number: int, inversion: Inversion, campaign: Campaign, inputs: Inputs
) -> list[WarningResponse]:
    """Warn of sources that hardly move any datum, by a half-space."""
    known = inputs.datasets, inputs.frame
    return [
        WarningResponse(
            path=f"inversions[{number}].datasets",
            message=f"hardly see {one['faint']} of {one['of']} unit sources on the "
            f"fault {one['fault']}: {_lost(one['least'])} there is lost in errors "
            "of data (estimated in a half-space), and the prior decides",
            hint="add data near them, or leave that part out of the fault",
        )
        for one in entry.faint_sources(campaign, inversion, *known)
    ]


def _lost(least: float) -> str:
    return f"slip of up to {least:.2g} m" if isfinite(least) else "any slip"


def _coarse(
    campaign: Campaign, inputs: Inputs, mesh: dict[str, Any] | None
) -> list[WarningResponse]:
    """Warn of grids on planes that edges of the mesh are too long for."""
    planes = {f.name: f.plane for f in campaign.model.faults if f.plane is not None}
    warnings = []
    for number, grid in enumerate(campaign.grids):
        if mesh is None or grid.fault not in planes:
            continue
        fault = plane_fault(grid.fault, planes[grid.fault], inputs.frame)
        cell = min(_spacing(grid, fault.length, fault.width)) / KM
        if mesh["fault"] <= LONGEST_EDGE * cell:
            continue
        several = isinstance(campaign.sources, list)
        warnings.append(
            WarningResponse(
                path=f"sources[{number}]" if several else "sources",
                message=f"are {cell:.2g} km apart on the fault {grid.fault}, and edges "
                f"of its elements are {mesh['fault']:.2g} km long: too long to tell "
                "neighbours apart",
                hint=f"ask for fewer sources, or for mesh.size.fault of {cell / 2:.2g}",
            )
        )
    return warnings


def _spacing(grid: Sources, length: float, width: float) -> tuple[float, float]:
    """Distance of neighbouring unit sources along strike and down dip, m."""
    edges = grid.edges
    if edges is None:
        return length / grid.along_strike, width / grid.down_dip
    return (
        bspline_spacing(length, grid.along_strike, (edges.start, edges.end)),
        bspline_spacing(width, grid.down_dip, (edges.top, edges.bottom)),
    )


def _near_a_side(
    number: int,
    outline: list[list[float]],
    domain: dict[str, Any],
    room: float | None,
) -> WarningResponse | None:
    if not outline:
        return None
    if room is not None:
        return _without_room(number, outline, domain, room)
    spans = [max(p[i] for p in outline) - min(p[i] for p in outline) for i in (0, 1)]
    size = max(*spans, -min(p[2] for p in outline))
    sides = [
        abs(edge - p[i])
        for p in outline
        for i, axis in enumerate(("x", "y"))
        for edge in domain[axis]
    ]
    gap = min([*sides, *(domain["depth"] + p[2] for p in outline)])
    if gap >= NEAR * size:
        return None
    return WarningResponse(
        path=f"model.faults[{number}]",
        message=f"is {gap:.0f} km from a side of the domain, and {size:.0f} km large: "
        "the side is felt in the displacements",
        hint=f"leave at least {NEAR * size:.0f} km on all sides; far elements are "
        "cheap",
    )


def _without_room(
    number: int, outline: list[list[float]], domain: dict[str, Any], room: float
) -> WarningResponse | None:
    """Warn of sides that hold a static displacement, by the fault's farthest edge."""
    middle = [sum(p[i] for p in outline) / len(outline) for i in (0, 1)]
    reach = max(dist(p, [*middle, 0.0]) for p in outline)
    sides = [abs(edge - m) for m, xy in zip(middle, "xy", strict=True)
             for edge in domain[xy]]  # fmt: skip
    gap = min(*sides, domain["depth"])
    if gap >= room * reach:
        return None
    return WarningResponse(
        path=f"model.faults[{number}]",
        message=f"reaches {reach:.0f} km from the ground above its middle, and a "
        f"side of the domain is {gap:.0f} km from there: permanent offsets are more "
        "than 3 % wrong",
        hint=f"leave at least {ceil(room * reach)} km on all sides and below",
    )


def _few_data(
    number: int, inversion: Inversion, inputs: Inputs, count: int
) -> WarningResponse | None:
    known = [inputs.datasets[n] for n in inversion.datasets if n in inputs.datasets]
    data = sum(len(rows) for rows in known)
    if not 0 < data < count:
        return None
    return WarningResponse(
        path=f"inversions[{number}]",
        message=f"has {data} data for {count} unit sources: where they see nothing, "
        "the smoothness decides",
        hint="read the resolution in the report, or ask for fewer sources",
    )
