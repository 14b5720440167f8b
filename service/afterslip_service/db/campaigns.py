"""Campaigns in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip.physics.registry import DEFAULT
from afterslip_service import clock
from afterslip_service.db import events, queue
from afterslip_service.db.tables import CANCELLING_CAMPAIGN, campaigns, jobs
from afterslip_service.engine.campaign import JobTally, derive, greens_done
from afterslip_service.engine.states import CampaignState, JobKind, JobState
from afterslip_service.errors import MissingError

c = campaigns.c

BRIEF = [column for column in c if column.name not in {"spec", "canonical", "model"}]

# accepted groups from whose durations the rest is estimated
RECENT = 15


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign as the database knows it."""

    id: str
    name: str
    owner: str | None
    state: CampaignState
    digest: str
    physics: str
    spec: dict[str, Any]
    canonical: dict[str, Any]
    model: dict[str, Any] | None
    n_sources: int | None
    paused: bool
    cancelling: bool
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    error_class: str | None
    error_message: str | None
    priority: int = 0
    recent: tuple[float, ...] = ()
    tags: tuple[str, ...] = ()


def create(
    connection: Connection,
    *,
    name: str,
    digest: str,
    spec: dict[str, Any],
    canonical: dict[str, Any],
    physics: str = DEFAULT,
    owner: str | None = None,
    priority: int = 0,
) -> str:
    """Write a new campaign and return its id."""
    identity = clock.new_id()
    now = clock.now()
    connection.execute(
        campaigns.insert().values(
            id=identity,
            name=name,
            owner=owner,
            state=CampaignState.WAITING,
            digest=digest,
            physics=physics,
            spec=spec,
            canonical=canonical,
            paused=False,
            cancelling=False,
            created_at=now,
            updated_at=now,
            priority=priority,
            turn=queue.join(connection, owner),
        )
    )
    data = {"state": CampaignState.WAITING, "name": name}
    events.append(connection, identity, events.CAMPAIGN_STATE, data)
    return identity


def get(
    connection: Connection,
    identity: str,
    *,
    lock: bool = False,
    deleted: bool = False,
) -> Campaign:
    """Return a campaign, also one that was deleted if asked for.

    Raises
    ------
    MissingError
        If there is none of that id, or it was deleted.
    """
    query = sa.select(campaigns).where(campaigns.c.id == identity)
    if not deleted:
        query = query.where(campaigns.c.deleted_at.is_(None))
    if lock:
        query = query.with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise MissingError("campaign", identity)
    return _campaign(row)


@dataclass(frozen=True, slots=True)
class Held:
    """A campaign whose row is locked, without its documents."""

    id: str
    name: str
    paused: bool
    cancelling: bool
    deleted: bool


def hold(connection: Connection, identity: str) -> Held:
    """Lock a campaign, also a deleted one, and return what decisions need."""
    found = (c.id, c.name, c.paused, c.cancelling, c.deleted_at)
    query = sa.select(*found).where(c.id == identity)
    row = connection.execute(query.with_for_update()).one()
    deleted = row.deleted_at is not None
    return Held(row.id, row.name, row.paused, row.cancelling, deleted)


def page(
    connection: Connection,
    *,
    before: str | None,
    limit: int,
    state: CampaignState | None = None,
    digest: str | None = None,
    tag: str | None = None,
) -> list[Campaign]:
    """Return campaigns, newest first, from the one after ``before``.

    Their documents (spec, canonical form, model) are left empty: lists show none.
    """
    query = sa.select(*BRIEF).where(campaigns.c.deleted_at.is_(None))
    if before is not None:
        query = query.where(campaigns.c.id < before)
    if state is not None:
        query = query.where(campaigns.c.state == state)
    if digest is not None:
        query = query.where(campaigns.c.digest == digest)
    if tag is not None:
        query = query.where(campaigns.c.tags.contains(f",{tag},", autoescape=True))
    rows = connection.execute(query.order_by(campaigns.c.id.desc()).limit(limit))
    return [_campaign(row) for row in rows]


def tallies(
    connection: Connection, identities: Collection[str]
) -> dict[str, dict[JobKind, dict[JobState, int]]]:
    """Return the number of jobs by campaign, kind and state."""
    query = (
        sa.select(jobs.c.campaign_id, jobs.c.kind, jobs.c.state, sa.func.count())
        .where(jobs.c.campaign_id.in_(identities))
        .group_by(jobs.c.campaign_id, jobs.c.kind, jobs.c.state)
    )
    out: dict[str, dict[JobKind, dict[JobState, int]]] = {i: {} for i in identities}
    for campaign, kind, state, count in connection.execute(query):
        out[campaign].setdefault(JobKind(kind), {})[JobState(state)] = count
    return out


def job_tally(connection: Connection, campaign: Campaign) -> JobTally:
    """Return what the campaign's state is derived from."""
    return JobTally(
        jobs=tallies(connection, [campaign.id])[campaign.id],
        paused=campaign.paused,
        cancelling=campaign.cancelling,
        finished=campaign.finished_at is not None,
    )


def refresh(connection: Connection, identity: str) -> CampaignState:
    """Derive the state anew from the jobs, in the transaction that changed them."""
    refresh_all(connection, [identity])
    query = sa.select(campaigns.c.state).where(campaigns.c.id == identity)
    return CampaignState(connection.execute(query).scalar_one())


def refresh_all(
    connection: Connection,
    identities: Collection[str],
    took: Mapping[str, Sequence[float]] | None = None,
) -> list[str]:
    """Derive the states of some campaigns, and when their next jobs may start.

    Parameters
    ----------
    took : s that groups took which were accepted just now, by campaign, the latest
        last; what is left will take as long.

    Returns
    -------
    Those whose groups are all accepted and that are not closed yet.
    """
    if not identities:
        return []
    parts = (c.id, c.name, c.state, c.paused, c.cancelling, c.finished_at, c.recent)
    rows = connection.execute(
        sa.select(*parts).where(c.id.in_(identities)).order_by(c.id).with_for_update()
    ).all()
    counts = tallies(connection, identities)
    done, changed = [], {}
    for row in rows:
        tally = JobTally(
            jobs=counts[row.id],
            paused=row.paused,
            cancelling=row.cancelling,
            finished=row.finished_at is not None,
        )
        state = derive(tally)
        if state != row.state:
            changed[row.id] = state
            data = {"state": state, "was": row.state, "name": row.name}
            events.append(connection, row.id, events.CAMPAIGN_STATE, data)
        if row.finished_at is None and greens_done(tally):
            done.append(row.id)
    _set_states(connection, changed)
    # a row is wide and has many indexes: all the rest is written at once
    values = {"updated_at": clock.now(), "wake_at": queue.wake_at()}
    newest = [
        {"identity": row.id, "newest": [*(row.recent or []), *took[row.id]][-RECENT:]}
        for row in rows
        if took and row.id in took
    ]
    if newest:
        connection.execute(
            campaigns.update()
            .where(c.id == sa.bindparam("identity"))
            .values(recent=sa.bindparam("newest", type_=sa.JSON), **values),
            newest,
        )
    others = set(identities).difference(took or ())
    if others:
        connection.execute(campaigns.update().where(c.id.in_(others)).values(**values))
    return done


def _set_states(connection: Connection, states: dict[str, CampaignState]) -> None:
    """Write states; what was wrong is forgotten where it is so no longer."""
    with_error = {CampaignState.FAILED, CampaignState.PAUSED}
    for forget in (True, False):
        rows = [
            {"identity": identity, "new": state}
            for identity, state in states.items()
            if (state not in with_error) is forget
        ]
        if rows:
            gone = {"error_class": None, "error_message": None} if forget else {}
            connection.execute(
                campaigns.update()
                .where(c.id == sa.bindparam("identity"))
                .values(state=sa.bindparam("new"), **gone),
                rows,
            )


def set_model(
    connection: Connection, identity: str, model: dict[str, Any], n_sources: int
) -> None:
    """Keep the facts of the model that was built."""
    _update(connection, identity, model=model, n_sources=n_sources)


def physics(connection: Connection, identity: str) -> str:
    """Return the name of a campaign's physics."""
    query = sa.select(c.physics).where(c.id == identity)
    return str(connection.execute(query).scalar_one())


def set_error(
    connection: Connection, identity: str, error_class: str, message: str
) -> None:
    """Say what is wrong with a campaign."""
    _update(connection, identity, error_class=error_class, error_message=message)


def set_fields(
    connection: Connection,
    identity: str,
    *,
    name: str | None = None,
    priority: int | None = None,
    tags: Sequence[str] | None = None,
) -> None:
    """Change what a user calls a campaign, its tags, and how soon it is served."""
    joined = None if tags is None else "".join(f",{tag}" for tag in tags)
    given = {"name": name, "priority": priority, "tags": joined and f"{joined},"}
    values = {key: value for key, value in given.items() if value is not None}
    _update(connection, identity, **values)


def set_paused(connection: Connection, identity: str, paused: bool) -> None:
    """Stop or go on serving the campaign's jobs."""
    values: dict[str, Any] = {"paused": paused}
    if not paused:
        values |= {"error_class": None, "error_message": None}
        values["resumed_at"] = clock.now()
    _update(connection, identity, **values)


def resumed_since(connection: Connection, identity: str, moment: datetime) -> bool:
    """Tell whether a campaign was resumed after a moment."""
    query = sa.select(c.resumed_at).where(c.id == identity)
    resumed = connection.execute(query).scalar_one()
    return resumed is not None and resumed > moment


def set_cancelling(
    connection: Connection, identity: str, cancelling: bool = True
) -> None:
    """Remember that the campaign is to be cancelled, or is not to be any more."""
    _update(connection, identity, cancelling=cancelling)


def set_finished(connection: Connection, identity: str) -> None:
    """Mark the Green's functions complete."""
    _update(connection, identity, finished_at=clock.now())


def set_unfinished(connection: Connection, identity: str) -> None:
    """Open the Green's functions again: some groups are to be solved anew."""
    _update(connection, identity, finished_at=None)


def set_deleted(connection: Connection, identity: str) -> None:
    """Hide a campaign; its Green's functions stay in the store."""
    _update(connection, identity, deleted_at=clock.now())


def cancelling(connection: Connection) -> list[str]:
    """Return the campaigns that are to be cancelled and are not yet."""
    query = sa.select(c.id).where(sa.text(CANCELLING_CAMPAIGN))
    return list(connection.execute(query).scalars())


def unfinished(connection: Connection) -> list[str]:
    """Return the campaigns whose groups are all accepted, but not closed."""
    groups = (jobs.c.campaign_id == c.id) & (jobs.c.kind == JobKind.GROUP)
    query = sa.select(c.id).where(
        c.finished_at.is_(None),
        c.wake_at.is_(None),  # else a group waits, which costs no look at the jobs
        c.state.in_([CampaignState.RUNNING, CampaignState.PAUSED]),
        sa.exists().where(groups),
        ~sa.exists().where(groups, jobs.c.state != JobState.ACCEPTED),
    )
    return list(connection.execute(query).scalars())


def _update(connection: Connection, identity: str, **values: Any) -> None:
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id == identity)
        .values({"updated_at": clock.now(), **values})
    )


def _campaign(row: sa.Row[Any]) -> Campaign:
    return Campaign(
        id=row.id,
        name=row.name,
        owner=row.owner,
        state=CampaignState(row.state),
        digest=row.digest,
        physics=row.physics,
        spec=row.spec if "spec" in row._fields else {},
        canonical=row.canonical if "canonical" in row._fields else {},
        model=row.model if "model" in row._fields else None,
        n_sources=row.n_sources,
        paused=row.paused,
        cancelling=row.cancelling,
        created_at=row.created_at,
        updated_at=row.updated_at,
        finished_at=row.finished_at,
        error_class=row.error_class,
        error_message=row.error_message,
        priority=row.priority,
        recent=tuple(row.recent or ()),
        tags=tuple(filter(None, row.tags.split(","))),
    )
