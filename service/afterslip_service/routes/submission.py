"""Requests checked to the last file before anything is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from afterslip.earths import asked_for, earth_problems, named
from afterslip.errors import Problem, SpecError
from afterslip.identity import campaign_digest, canonical_spec, plain
from afterslip.physics.registry import find
from afterslip.readers.rows import Rows
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.constraints import constraint_problems
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset
from afterslip.schemas.validation import validate
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
from afterslip_service.db import awaited, campaigns, inversions, jobs
from afterslip_service.db.jobs import NewJob
from afterslip_service.db.session import Connection
from afterslip_service.engine.access import Principal
from afterslip_service.engine.states import JobKind
from afterslip_service.errors import ConflictError
from afterslip_service.http.access import must_own
from afterslip_service.http.deps import Service
from afterslip_service.routes import limits, named_datasets, named_earths
from afterslip_workers import entry

# alternatives of one change together
Others = list[list["CheckedCampaign"]]


@dataclass(frozen=True, slots=True)
class CheckedCampaign:
    """A campaign that may be recorded.

    Attributes
    ----------
    spec : as the user wrote it, with the files by digest.
    canonical : in canonical form, which workers read.
    others : for each inversion the campaigns in other earths that it asks for.
    """

    name: str
    spec: dict[str, Any]
    canonical: dict[str, Any]
    digest: str
    physics: str
    inversions: tuple[Inversion, ...]
    others: tuple[Others, ...] = ()
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
    named_earths.check(service, principal, canonical_spec(campaign, service.files))
    others = [_all_checked(service, made) for made in check_others(service, campaign)]
    return _checked(service, campaign, tuple(others))


def _checked(
    service: Service, campaign: Campaign, others: tuple[Others, ...] = ()
) -> CheckedCampaign:
    if service.files.local is not None:
        # what was named by a path on the server is stored like an upload
        for _, content in contents(campaign, service.files).values():
            entry.keep_content(service.settings.store, content)
    return CheckedCampaign(
        name=campaign.name,
        spec=campaign.to_dict(),
        canonical=canonical_spec(campaign, service.files),
        digest=campaign_digest(campaign, service.files),
        physics=campaign.physics,
        inversions=tuple(campaign.inversions),
        others=others,
        priority=campaign.priority or 0,
    )


def _all_checked(service: Service, made: list[list[Campaign]]) -> Others:
    return [[_checked(service, one) for one in group] for group in made]


def check_others(service: Service, campaign: Campaign) -> list[list[list[Campaign]]]:
    """Check the campaigns in other earths that a spec's inversions ask for.

    Raises
    ------
    SpecError
        With every problem found, at the change that causes it.
    """
    found, problems = [], []
    for index, request in enumerate(campaign.inversions):
        try:
            found.append(_made_for(service, campaign, request))
        except SpecError as error:
            problems += [one.under(f"inversions[{index}]") for one in error.problems]
    if problems:
        raise SpecError(problems)
    return found


def _made_for(
    service: Service, campaign: Campaign, request: Inversion
) -> list[list[Campaign]]:
    """Hold the campaigns in other earths of one inversion to what is allowed."""
    found = asked_for(campaign, request)
    for path, group in zip(request.model_error.perturb or {}, found, strict=True):
        try:
            for one in group:
                _inputs_of(service, one)
        except SpecError as error:
            here = f"model_error.perturb.{path}"
            texts = [(p, f"makes {p.path} {p.message}") for p in error.problems]
            raise SpecError(
                [Problem(here, p.value, text, p.hint) for p, text in texts]
            ) from None
    return found


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
    return campaign, _inputs_of(service, campaign)


def _inputs_of(service: Service, campaign: Campaign) -> Inputs:
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
    _check_inversions(service, campaign, inputs)
    limits.check_elements(service, campaign, inputs)
    limits.check_machine(service, campaign, inputs)
    return inputs


def _check_inversions(service: Service, campaign: Campaign, inputs: Inputs) -> None:
    settings = {dataset.name: dataset for dataset in campaign.datasets}
    for index, request in enumerate(campaign.inversions):
        try:
            limits.check_inversion(
                service, campaign, request, settings, inputs.datasets
            )
        except SpecError as error:
            here = f"inversions[{index}]"
            raise SpecError([one.under(here) for one in error.problems]) from None


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
        others = _write_others(connection, checked.others[index], owner)
        request = named(inversion, others)
        _write_inversion(connection, identity, index, request, [], owner)
    return identity


def _write_others(
    connection: Connection, others: Others, owner: str | None
) -> list[list[str]]:
    """Write the campaigns of an inversion that are not there yet; return all ids."""
    return [
        [
            awaited.there(connection, one.digest, owner)
            or write_campaign(connection, one, owner)
            for one in group
        ]
        for group in others
    ]


@dataclass(frozen=True, slots=True)
class CheckedInversion:
    """An inversion that may be recorded, with data sets beside the spec's."""

    campaign: str
    owner: str | None
    request: Inversion
    extra: list[dict[str, Any]]
    others: Others


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
        found = named_datasets.uploaded(connection, campaign, request, principal.user)
        named_there = named_earths.specs(connection, principal, request)
    spec = parse_stored(campaign.canonical)
    problems = [
        *constraint_problems(
            request.sign, request.constraints, spec.components_of_faults
        ),
        *moment_problems(spec, request),
        *_prior_problems(request),
        *earth_problems(spec, request, named_there),
    ]
    try:
        _check_data(service, spec, request, found)
    except SpecError as error:
        problems += error.problems
    try:
        others = _all_checked(service, _made_for(service, spec, request))
    except SpecError as error:
        problems += error.problems
    if problems:
        raise SpecError(problems)
    extra = [plain(item) for item in found]
    return CheckedInversion(identity, principal.user, request, extra, others)


def _check_data(
    service: Service, spec: Campaign, request: Inversion, found: list[Dataset]
) -> None:
    """Check the data of a request, and ``found``, sets that are not the campaign's."""
    known = {item.name: item for item in [*found, *spec.datasets]}
    settings = {name: known[name] for name in request.datasets}
    rows: dict[str, Rows] = {}
    problems: list[Problem] = []
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
    limits.check_inversion(service, spec, request, settings, rows)


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
    others = _write_others(connection, checked.others, checked.owner)
    return _write_inversion(
        connection,
        campaign.id,
        index,
        named(checked.request, others),
        checked.extra,
        checked.owner,
    )


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
