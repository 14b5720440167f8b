"""What release 0.1.0 wrote goes up to this schema and down again, on both databases."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import postgres
import pytest
import sqlalchemy as sa

from afterslip_service.db import campaigns, migrate, sources
from afterslip_service.db.session import Database

# rows of a real service of 0.1.0 that was killed: one campaign is complete, one took
# its sources from it, one is being solved
WRITTEN = Path(__file__).parent / "data" / "rows-0.1.0.json"
OLD = "0004"
QUALITY = ("until", "tolerance", "time_tolerance")
DAMAGED = {"kind": "greens", "index": 0, "files": [], "again": True}


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request, tmp_path):
    """A database as 0.1.0 left it."""
    if request.param == "sqlite":
        database = filled(Database(str(tmp_path / "old.sqlite")))
        yield database
        database.close()
        return
    with postgres.database(request.getfixturevalue("postgres_server")) as url:
        database = filled(Database(url))
        yield database
        database.close()


def written():
    rows = json.loads(WRITTEN.read_text())
    moment = rows["events"][0]["time"]
    damage = {"time": moment, "kind": "store.damaged", "data": DAMAGED}
    rows["events"].append({**damage, "campaign": rows["campaigns"][0]["id"]})
    for row in rows["events"]:
        row.pop("id", None)  # the database numbers them
    # an end that is no round number of seconds, and needs all digits of a float
    rows["sources"][0]["until"] = 0.1 + 0.2
    return rows


def filled(database):
    migrate.upgrade(database, OLD)
    tables = reflected(database)
    with database.write() as connection:
        for name, rows in written().items():
            columns = tables[name].c
            plain = [{k: typed(columns[k].type, v) for k, v in r.items()} for r in rows]
            connection.execute(tables[name].insert(), plain)
    return database


def reflected(database):
    found = sa.MetaData()
    found.reflect(database.engine)
    return found.tables


def typed(kind, value):
    if isinstance(kind, sa.DateTime) and value is not None:
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return bool(value) if isinstance(kind, sa.Boolean) else value


def content(database):
    """Return every row of every table, as text."""
    found = {}
    with database.read() as connection:
        for name, table in reflected(database).items():
            rows = connection.execute(sa.select(table)).mappings()
            plain = [json.dumps(dict(r), default=str, sort_keys=True) for r in rows]
            found[name] = sorted(plain)
    return found


def test_rows_of_the_release_before_go_up_and_come_back_as_they_were(old):
    before = content(old)
    migrate.upgrade(old)
    assert content(old) != before
    migrate.downgrade(old, OLD)
    assert content(old) == before


def test_qualities_and_kinds_mean_the_same_afterwards(old):
    was = written()
    migrate.upgrade(old)
    with old.read() as connection:
        for row in was["campaigns"]:
            assert campaigns.get(connection, row["id"]).physics == "viscoelastic"
        for row in was["sources"]:
            (found,) = sources.of_campaign(
                connection, row["campaign_id"], [row["position"]]
            )
            assert found.quality == {name: row[name] for name in QUALITY}
        jobs, events = reflected(old)["jobs"], reflected(old)["events"]
        kinds = Counter(connection.execute(sa.select(jobs.c.kind)).scalars())
        damage = connection.execute(
            sa.select(events.c.data).where(events.c.kind == "store.damaged")
        ).scalar_one()
        payloads = list(connection.execute(sa.select(jobs.c.payload)).scalars())
    assert kinds == {
        {"greens": "group"}.get(kind, kind): count
        for kind, count in Counter(job["kind"] for job in was["jobs"]).items()
    }
    assert damage == {**DAMAGED, "kind": "group"}
    origins = [o for p in payloads for o in p.get("taken", {}).values()]
    assert len(origins) == 2
    for origin in origins:
        assert set(origin) == {"campaign", "position", "group", "files", "quality"}
        assert set(origin["quality"]) == set(QUALITY)


def test_release_before_is_not_given_campaigns_that_it_cannot_understand(old):
    migrate.upgrade(old)
    before = content(old)
    with old.write() as connection:
        identity = campaigns.create(
            connection, name="new", digest="sha256:0", spec={}, canonical={},
            physics="waves",
        )  # fmt: skip
    with pytest.raises(ValueError, match=rf"{identity} \(waves\)"):
        migrate.downgrade(old, OLD)
    assert migrate.current(old) == migrate.newest(old)
    after = content(old)
    assert all(set(rows) <= set(after[name]) for name, rows in before.items())
    with old.write() as connection:
        campaigns.set_deleted(connection, identity)
    migrate.downgrade(old, OLD)
    assert migrate.current(old) == OLD
