"""The API dies with its dispatcher, its scheduler and its workers."""

from __future__ import annotations

import arena
import psycopg
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

# holds every acceptance of a group after its files were moved, before it is written
HOLD = """
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;
CREATE TRIGGER hold BEFORE UPDATE ON jobs FOR EACH ROW
WHEN (NEW.state = 'accepted' AND NEW.kind = 'group') EXECUTE FUNCTION hold();
"""
ASLEEP = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND wait_event = 'PgSleep'
"""


def test_killed_while_solving(service, undisturbed, record):
    campaign = service.submit()
    service.hold_solving(campaign)
    measure = arena.Measure(service, campaign, "service killed while solving")
    before = service.process.pid
    service.kill()
    arena.until(lambda: not arena.session(before), 20, "its workers die with it")
    service.start()
    row = measure.close(service, undisturbed, record)
    assert row["groups again"] <= 2
    assert row["result"] == "bitwise"


def test_killed_before_it_heard_of_a_stored_group(service, undisturbed, record):
    """What lies on the disk with its manifest is accepted, not solved again."""
    campaign = service.submit()
    token, _ = service.hold_solving(campaign)
    fault = "service killed between manifest and receipt"
    measure = arena.Measure(service, campaign, fault)
    attempt = service.store / "attempts" / token
    with arena.frozen(service.process):
        service.go_on()
        arena.until((attempt / "manifest.json").exists, 60, "the group is stored")
        service.kill()
    service.start()
    row = measure.close(service, undisturbed, record)
    assert row["groups again"] <= 1, "only the other worker's"
    assert row["result"] == "bitwise"
    winners = [
        attempt["token"]
        for group in service.groups(campaign)
        for attempt in group["attempts"]
        if attempt["state"] == "accepted"
    ]
    assert token in winners


def test_killed_between_promotion_and_acceptance(
    new_service, postgres_url, undisturbed, with_models, record
):
    service = new_service(postgres_url)
    with_models(service.store)
    service.start()
    campaign = service.submit()
    service.hold_solving(campaign)
    fault = "service killed between promotion and acceptance, PostgreSQL"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(HOLD)
        measure = arena.Measure(service, campaign, fault)
        service.go_on()
        (asleep,) = arena.until(lambda: connection.execute(ASLEEP).fetchone(), 60)
        chunks = service.greens(campaign).glob("mode_count/c/*")
        promoted = {int(chunk.name) for chunk in chunks} - set(measure.before)
        assert promoted
        service.kill()
        connection.execute("SELECT pg_terminate_backend(%s)", [asleep])
        connection.execute("DROP TRIGGER hold ON jobs; DROP FUNCTION hold")
    service.start()
    row = measure.close(service, undisturbed, record)
    assert row["groups again"] <= 2, "only what the workers had begun meanwhile"
    for group in service.groups(campaign):
        if group["index"] in promoted:
            assert len(group["attempts"]) == 1, "it is accepted, not solved again"
    assert row["result"] == "bitwise"
