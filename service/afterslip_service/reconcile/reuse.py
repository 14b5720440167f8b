"""Which unit sources of a new campaign are stored already, and which are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from afterslip.physics.base import Physics
from afterslip.physics.registry import find
from afterslip_service.db import campaigns, jobs, sources
from afterslip_service.db.claims import Claim
from afterslip_service.db.session import Connection
from afterslip_service.db.sources import Source
from afterslip_service.db.twins import AGAIN
from afterslip_service.engine.states import JobKind
from afterslip_service.reconcile.context import Context
from afterslip_workers import entry
from afterslip_workers.messages import GroupManifest, ModelManifest, Origin

log = structlog.get_logger()


@dataclass(slots=True)
class Plan:
    """The groups of a campaign.

    Attributes
    ----------
    payloads : {"sources", "taken"} of each group; ``taken`` says of places in the
        store from where their numbers come.
    sources : of the campaign, in the order of its store.
    n_reused : sources that are not to be solved.
    """

    payloads: list[dict[str, Any]]
    sources: list[Source] = field(default_factory=list)
    n_reused: int = 0

    @classmethod
    def plain(cls, manifest: ModelManifest) -> Plan:
        """Return the plan that solves everything, as the model's task grouped it."""
        return cls([{"sources": group} for group in manifest.groups])


def arrange(context: Context, campaign: str, manifest: ModelManifest) -> Plan:
    """Plan the groups of a campaign whose model is built; may be repeated.

    Sources that an accepted attempt anywhere has stored come first in the store,
    the others behind them, so that both fill groups; unless a dispatcher that did not
    get to write its plan has recorded another order before.

    Raises
    ------
    SpecError
        If the campaign's physics is not installed here.
    """
    wanted = _wanted(campaign, manifest)
    if not wanted:
        return Plan.plain(manifest)
    with context.database.read() as connection:
        physics = find(campaigns.physics(connection, campaign))
        keys = {source.key for source in wanted}
        known = sources.known(connection, keys, physics.name)
        chosen = [
            _choose(physics, source, known.get(source.key, [])) for source in wanted
        ]
        tokens = {found.token for found in chosen if found and found.token}
        files = sources.files_of(connection, tokens)
    # neighbours there are neighbours here: whole files can then be shared
    hits = sorted(
        (index for index, found in enumerate(chosen) if found is not None),
        key=lambda index: _place(chosen[index]),
    )
    order = hits + [index for index, found in enumerate(chosen) if found is None]
    # also where nothing is taken: another dispatcher may have found something
    order = entry.arrange(context.store, campaign, order)
    if hits:
        log.info("sources reused", campaign=campaign, reused=len(hits), of=len(order))
    payloads = []
    size = physics.group_size
    for first in range(0, len(order), size):
        places = list(range(first, min(first + size, len(order))))
        payload: dict[str, Any] = {"sources": places}
        taken = {
            str(place): _origin(found, files).as_json()
            for place in places
            if (found := chosen[order[place]]) is not None
        }
        payloads.append(payload | ({"taken": taken} if taken else {}))
    planned = [
        Source(**{**_values(wanted[index]), "position": place})
        for place, index in enumerate(order)
    ]
    return Plan(payloads, planned, len(hits))


def look_again(connection: Connection, claimed: Sequence[Claim]) -> None:
    """Copy what other campaigns have solved since the groups were planned."""
    for claim in claimed:
        job = claim.job
        if job.kind is not JobKind.GROUP or job.payload.get(AGAIN):
            continue
        taken = dict(job.payload.get("taken") or {})
        places = [p for p in job.payload.get("sources", []) if str(p) not in taken]
        wanted = sources.of_campaign(connection, job.campaign_id, places)
        known = sources.known(connection, {s.key for s in wanted}, claim.physics)
        if not known:
            continue
        physics = find(claim.physics)
        found = {s.position: _choose(physics, s, known.get(s.key, [])) for s in wanted}
        chosen = {place: source for place, source in found.items() if source}
        if not chosen:
            continue
        tokens = {source.token for source in chosen.values() if source.token}
        files = sources.files_of(connection, tokens)
        taken |= {
            str(place): _origin(source, files).as_json()
            for place, source in chosen.items()
        }
        job.payload["taken"] = taken
        jobs.set_payload(connection, job.id, job.payload)
        log.info("sources reused", campaign=job.campaign_id, reused=len(chosen))


def registration(
    campaign: str, token: str, manifest: GroupManifest
) -> list[dict[str, Any]]:
    """Return what an accepted group makes known of its sources."""
    return [
        {
            "campaign": campaign,
            "position": place,
            "token": token,
            "quality": cover.quality,
            "origin": cover.origin,
            "origin_position": cover.origin_position,
        }
        for place, cover in manifest.covers.items()
    ]


def _wanted(campaign: str, manifest: ModelManifest) -> list[Source]:
    """Return the sources of a campaign, in the order in which the spec makes them."""
    facts = manifest.reuse
    if facts is None:
        return []
    return [
        Source(
            campaign_id=campaign,
            position=position,
            key=key,
            slip=slip,
            model=facts.model,
            solver=facts.solver,
            quality=facts.quality,
        )
        for position, (key, slip) in enumerate(
            zip(facts.keys, facts.slips, strict=True)
        )
    ]


def _choose(physics: Physics, wanted: Source, known: Sequence[Source]) -> Source | None:
    """Return the first of some sources of the same key that is good enough."""
    return next(
        (
            found
            for found in known
            if found.campaign_id != wanted.campaign_id
            and physics.serves(found.quality, wanted.quality)
        ),
        None,
    )


def _place(found: Source | None) -> tuple[str, int]:
    return ("", 0) if found is None else (found.campaign_id, found.position)


def _origin(found: Source, files: dict[str, Any]) -> Origin:
    """Return where a worker finds a source, and what it must find there."""
    return Origin(
        campaign=found.campaign_id,
        position=found.position,
        quality=found.quality,
        **files[found.token or ""],
    )


def _values(source: Source) -> dict[str, Any]:
    return {name: getattr(source, name) for name in Source.__dataclass_fields__}
