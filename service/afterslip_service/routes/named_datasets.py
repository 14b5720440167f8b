"""Data sets that inversions name: the campaign's own, or uploaded ones."""

from __future__ import annotations

from typing import Any

from afterslip.errors import Problem, SpecError
from afterslip.identity import plain
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset
from afterslip.schemas.validation import nearest, validate
from afterslip_service.db import datasets
from afterslip_service.db.campaigns import Campaign
from afterslip_service.db.session import Connection
from afterslip_service.errors import MissingError


def uploaded(
    connection: Connection, campaign: Campaign, request: Inversion, user: str | None
) -> list[Dataset]:
    """Return the uploaded data sets that a request names beside the campaign's own.

    Raises
    ------
    SpecError
        There is no data set of a name, or it may be either of two.
    """
    own = {item["name"]: item for item in campaign.canonical.get("datasets", [])}
    found, problems = [], []
    for index, name in enumerate(request.datasets):
        path = f"datasets[{index}]"
        sent = _find(connection, name, user)
        if name in own:
            if sent is not None and _may_be_meant(sent, campaign, own[name], user):
                problems.append(_ambiguous(path, name, sent))
        elif sent is None:
            near = nearest(name, list(own))
            hint = f"did you mean {near}?" if near else "upload it as a data set first"
            problems.append(Problem(path, name, "is not a data set", hint))
        else:
            found.append(_content(sent, name))
    if problems:
        raise SpecError(problems)
    return found


def _find(
    connection: Connection, name: str, user: str | None
) -> datasets.Dataset | None:
    try:
        return datasets.find(connection, name, user)
    except MissingError:
        return None


def _content(sent: datasets.Dataset, name: str) -> Dataset:
    return validate(Dataset, {**sent.content, "name": name})


def _may_be_meant(
    sent: datasets.Dataset, campaign: Campaign, own: dict[str, Any], user: str | None
) -> bool:
    """Return whether a user may mean an upload by the name of a campaign's own data.

    Not what was there before the campaign, whose spec then chose, nor what somebody
    else uploaded, nor the campaign's own data sent again: its numbers are the same.
    """
    later = sent.owner == user and sent.created_at > campaign.created_at
    return later and plain(_content(sent, own["name"])) != own


def _ambiguous(path: str, name: str, sent: datasets.Dataset) -> Problem:
    return Problem(
        path,
        name,
        "is one of the campaign's own data sets, and one that you uploaded later",
        f"for the uploaded one write its id, {sent.id}, or upload it by another name; "
        "for the campaign's own upload that again, unchanged or by another name",
    )
