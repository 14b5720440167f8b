"""A database as it is after years: many campaigns with groups that wait."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from afterslip_common.terms import GROUP_SIZE
from afterslip_service import clock
from afterslip_service.db import migrate
from afterslip_service.db.session import Database, SQLAlchemyError, normal_url
from afterslip_service.db.tables import campaigns, jobs, shares
from afterslip_service.engine.states import CampaignState, JobKind, JobState

LOCAL = "postgresql://postgres@127.0.0.1:5432/postgres"
DIGEST = "benchmark"
BATCH = 500
_LAYERS = [
    {"name": f"layer {k}", "vp": 6.4, "vs": 3.7, "rho": 2800.0, "bottom": 10.0 * k}
    for k in range(8)
]
# about the size of a real spec
SPEC = {"name": "benchmark", "model": {"layers": _LAYERS}, "note": "-" * 1500}


def answers(url: str) -> bool:
    """Tell whether there is a server."""
    engine = sa.create_engine(normal_url(url), connect_args={"connect_timeout": 3})
    try:
        with engine.connect():
            return True
    except SQLAlchemyError:
        return False
    finally:
        engine.dispose()


@contextmanager
def fresh(server: str | None, folder: Path) -> Iterator[str]:
    """Yield the URL of a new database, which is dropped afterwards.

    Parameters
    ----------
    server : URL of a database of a PostgreSQL server; None for a SQLite file in
        ``folder``.
    """
    if server is None:
        yield str(folder / "benchmark.sqlite")
        return
    name = f"afterslip_bench_{secrets.token_hex(6)}"
    base = sa.make_url(normal_url(server))
    engine = sa.create_engine(base, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(f'CREATE DATABASE "{name}"')
        try:
            yield base.set(database=name).render_as_string(hide_password=False)
        finally:
            with engine.connect() as connection:
                connection.exec_driver_sql(f'DROP DATABASE "{name}" WITH (FORCE)')
    finally:
        engine.dispose()


def fill(
    database: Database, store: Path, n_campaigns: int, n_groups: int, users: int
) -> list[str]:
    """Write campaigns whose models are built and whose groups wait.

    Returns
    -------
    Their ids.
    """
    migrate.upgrade(database)
    identities = [clock.new_id() for _ in range(n_campaigns)]
    for start in range(0, n_campaigns, BATCH):
        part = identities[start : start + BATCH]
        with database.write() as connection:
            rows = [
                _campaign(i, f"user {(start + k) % users}", GROUP_SIZE * n_groups)
                for k, i in enumerate(part)
            ]
            connection.execute(campaigns.insert(), rows)
            models = [_job(i, JobKind.MODEL, 0) for i in part]
            groups = [_job(i, JobKind.GROUP, k) for i in part for k in range(n_groups)]
            connection.execute(jobs.insert(), models + groups)
        for identity in part:
            _folder(store, identity, n_groups)
    with database.write() as connection:
        owners = [{"owner": f"user {k}", "turn": 0} for k in range(users)]
        connection.execute(shares.insert(), owners)
    options = {} if database.is_sqlite else {"isolation_level": "AUTOCOMMIT"}
    with database.engine.connect().execution_options(**options) as connection:
        connection.exec_driver_sql("ANALYZE")
    return identities


def _campaign(identity: str, owner: str, n_sources: int) -> dict[str, Any]:
    now = clock.now()
    return {
        "id": identity,
        "name": "benchmark",
        "owner": owner,
        "state": CampaignState.RUNNING,
        "digest": DIGEST,
        "spec": SPEC,
        "canonical": SPEC,
        "model": {},
        "n_sources": n_sources,
        "paused": False,
        "cancelling": False,
        "created_at": now,
        "updated_at": now,
        "priority": 0,
        "turn": 0,
        "wake_at": now,
    }


def _job(campaign: str, kind: JobKind, index: int) -> dict[str, Any]:
    now, waits = clock.now(), kind is JobKind.GROUP
    first = GROUP_SIZE * index
    return {
        "id": clock.new_id(),
        "campaign_id": campaign,
        "kind": kind,
        "ordinal": index,
        "state": JobState.WAITING if waits else JobState.ACCEPTED,
        "payload": {"sources": list(range(first, first + GROUP_SIZE))} if waits else {},
        "attempts": 0 if waits else 1,
        "failures": {},
        "not_before": now,
        "created_at": now,
        "updated_at": now,
    }


def _folder(store: Path, identity: str, n_groups: int) -> None:
    """Write what a promotion looks for in a campaign's folder."""
    root = store / "campaigns" / identity
    (root / "greens.zarr").mkdir(parents=True)
    facts = {"digest": DIGEST, "groups": [[0]] * n_groups}
    (root / "model.json").write_text(json.dumps(facts))
    (root / "greens.zarr" / "zarr.json").write_text('{"attributes": {}}')
