"""Claims at the same time, and while others move the same jobs unlocked."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from afterslip_service.db import attempts, bulk, campaigns, claims, jobs
from afterslip_service.db.jobs import NewJob
from afterslip_service.db.tables import jobs as table
from afterslip_service.engine.states import JobKind, JobState


@pytest.fixture
def campaign(database):
    """A campaign with three groups that wait, on a server with many writers."""
    if database.is_sqlite:
        pytest.skip("SQLite has one writer at a time")
    with database.write() as connection:
        identity = campaigns.create(
            connection, name="c", digest="d", spec={}, canonical={}
        )
        new = [NewJob(JobKind.GROUP, n, {"sources": [n]}) for n in range(3)]
        jobs.create(connection, identity, new)
        campaigns.set_model(connection, identity, {}, 3)
        campaigns.refresh(connection, identity)
    return identity


def test_claims_by_two_dispatchers_at_once_never_give_a_job_twice(
    database, new_campaign
):
    for _ in range(30):
        new_campaign()
    claimed, barrier = [], threading.Barrier(4)

    def claim_all(name):
        barrier.wait()
        misses = 0
        while misses < 3:
            with database.write() as connection:
                claim = next(iter(claims.claim(connection, name)), None)
            if claim is None:
                misses += 1
                time.sleep(0.01)
            else:
                claimed.append((claim.job.id, claim.token))

    threads = [threading.Thread(target=claim_all, args=(f"d{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claimed) == 30
    assert len({job for job, _ in claimed}) == 30
    assert len({token for _, token in claimed}) == 30


@contextmanager
def just_before(database, begins, act):
    """Call ``act`` once, right before the first statement that begins so."""
    done = []

    def listen(_connection, _cursor, statement, *_rest):
        if not done and " ".join(statement.split()).startswith(begins):
            done.append(statement)
            act()

    sa.event.listen(database.engine, "before_cursor_execute", listen)
    try:
        yield done
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", listen)


def cancel_behind_our_back(database, campaign, ordinal):
    """Move a job without a lock on its campaign; False where that has to wait."""
    try:
        with database.engine.connect() as other, other.begin():
            other.exec_driver_sql("SET LOCAL lock_timeout = '300ms'")
            other.execute(
                table.update()
                .where(table.c.campaign_id == campaign, table.c.ordinal == ordinal)
                .values(state=JobState.CANCELLED)
            )
    except OperationalError:
        return False
    return True


def claim_in_time(database, most=1):
    """Claim; who has to wait for a lock, which nobody gives back here, fails."""
    with database.write() as ours:
        ours.exec_driver_sql("SET LOCAL lock_timeout = '2s'")
        return claims.claim(ours, "d", most)


def found_after(database, campaign):
    with database.read() as connection:
        return [
            (job.state, len(attempts.of_job(connection, job.id)))
            for job in jobs.of_campaign(connection, campaign, JobKind.GROUP)
        ]


@pytest.mark.parametrize("most", [1, 3])
def test_job_that_is_read_for_a_claim_cannot_be_moved_before_it_is_claimed(
    database, campaign, most
):
    moved = []

    def act():
        moved.append(cancel_behind_our_back(database, campaign, 0))

    with just_before(database, "INSERT INTO attempts", act):
        found = claim_in_time(database, most)
    assert moved == [False]
    assert [claim.job.index for claim in found] == list(range(most))
    assert found_after(database, campaign)[:most] == [(JobState.QUEUED, 1)] * most


def test_job_that_is_moved_between_two_looks_is_not_claimed(database, campaign):
    def act():
        assert cancel_behind_our_back(database, campaign, 0)

    begins = "SELECT jobs.id, jobs.campaign_id"
    with just_before(database, begins, act) as done:
        found = claim_in_time(database)
    assert done
    assert found == []
    assert found_after(database, campaign)[0] == (JobState.CANCELLED, 0)
    assert [claim.job.index for claim in claim_in_time(database)] == [1]


@pytest.mark.parametrize("most", [1, 3])
def test_job_that_another_transaction_holds_is_passed_by(database, campaign, most):
    with database.engine.connect() as other, other.begin():
        other.execute(sa.select(table).where(table.c.ordinal == 0).with_for_update())
        found = claim_in_time(database, most)
    assert [claim.job.index for claim in found] == ([] if most == 1 else [1, 2])


@pytest.mark.parametrize("act", ["cancel", "uncancel", "retry", "invalidate"])
def test_bulk_action_locks_its_campaign(database, campaign, act):
    """Also where its caller forgot to: a claim passes the campaign by."""
    with database.write() as other:
        getattr(bulk, act)(other, campaign)
        assert claim_in_time(database) == []
