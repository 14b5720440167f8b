"""What the API answers, as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from afterslip_service.db.attempts import Attempt
from afterslip_service.db.campaigns import Campaign
from afterslip_service.db.datasets import Dataset
from afterslip_service.db.inversions import Inversion
from afterslip_service.db.jobs import Job
from afterslip_service.engine.explain import remaining_interval_s, remaining_s
from afterslip_service.engine.states import (
    AttemptState,
    CampaignState,
    JobKind,
    JobState,
)

Tallies = dict[JobKind, dict[JobState, int]]


class ErrorResponse(BaseModel):
    """Why something failed."""

    model_config = ConfigDict(populate_by_name=True)

    class_: str = Field(alias="class", description="one word for the kind of failure")
    message: str

    @classmethod
    def of(cls, error_class: str | None, message: str | None) -> ErrorResponse | None:
        """Return the error, None if there is none."""
        if error_class is None:
            return None
        return cls(class_=error_class, message=message or "")


class ProgressResponse(BaseModel):
    """Number of groups by state."""

    total: int = 0
    waiting: int = 0
    queued: int = 0
    running: int = 0
    stored: int = 0
    accepted: int = 0
    failed: int = 0
    cancelled: int = 0

    @classmethod
    def of(cls, tallies: Tallies) -> ProgressResponse:
        """Count the groups."""
        groups = {s.value: n for s, n in tallies.get(JobKind.GROUP, {}).items()}
        return cls(total=sum(groups.values()), **groups)


class CampaignBrief(BaseModel):
    """A campaign in a list."""

    id: str
    name: str
    owner: str | None = Field(description="user that submitted it")
    state: CampaignState
    cancelling: bool = Field(description="cancel was asked for and is under way")
    paused: bool = Field(description="no further jobs are started")
    priority: int = Field(description="higher ones are served first")
    tags: list[str] = Field(description="words to find it by, sorted")
    created_at: datetime
    updated_at: datetime
    digest: str
    physics: str = Field(description="what is computed; decides what spec means")
    progress: ProgressResponse
    n_sources: int | None
    remaining_s: float | None = Field(
        description="until all groups are accepted, at the present pace; null where "
        "nobody can know yet"
    )
    remaining_low_s: float | None = Field(
        description="with remaining_high_s the interval that holds the remaining time "
        "with 90 %, by the spread of the last groups; null before five have ended"
    )
    remaining_high_s: float | None = Field(description="see remaining_low_s")
    error: ErrorResponse | None
    inversions: list[str]
    inversions_failed: int = Field(description="how many of them have failed")
    links: dict[str, str]

    @classmethod
    def fields(
        cls, campaign: Campaign, tallies: Tallies, inversions: list[str]
    ) -> dict[str, Any]:
        """Return the fields that a campaign has in a list."""
        here = f"/v1/campaigns/{campaign.id}"
        ended = tallies.get(JobKind.INVERSION, {})
        groups = tallies.get(JobKind.GROUP, {})
        interval = remaining_interval_s(campaign.recent, groups)
        return {
            "id": campaign.id,
            "name": campaign.name,
            "owner": campaign.owner,
            "state": campaign.state,
            "cancelling": campaign.cancelling,
            "paused": campaign.paused,
            "priority": campaign.priority,
            "tags": list(campaign.tags),
            "created_at": campaign.created_at,
            "updated_at": campaign.updated_at,
            "digest": campaign.digest,
            "physics": campaign.physics,
            "progress": ProgressResponse.of(tallies),
            "n_sources": campaign.n_sources,
            "remaining_s": remaining_s(campaign.recent, groups),
            "remaining_low_s": interval and interval[0],
            "remaining_high_s": interval and interval[1],
            "error": ErrorResponse.of(campaign.error_class, campaign.error_message),
            "inversions": inversions,
            "inversions_failed": ended.get(JobState.FAILED, 0),
            "links": {
                "self": here,
                "greens": f"{here}/greens.zarr",
                "groups": f"{here}/groups",
                "events": f"{here}/events",
            },
        }


class CampaignResponse(CampaignBrief):
    """A campaign with its spec and model."""

    spec: dict[str, Any]
    model: dict[str, Any] | None = Field(
        description="facts of the mesh: n_unknowns, n_elements, quality"
    )
    worker_seconds: float = Field(
        description="s of workers in all attempts so far; GPU-seconds on GPUs"
    )

    @classmethod
    def of(
        cls, campaign: Campaign, tallies: Tallies, inversions: list[str], used: float
    ) -> CampaignResponse:
        """Return a campaign; ``used`` are its worker seconds."""
        own = {"spec": campaign.spec, "model": campaign.model, "worker_seconds": used}
        return cls(**cls.fields(campaign, tallies, inversions), **own)


class CampaignPage(BaseModel):
    """A page of campaigns, newest first."""

    items: list[CampaignBrief]
    next: str | None


class GroupResponse(BaseModel):
    """Unit sources that are solved together."""

    index: int
    state: JobState
    sources: list[int] = Field(description="numbers of the unit sources")
    attempts: int
    worker: str | None = None
    seconds: float | None = None
    solves: int | None = None
    iterations: int | None = None
    residual: float | None = None
    progress: dict[str, Any] | None = Field(
        None,
        description="phase, solves_done, solves_expected, iteration, residual "
        "while it runs",
    )
    error: ErrorResponse | None = None

    @classmethod
    def of(cls, job: Job, latest: Attempt | None) -> GroupResponse:
        """Return a group with what its newest attempt did."""
        stats = (latest.stats if latest else None) or {}
        history = latest.history if latest else []
        live = job.state is JobState.RUNNING and bool(history)
        shown = ("seconds", "solves", "iterations", "residual")
        return cls(
            index=job.index,
            state=job.state,
            sources=job.payload.get("sources", []),
            attempts=job.attempts,
            worker=latest.worker if latest else None,
            progress=history[-1] if live else None,
            error=ErrorResponse.of(job.error_class, job.error_message),
            **{key: _number(stats.get(key)) for key in shown},
        )


class AttemptResponse(BaseModel):
    """One try at a group."""

    token: str
    number: int
    state: AttemptState
    worker: str | None
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: ErrorResponse | None
    stats: dict[str, Any] | None
    history: list[dict[str, Any]] = Field(description="progress, oldest first")
    solves: list[dict[str, Any]] = Field(
        description="of a stored attempt: phase, iterations, seconds, residuals and "
        "curve, pairs of iteration and residual, of each solve"
    )
    log: str | None = Field(description="last lines of what a failed attempt printed")

    @classmethod
    def of(cls, attempt: Attempt) -> AttemptResponse:
        """Return an attempt."""
        return cls(
            token=attempt.token,
            number=attempt.number,
            state=attempt.state,
            worker=attempt.worker,
            queued_at=attempt.queued_at,
            started_at=attempt.started_at,
            finished_at=attempt.finished_at,
            error=ErrorResponse.of(attempt.error_class, attempt.error_message),
            stats=attempt.stats,
            history=attempt.history,
            solves=_solves(attempt.manifest),
            log=attempt.log,
        )


class GroupDetail(BaseModel):
    """A group with every attempt at it."""

    index: int
    state: JobState
    sources: list[int]
    error: ErrorResponse | None
    attempts: list[AttemptResponse]


class GroupPage(BaseModel):
    """A page of groups, by number."""

    items: list[GroupResponse]
    next: str | None


class UploadResponse(BaseModel):
    """An uploaded file; specs name it by ``ref``."""

    ref: str
    size: int


class DatasetResponse(BaseModel):
    """Observations."""

    id: str
    name: str
    owner: str | None
    file: str
    epoch: str | None
    sigma: dict[str, Any] | None
    n_observations: int
    created_at: datetime

    @classmethod
    def of(cls, dataset: Dataset) -> DatasetResponse:
        """Return a data set."""
        return cls(
            id=dataset.id,
            name=dataset.name,
            owner=dataset.owner,
            file=dataset.file,
            epoch=dataset.content.get("epoch"),
            sigma=dataset.content.get("sigma"),
            n_observations=dataset.n_observations,
            created_at=dataset.created_at,
        )


class DatasetPage(BaseModel):
    """A page of data sets, newest first."""

    items: list[DatasetResponse]
    next: str | None


class InversionResponse(BaseModel):
    """An inversion and, once accepted, its figures."""

    id: str
    campaign: str
    name: str
    owner: str | None
    state: JobState
    created_at: datetime
    request: dict[str, Any]
    summary: dict[str, Any] | None = Field(
        description="moment, magnitude, peak_slip, variance_reduction, score"
    )
    error: ErrorResponse | None
    links: dict[str, str]

    @classmethod
    def of(cls, inversion: Inversion) -> InversionResponse:
        """Return an inversion."""
        here = f"/v1/inversions/{inversion.id}"
        return cls(
            id=inversion.id,
            campaign=inversion.campaign_id,
            name=inversion.name,
            owner=inversion.owner,
            state=inversion.state,
            created_at=inversion.created_at,
            request=inversion.request,
            summary=inversion.summary,
            error=ErrorResponse.of(inversion.error_class, inversion.error_message),
            links={
                "self": here,
                "result": f"{here}/result",
                "report": f"{here}/report",
                "plots": f"{here}/plots",
            },
        )


class InversionPage(BaseModel):
    """A page of inversions, newest first."""

    items: list[InversionResponse]
    next: str | None


class PlotPage(BaseModel):
    """A page of the plots of an inversion, by name."""

    items: list[dict[str, str]]
    next: str | None


class WorkerResponse(BaseModel):
    """A worker."""

    name: str
    address: str
    state: str
    slots: int
    facts: dict[str, Any]


class WorkerPage(BaseModel):
    """A page of the workers that the placement knows, by address."""

    items: list[WorkerResponse]
    next: str | None


class Health(BaseModel):
    """Alive."""

    status: str


class Part(BaseModel):
    """One part of the service."""

    ok: bool
    detail: str


class Readiness(BaseModel):
    """Whether every part can do its work."""

    ready: bool
    parts: dict[str, Part]


def _solves(manifest: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return what a stored group says of its solves; a manifest is not ours alone."""
    found = (manifest or {}).get("history") or []
    names = ("phase", "iterations", "seconds", "residuals", "curve")
    return [
        {name: entry[name] for name in names if name in entry}
        for entry in found
        if isinstance(entry, dict)
    ]


def _number(value: Any) -> Any:
    """Return a number, of several lanes the largest; None for anything else."""
    if isinstance(value, list):
        value = max((v for v in value if isinstance(v, int | float)), default=None)
    return value if isinstance(value, int | float) else None
