"""Two services on one database: one dispatches, the other stands by."""

from __future__ import annotations

import time

import arena
import psycopg
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

LEADER = "SELECT holder FROM leases WHERE name = 'dispatcher' AND expires_at > now()"


def leader(url):
    """Return the process number of the dispatcher that leads, None if none does."""
    with psycopg.connect(url) as connection:
        row = connection.execute(LEADER).fetchone()
    return int(row[0].split(":")[1]) if row else None


@pytest.fixture
def pair(new_service, postgres_url, undisturbed, with_models):
    """A service that leads and one that stands by, with a cluster each."""

    def make(**environment):
        first = new_service(postgres_url, "first", **environment)
        with_models(first.store)
        first.start()
        arena.until(lambda: leader(postgres_url) == first.process.pid, 20)
        return first, new_service(postgres_url, "second", **environment).start()

    return make


def test_standby_takes_over_within_the_lease(pair, postgres_url, undisturbed, record):
    first, second = pair()
    campaign = first.submit()
    first.hold_solving(campaign)
    assert not second.computing()
    fault = "leader killed while solving, standby takes over, PostgreSQL"
    measure = arena.Measure(second, campaign, fault)
    first.kill()
    arena.until(lambda: leader(postgres_url) == second.process.pid, 60)
    assert time.monotonic() - measure.began <= 15 + 2, "longer than a lease"
    row = measure.close(second, undisturbed, record)
    assert row["groups again"] <= 2
    assert row["result"] == "bitwise"


def test_receipt_of_a_suspended_leader_comes_too_late(
    pair, postgres_url, undisturbed, record
):
    """Its workers write all the while; when it wakes, nobody waits for them."""
    first, second = pair(AFTERSLIP_LEASE="8")
    campaign = first.submit()
    token, _ = first.hold_solving(campaign)
    fault = "leader suspended, its receipt late, PostgreSQL"
    measure = arena.Measure(second, campaign, fault)
    with arena.frozen(first.process):
        arena.until(lambda: leader(postgres_url) == second.process.pid, 30)
        measure.recovered(second)
        first.go_on()
        arena.until(lambda: _ended(second, campaign), 120, second.log)
    # only a leader reads receipts: let the first lead again
    second.kill()
    arena.until(lambda: leader(postgres_url) == first.process.pid, 30)
    arena.until(lambda: _refused(first, token), 30, first.log)
    row = measure.close(first, undisturbed, record)
    assert row["result"] == "bitwise"
    hit = [g for g in first.groups(campaign) if g["attempts"][0]["token"] == token]
    assert [a["state"] for a in hit[0]["attempts"]] == ["lost", "accepted"]
    assert not (first.store / "attempts" / token).exists()


def _ended(service, campaign):
    return service.get(f"/campaigns/{campaign}")["state"] == "complete"


def _refused(service, token):
    lines = service.log().splitlines()
    return any("late receipt refused" in line and token in line for line in lines)
