"""Who is served next: priority, turns between users and campaigns, limits."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from afterslip_service.db import campaigns, claims, jobs, leases, queue
from afterslip_service.db.jobs import NewJob
from afterslip_service.db.session import moment
from afterslip_service.engine.states import JobKind, JobState
from afterslip_service.reconcile.leadership import LEASE, Leadership, holder_name


@pytest.fixture
def add(database):
    """Add a campaign whose model is built, with groups that wait."""

    def make(name, owner=None, priority=0, groups=6):
        with database.write() as connection:
            identity = campaigns.create(
                connection, name=name, digest="d", spec={}, canonical={"name": name},
                owner=owner, priority=priority,
            )  # fmt: skip
            new = [NewJob(JobKind.GROUP, n, {"sources": [n]}) for n in range(groups)]
            jobs.create(connection, identity, new)
            campaigns.set_model(connection, identity, {}, groups)
            campaigns.refresh(connection, identity)
        return identity

    return make


def serve(database, most=1, limit=None, times=1):
    """Return the names of the campaigns that are served, in order."""
    names = []
    for _ in range(times):
        with database.write() as connection:
            found = claims.claim(connection, "d", most, limit)
            campaigns.refresh_all(connection, {c.job.campaign_id for c in found})
        names += [claim.canonical["name"] for claim in found]
    return names


def test_higher_priority_is_served_first_however_late_it_comes(database, add):
    add("low")
    assert serve(database, times=2) == ["low", "low"]
    add("high", priority=5, groups=3)
    assert serve(database, times=4) == ["high", "high", "high", "low"]


def test_users_take_turns_and_so_do_their_campaigns(database, add):
    for name in ("a1", "a2", "a3"):
        add(name, owner="ann")
    add("b1", owner="bob")
    add("n1")
    served = serve(database, times=9)
    assert served.count("b1") == served.count("n1") == 3
    assert [name for name in served if name[0] == "a"] == ["a1", "a2", "a3"]
    at_once = serve(database, most=6)
    assert sorted(name[0] for name in at_once) == ["a", "a", "b", "b", "n", "n"]


def test_user_never_has_more_under_way_than_the_limit(database, add):
    add("a1", owner="ann")
    add("a2", owner="ann")
    add("b1", owner="bob", groups=2)
    assert len(serve(database, most=20, limit=3, times=3)) == 3 + 2
    with database.write() as connection:
        job = jobs.of_campaign(
            connection, _id(connection, "b1"), JobKind.GROUP, limit=1
        )[0]
        jobs.move(connection, job, JobState.STORED)
    assert serve(database, most=20, limit=3) == []


def test_more_users_than_places_are_all_served_in_turn(database, add):
    for name in ("ann", "bob", "cat", "dan", "eve"):
        add(name, owner=name)
    add("nobody's")
    served = [sorted(serve(database, most=2)) for _ in range(6)]
    assert served[0] + served[1] + served[2] == served[3] + served[4] + served[5]
    assert len(set(served[0] + served[1] + served[2])) == 6


def test_campaign_that_somebody_holds_is_passed_by(database, add):
    if database.is_sqlite:
        pytest.skip("one writer at a time")
    first = add("first", owner="ann")
    add("second", owner="ann")
    with database.write() as other:
        campaigns.hold(other, first)
        assert serve(database) == ["second"]
        assert serve(database, most=4)[:1] == ["second"]


def _id(connection, name):
    found = campaigns.page(connection, before=None, limit=50)
    return next(campaign.id for campaign in found if campaign.name == name)


def test_claims_of_one_transaction_are_spread_and_leave_nothing_behind(database, add):
    add("one", groups=5)
    add("two", groups=1)
    assert sorted(serve(database, most=4)) == ["one", "one", "two"]
    rest = serve(database, most=10, times=3)
    assert rest == ["one"] * 3
    with database.read() as connection:
        left = [
            job
            for name in ("one", "two")
            for job in jobs.of_campaign(
                connection, _id(connection, name), JobKind.GROUP,
                states=frozenset({JobState.WAITING}),
            )
        ]  # fmt: skip
    assert left == []


def test_queue_that_was_wrong_is_repaired(database, add):
    identity = add("lost")
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE campaigns SET wake_at = NULL")
        connection.exec_driver_sql("DELETE FROM shares")
    assert serve(database) == []
    with database.write() as connection:
        assert queue.repair(connection) == 1
        assert queue.repair(connection) == 0
    assert serve(database) == ["lost"]
    assert identity


class _Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_clock_that_jumps_deposes_nobody(database, monkeypatch):
    """The database's clock leaps an hour ahead; the leader goes on renewing."""
    ticks = _Clock()
    leader = Leadership(database, holder_name(), 9.0, ticks)
    standby = Leadership(database, "elsewhere/1:7:abc", 9.0, ticks)
    first = leader.seek()
    real = moment
    jump = 3600.0
    monkeypatch.setattr(leases, "moment", lambda c: real(c) + timedelta(seconds=jump))
    for _ in range(6):
        assert standby.seek() is None
        ticks.now += 3.0
        jump += 3600.0
        assert leader.seek() == first
    # the leader falls silent: the standby waits for half a lease of its own time
    jump += 3600.0
    assert standby.seek() is None
    ticks.now += 4.6
    taken = standby.seek()
    assert taken is not None
    assert first is not None
    assert taken.epoch == first.epoch + 1


def test_clock_set_back_does_not_keep_a_dead_leader(database, monkeypatch):
    ticks = _Clock()
    real = moment
    Leadership(database, "elsewhere/1:7:abc", 9.0, ticks).seek()
    back = timedelta(hours=1)
    monkeypatch.setattr(leases, "moment", lambda c: real(c) - back)
    standby = Leadership(database, "elsewhere/1:8:def", 9.0, ticks)
    assert standby.seek() is None
    ticks.now += 9.1
    assert standby.seek() is not None


def test_dead_process_of_this_machine_is_replaced_at_once(database):
    mine = holder_name()
    machine, number, mark = mine.split(":")
    gone = next(n for n in range(2**22 - 1, 1, -1) if not _runs(n))
    dead = Leadership(database, f"{machine}:{gone}:{mark}", 15.0).seek()
    assert dead is not None
    began = time.monotonic()
    assert Leadership(database, mine, 15.0).seek() is not None
    assert time.monotonic() - began < 5
    with database.read() as connection:
        assert leases.holder(connection, LEASE) == mine
    assert number


def _runs(number):
    from pathlib import Path

    return Path(f"/proc/{number}").exists()
