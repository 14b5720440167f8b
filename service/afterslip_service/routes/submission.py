"""Requests checked to the last file before anything is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from afterslip.earths import earth_problems
from afterslip.errors import Problem, SpecError
from afterslip.identity import campaign_digest, canonical_spec, plain
from afterslip.physics.registry import find
from afterslip.readers.rows import Rows
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.constraints import constraint_problems
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset
from afterslip.schemas.validation import nearest, validate
from afterslip.spec import parse_campaign, parse_stored
from afterslip.spec.inputs import (
    Inputs,
    read_dataset,
    read_ground_plan,
    request_problems,
    resolve,
)
from afterslip.spec.reach import moment_problems
from afterslip.spec.references import contents
from afterslip_service import clock
from afterslip_service.db import campaigns, datasets, inversions, jobs
from afterslip_service.db.campaigns import Campaign as Stored
from afterslip_service.db.jobs import NewJob
from afterslip_service.db.session import Connection
from afterslip_service.engine.access import Principal
from afterslip_service.engine.states import CampaignState, JobKind
from afterslip_service.errors import ConflictError, ForbiddenError, MissingError
from afterslip_service.http.access import must_own
from afterslip_service.http.deps import Service
from afterslip_service.routes import limits
from afterslip_workers import entry


@dataclass(frozen=True, slots=True)
class CheckedCampaign:
    """A campaign that may be recorded.

    Attributes
    ----------
    spec : as the user wrote it, with the files by digest.
    canonical : in canonical form, which workers read.
    """

    name: str
    spec: dict[str, Any]
    canonical: dict[str, Any]
    digest: str
    physics: str
    inversions: tuple[Inversion, ...]
    priority: int = 0


def check_campaign(
    service: Service, principal: Principal, data: Any
) -> CheckedCampaign:
    """Check a spec and everything that it names.

    Raises
    ------
    SpecError
        With every problem found. Nothing is left behind.
    """
    campaign, _ = read_campaign(service, data)
    canonical = canonical_spec(campaign, service.files)
    check_earths(service, principal, canonical)
    if service.files.local is not None:
        # what was named by a path on the server is stored like an upload
        for _, content in contents(campaign, service.files).values():
            entry.keep_content(service.settings.store, content)
    return CheckedCampaign(
        name=campaign.name,
        spec=campaign.to_dict(),
        canonical=canonical,
        digest=campaign_digest(campaign, service.files),
        physics=campaign.physics,
        inversions=tuple(campaign.inversions),
        priority=campaign.priority or 0,
    )


def read_campaign(service: Service, data: Any) -> tuple[Campaign, Inputs]:
    """Read a spec with its files, and hold them to what the service allows.

    Raises
    ------
    SpecError
        With every problem found.
    """
    if not isinstance(data, dict):
        raise SpecError([Problem("", None, "must be a mapping of keys to values")])
    campaign = parse_campaign(data)
    limits.check_sources(service, campaign)
    limits.check_files(service, campaign)
    problems = [
        problem.under(f"inversions[{index}]")
        for index, inversion in enumerate(campaign.inversions)
        for problem in _prior_problems(inversion)
    ]
    if problems:
        raise SpecError(problems)
    inputs = resolve(campaign, service.files)
    limits.check_elements(service, campaign, inputs)
    limits.check_machine(service, campaign, inputs)
    return campaign, inputs


def check_earths(
    service: Service, principal: Principal, canonical: dict[str, Any]
) -> None:
    """Check the campaigns in other earths that a spec's inversions name.

    Raises
    ------
    SpecError
        With every problem found.
    """
    spec, problems = parse_stored(canonical), []
    for index, request in enumerate(spec.inversions):
        try:
            with service.database.read() as connection:
                others = _other_earths(connection, principal, request)
            found = list(earth_problems(spec, request, others))
        except SpecError as error:
            found = list(error.problems)
        problems += [problem.under(f"inversions[{index}]") for problem in found]
    if problems:
        raise SpecError(problems)


def write_campaign(
    connection: Connection, checked: CheckedCampaign, owner: str | None
) -> str:
    """Write a campaign with its first jobs and return its id."""
    identity = campaigns.create(
        connection,
        name=checked.name,
        digest=checked.digest,
        physics=checked.physics,
        spec=checked.spec,
        canonical=checked.canonical,
        owner=owner,
        priority=checked.priority,
    )
    jobs.create(connection, identity, [NewJob(JobKind.MODEL, 0)])
    for index, inversion in enumerate(checked.inversions):
        _write_inversion(connection, identity, index, inversion, [], owner)
    return identity


@dataclass(frozen=True, slots=True)
class CheckedInversion:
    """An inversion that may be recorded, with data sets beside the spec's."""

    campaign: str
    owner: str | None
    request: Inversion
    extra: list[dict[str, Any]]


def check_inversion(
    service: Service, principal: Principal, data: dict[str, Any]
) -> CheckedInversion:
    """Check the request of an inversion against its campaign.

    Raises
    ------
    SpecError
        With every problem found, also in data sets that were uploaded.
    MissingError
        If there is no such campaign.
    ForbiddenError
        If it belongs to somebody else.
    """
    asked = dict(data)
    identity = asked.pop("campaign", None)
    if not isinstance(identity, str):
        hint = "add campaign: the id of a campaign"
        raise SpecError([Problem("campaign", identity, "is missing", hint)])
    request = validate(Inversion, asked)
    with service.database.read() as connection:
        must_own(connection, principal, identity)
        campaign = campaigns.get(connection, identity)
        if not find(campaign.physics).inverts:
            text = f"has Green's functions of {campaign.physics}: they are not inverted"
            hint = "name a campaign of another physics, as its spec says"
            raise SpecError([Problem("campaign", identity, text, hint)])
        found = _find_datasets(connection, campaign, request, principal.user)
        others = _other_earths(connection, principal, request)
    spec = parse_stored(campaign.canonical)
    problems = list(
        constraint_problems(
            request.sign, request.constraints, spec.components_of_faults
        )
    )
    problems += moment_problems(spec, request)
    problems += _prior_problems(request)
    problems += earth_problems(spec, request, others)
    known = {item.name: item for item in [*found, *spec.datasets]}
    settings = {name: known[name] for name in request.datasets}
    rows: dict[str, Rows] = {}
    for name, dataset in settings.items():
        try:
            rows[name] = read_dataset(dataset, spec.model, spec.end, service.files)
        except SpecError as error:
            problems += [item.under(name) for item in error.problems]
    if not problems:
        inputs = read_ground_plan(spec, service.files)
        problems += request_problems(spec, request, settings, rows, inputs)
    if problems:
        raise SpecError(problems)
    extra = [plain(item) for item in found]
    return CheckedInversion(identity, principal.user, request, extra)


def _other_earths(
    connection: Connection, principal: Principal, request: Inversion
) -> dict[str, Campaign]:
    """Return the specs of the campaigns whose earths an inversion compares with.

    Raises
    ------
    SpecError
        There is no such campaign, it is somebody else's, or has no Green's functions.
    """
    found, problems = {}, []
    for path, identity in request.model_error.places():
        try:
            must_own(connection, principal, identity)
        except (MissingError, ForbiddenError) as error:
            hint = "name a campaign of yours by its id"
            problems.append(Problem(path, identity, str(error), hint))
            continue
        other = campaigns.get(connection, identity)
        if not find(other.physics).inverts:
            text = f"has Green's functions of {other.physics}: they are not inverted"
            problems.append(Problem(path, identity, text))
        elif other.state is not CampaignState.COMPLETE:
            text = f"is {other.state.value}: it has no Green's functions to compare"
            problems.append(Problem(path, identity, text, "wait until it is complete"))
        found[identity] = parse_stored(other.canonical)
    if problems:
        raise SpecError(problems)
    return found


def _prior_problems(request: Inversion) -> list[Problem]:
    """Only the solver knows its priors and their parameters."""
    wrong = entry.check_prior(request.prior)
    if wrong is None:
        return []
    return [Problem("prior", plain(request.prior), "cannot be used", wrong)]


def write_inversion(connection: Connection, checked: CheckedInversion) -> str:
    """Write an inversion on a campaign and return its id.

    Raises
    ------
    ConflictError
        If the campaign will never have Green's functions.
    """
    campaign = campaigns.get(connection, checked.campaign, lock=True)
    if campaign.cancelling:
        raise ConflictError(
            f"the campaign {campaign.name!r} is cancelled: uncancel it first"
        )
    index = inversions.count(connection, campaign.id)
    return _write_inversion(
        connection,
        campaign.id,
        index,
        checked.request,
        checked.extra,
        checked.owner,
    )


def _find_datasets(
    connection: Connection,
    campaign: Stored,
    request: Inversion,
    user: str | None,
) -> list[Dataset]:
    """Return the uploaded data sets that a request names beside the spec's own."""
    own = [item["name"] for item in campaign.canonical.get("datasets", [])]
    found, problems = [], []
    for index, name in enumerate(request.datasets):
        if name in own:
            continue
        try:
            content = {**datasets.find(connection, name, user).content, "name": name}
            found.append(validate(Dataset, content))
        except MissingError:
            near = nearest(name, own)
            hint = f"did you mean {near}?" if near else "upload it as a data set first"
            problems.append(
                Problem(f"datasets[{index}]", name, "is not a data set", hint)
            )
    if problems:
        raise SpecError(problems)
    return found


def _write_inversion(
    connection: Connection,
    campaign: str,
    index: int,
    request: Inversion,
    extra: list[dict[str, Any]],
    owner: str | None,
) -> str:
    """Write an inversion and its job.

    The worker reads ``spec.datasets``; data sets that came later travel with the
    request.
    """
    identity = clock.new_id()
    asked: dict[str, Any] = plain(request)
    payload = {"id": identity, **asked, "extra_datasets": extra}
    (job,) = jobs.create(
        connection, campaign, [NewJob(JobKind.INVERSION, index, payload)]
    )
    inversions.create(
        connection,
        identity=identity,
        campaign=campaign,
        job=job,
        name=request.name,
        request=asked,
        owner=owner,
    )
    return identity
