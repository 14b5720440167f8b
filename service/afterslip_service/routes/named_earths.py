"""Campaigns in other earths that inversions name: there, complete, and comparable."""

from __future__ import annotations

from typing import Any

from afterslip.earths import earth_problems
from afterslip.errors import Problem, SpecError
from afterslip.physics.registry import find
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.inversion import Inversion
from afterslip.spec import parse_stored
from afterslip_service.db import campaigns
from afterslip_service.db.session import Connection
from afterslip_service.engine.access import Principal
from afterslip_service.engine.states import CampaignState
from afterslip_service.errors import ForbiddenError, MissingError
from afterslip_service.http.access import must_own
from afterslip_service.http.deps import Service


def check(service: Service, principal: Principal, canonical: dict[str, Any]) -> None:
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
                others = specs(connection, principal, request)
            found = list(earth_problems(spec, request, others))
        except SpecError as error:
            found = list(error.problems)
        problems += [problem.under(f"inversions[{index}]") for problem in found]
    if problems:
        raise SpecError(problems)


def specs(
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
