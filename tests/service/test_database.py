"""Migrations, transactions, leases and events on both databases."""

from __future__ import annotations

import shutil
import threading
import time

import postgres
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from afterslip_service.db import attempts, claims, events, leases, migrate
from afterslip_service.db.session import Database, shown_url
from afterslip_service.db.tables import metadata
from afterslip_service.errors import LeaseLostError


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request, tmp_path):
    if request.param == "sqlite":
        yield str(tmp_path / "empty.sqlite")
        return
    with postgres.database(request.getfixturevalue("postgres_server")) as url:
        yield url


def test_migrations_go_up_and_down_and_match_the_tables(empty_url):
    database = Database(empty_url)
    migrate.upgrade(database)
    migrate.upgrade(database)
    assert migrate.current(database) == migrate.newest(database)
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, metadata) == []
    migrate.downgrade(database, "base")
    assert migrate.current(database) is None
    migrate.upgrade(database)
    database.close()


def test_services_that_start_together_migrate_once(empty_url):
    failures = []

    def start():
        database = Database(empty_url)
        try:
            migrate.upgrade(database)
        except Exception as error:  # noqa: BLE001 - reported by the assertion
            failures.append(error)
        database.close()

    threads = [threading.Thread(target=start) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_writers_queue_instead_of_failing(database, new_campaign):
    """The counter in the row is right only if no write is lost."""
    campaign = new_campaign()
    with database.write() as connection:
        (claim,) = claims.claim(connection, "test")
    failures = []

    def count():
        try:
            for _ in range(15):
                with database.write() as connection:
                    leases.acquire(connection, "turn", "all", 10)
                    found = attempts.get(connection, claim.token)
                    assert found is not None
                    values = {"n": (found.stats or {"n": 0})["n"] + 1}
                    attempts.update(connection, claim.token, stats=values)
        except Exception as error:  # noqa: BLE001 - reported by the assertion
            failures.append(error)

    with database.write() as connection:
        leases.acquire(connection, "turn", "all", 10)
    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with database.read() as connection:
        found = attempts.get(connection, claim.token)
        assert found is not None
        assert found.stats == {"n": 90}
    assert campaign


def test_lease_has_one_holder_and_its_epoch_counts_the_changes(database):
    def acquire(holder, seconds=10.0):
        with database.write() as connection:
            return leases.acquire(connection, "l", holder, seconds)

    first = acquire("a", 0.2)
    assert acquire("b") is None
    assert acquire("a", 0.2) == first
    time.sleep(0.3)
    second = acquire("b")
    assert second.epoch == first.epoch + 1
    assert acquire("a") is None
    with database.write() as connection:
        leases.hold(connection, second)
        with pytest.raises(LeaseLostError):
            leases.hold(connection, first)
        leases.release(connection, second)
    assert acquire("a").epoch == second.epoch + 1


def test_holder_of_a_first_lease_is_known_with_what_it_said(database):
    with database.write() as connection:
        leases.acquire(connection, "first", "a", 10.0, {"slots": 2})
    with database.read() as connection:
        assert leases.facts(connection, "first") == {"slots": 2}


def test_first_lease_ever_goes_to_one_of_many(database):
    won, barrier = [], threading.Barrier(6)

    def take(name):
        barrier.wait()
        with database.write() as connection:
            lease = leases.acquire(connection, "fresh", name, 10)
        if lease is not None:
            won.append(lease)

    threads = [threading.Thread(target=take, args=(str(i),)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


def test_reader_never_overtakes_an_event_that_is_still_being_written(database):
    """Numbers are given before the commit; a reader must not skip a slow one."""
    begun, finish = threading.Event(), threading.Event()

    def slow():
        with database.write() as connection:
            events.append(connection, "slow", "group.state", {})
            begun.set()
            finish.wait(5)

    def fast():
        with database.write() as connection:
            events.append(connection, "fast", "group.state", {})

    threads = [threading.Thread(target=slow)]
    threads[0].start()
    begun.wait(5)
    threads.append(threading.Thread(target=fast))
    threads[1].start()
    time.sleep(0.2)
    with database.read() as connection:
        early = events.after(connection, 0)
    finish.set()
    for thread in threads:
        thread.join()
    last = early[-1].id if early else 0
    with database.read() as connection:
        late = events.after(connection, last)
    assert sorted(str(e.campaign) for e in (*early, *late)) == ["fast", "slow"]


def test_numbers_that_json_cannot_say_become_null(database, new_campaign):
    new_campaign()
    with database.write() as connection:
        (claim,) = claims.claim(connection, "test")
        stats = {"residual": float("nan"), "lanes": [1.0, float("inf")]}
        attempts.update(connection, claim.token, stats=stats)
    with database.read() as connection:
        found = attempts.get(connection, claim.token)
    assert found is not None
    assert found.stats == {"residual": None, "lanes": [1.0, None]}


def test_progress_events_are_pruned_and_states_are_left(database):
    from afterslip_service import clock

    with database.write() as connection:
        for kind in (events.GROUP_PROGRESS, events.GROUP_STATE):
            events.append(connection, "c", kind, {})
    with database.write() as connection:
        assert events.prune(connection, [events.GROUP_PROGRESS], clock.now()) == 1
    with database.read() as connection:
        assert [e.kind for e in events.after(connection, 0)] == [events.GROUP_STATE]


def test_password_is_never_shown():
    assert "secret" not in shown_url("postgresql://me:secret@host/db")


def test_path_with_spaces_is_a_sqlite_file(tmp_path, sqlite_template):
    folder = tmp_path / "a folder"
    folder.mkdir()
    shutil.copy(sqlite_template, folder / "my db.sqlite")
    database = Database(str(folder / "my db.sqlite"))
    database.ping()
    database.close()
