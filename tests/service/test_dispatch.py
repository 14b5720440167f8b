"""Campaigns run through the dispatcher with a worker that writes real stores."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import numpy as np
import pytest
import tiny_store
import tiny_worker

from afterslip_service.db import attempts, campaigns, jobs, leases
from afterslip_service.engine.states import CampaignState, JobKind, JobState
from afterslip_service.placement.base import Ended
from afterslip_service.reconcile import acceptance, receipts
from afterslip_service.reconcile.leadership import LEASE
from afterslip_workers import entry


def groups(database, campaign):
    with database.read() as connection:
        return jobs.of_campaign(connection, campaign, JobKind.GROUP)


def test_campaign_runs_to_a_complete_store(
    database, settings, new_campaign, new_dispatcher, turn
):
    campaign = new_campaign()
    found = turn(new_dispatcher(), campaign, CampaignState.COMPLETE)
    assert found.n_sources == 10
    assert found.model["n_unknowns"] == 3 * tiny_store.N_NODE
    assert [job.state for job in groups(database, campaign)] == [JobState.ACCEPTED] * 3
    expected = np.stack([tiny_store.response(source) for source in range(10)])
    np.testing.assert_array_equal(
        tiny_worker.stored(settings.store, campaign), expected
    )
    assert not list((settings.store / "attempts").iterdir()), "attempts are swept"


def test_what_an_acceptance_makes_possible_begins_at_once(
    database, new_campaign, new_dispatcher
):
    """The groups do not wait for the next look, half a minute later."""
    dispatcher = new_dispatcher(tick=30)
    dispatcher.context.placement.wake = dispatcher.wake
    campaign = new_campaign()
    began = time.monotonic()
    dispatcher.start()
    try:
        while time.monotonic() - began < 15:
            states = [job.state for job in groups(database, campaign)]
            if states == [JobState.ACCEPTED] * 3:
                break
            time.sleep(0.02)
    finally:
        dispatcher.stop()
    assert states == [JobState.ACCEPTED] * 3


def test_only_one_of_two_dispatchers_acts(new_campaign, new_dispatcher, worker, turn):
    first, second = new_dispatcher(), new_dispatcher()
    campaign = new_campaign()
    first.tick()
    for _ in range(20):
        second.tick()
    assert first.leads
    assert not second.leads
    turn(first, campaign, CampaignState.COMPLETE)
    assert set(worker.ran.values()) == {1}


def test_standby_takes_over_when_the_lease_runs_out(
    database, new_campaign, new_dispatcher, worker, turn
):
    worker.gate.clear()
    first = new_dispatcher(lease=0.5)
    second = new_dispatcher(lease=0.5)
    campaign = new_campaign()
    turn(first, campaign, CampaignState.BUILDING)
    with database.write() as connection:
        row = leases.look(connection, LEASE)
        assert row is not None
        until = row.expires_at
    began = time.monotonic()
    while not second.leads and time.monotonic() - began < 5:
        second.tick()
        time.sleep(0.02)
    assert second.leads
    assert datetime.now(UTC) >= until, "a living leader is given its time"
    worker.gate.set()
    turn(second, campaign, CampaignState.COMPLETE)
    # the deposed leader may not write any more
    with pytest.raises(Exception, match="lease"), first.context.write():
        pass
    with database.read() as connection:
        model = jobs.of_campaign(connection, campaign, JobKind.MODEL)[0]
        tries = attempts.of_job(connection, model.id)
    assert [attempt.error_class for attempt in tries] == ["interrupted", None]


def test_late_receipt_is_refused_and_swept(
    database, settings, new_campaign, new_dispatcher, worker, turn
):
    """A worker that was taken for dead comes back after its successor."""
    zombie = {}

    def vanish(envelope):
        zombie["receipt"] = worker._receipt(envelope, "stored", worker._group(envelope))
        return "worker_lost"

    worker.fail["group", 0] = [vanish]
    campaign = new_campaign()
    dispatcher = new_dispatcher()
    turn(dispatcher, campaign, CampaignState.COMPLETE)
    before = groups(database, campaign)[0]
    receipt = zombie["receipt"]
    taken = receipts.take(dispatcher.context, Ended(receipt["token"], receipt))
    assert not taken
    assert groups(database, campaign)[0] == before
    assert not (settings.store / "attempts" / receipt["token"]).exists()


def test_second_delivery_of_a_receipt_changes_nothing(
    database, new_campaign, new_dispatcher, worker, turn
):
    returned = []

    def execute(envelope):
        returned.append(worker(envelope))
        return returned[-1]

    campaign = new_campaign()
    dispatcher = new_dispatcher(execute)
    turn(dispatcher, campaign, CampaignState.COMPLETE)
    before = groups(database, campaign)
    for receipt in returned:
        assert not receipts.take(dispatcher.context, Ended(receipt["token"], receipt))
    assert groups(database, campaign) == before


def test_receipt_that_comes_twice_does_not_sweep_what_is_to_be_promoted(
    database, settings, new_campaign, new_dispatcher, worker, turn, monkeypatch
):
    """Between stored and accepted, the attempt's folder holds the only copy."""
    real, twice = acceptance.accept_all, []

    def tell_again(context, meanwhile):
        with context.database.read() as connection:
            waiting = [job.token for job in jobs.stored(connection)]
        for token in waiting:
            assert token is not None
            assert not receipts.take(context, Ended(token, {"outcome": "stored"}))
            assert (settings.store / "attempts" / token / "manifest.json").exists()
        twice.extend(waiting)
        return real(context, meanwhile)

    monkeypatch.setattr(acceptance, "accept_all", tell_again)
    campaign = new_campaign()
    turn(new_dispatcher(), campaign, CampaignState.COMPLETE)
    assert len(twice) == 4
    assert all(job.attempts == 1 for job in groups(database, campaign))


def test_crash_between_promotion_and_acceptance_is_repaired(
    database, settings, new_campaign, new_dispatcher, turn, monkeypatch
):
    campaign = new_campaign()
    dispatcher = new_dispatcher()
    real, died = entry.promote, []

    def promote_and_die(store, name, manifest):
        real(store, name, manifest)
        if manifest.kind == "greens" and not died:
            died.append(manifest.token)
            raise KeyboardInterrupt

    monkeypatch.setattr(entry, "promote", promote_and_die)
    with pytest.raises(KeyboardInterrupt):
        turn(dispatcher, campaign, CampaignState.COMPLETE)
    dispatcher.stop()
    turn(new_dispatcher(), campaign, CampaignState.COMPLETE)
    (repaired,) = [j for j in groups(database, campaign) if j.token == died[0]]
    assert repaired.attempts == 1


def test_restart_resumes_and_never_recomputes_what_is_accepted(
    database, new_campaign, new_dispatcher, worker, turn
):
    campaign = new_campaign()

    def block(envelope):
        worker.gate.clear()

    worker.fail["group", 2] = [block]
    first = new_dispatcher(slots=1)
    deadline = time.monotonic() + 20
    while worker.ran[campaign, "group", 2] == 0 and time.monotonic() < deadline:
        first.tick()
        time.sleep(0.01)
    first.stop()
    worker.gate.set()
    turn(new_dispatcher(), campaign, CampaignState.COMPLETE)
    ran = [worker.ran[campaign, "group", index] for index in range(3)]
    assert ran == [1, 1, 2]
    last = groups(database, campaign)[2]
    assert last.failures.get("interrupted") == 1


def test_stored_but_unreported_result_of_a_dead_dispatcher_is_used(
    database, new_campaign, new_dispatcher, worker, turn
):
    """The manifest is on the disk, the receipt died with the process."""
    campaign = new_campaign()
    silent = []

    def execute(envelope):
        receipt = worker(envelope)
        if envelope["kind"] == "group" and envelope["group"]["index"] == 1:
            silent.append(envelope["token"])
            threading.Event().wait(0.5)
        return receipt

    first = new_dispatcher(execute, slots=1)
    deadline = time.monotonic() + 20
    while not silent and time.monotonic() < deadline:
        first.tick()
        time.sleep(0.01)
    first.stop()
    turn(new_dispatcher(), campaign, CampaignState.COMPLETE)
    assert worker.ran[campaign, "group", 1] == 1


def test_attempt_without_a_heartbeat_is_lost_and_done_again(
    database, settings, new_campaign, new_dispatcher, worker, turn, monkeypatch
):
    """Time passes only when nothing but the silent attempt is under way."""
    hung, go_on = [], threading.Event()

    def hang(envelope):
        hung.append(envelope.token)
        go_on.wait(20)

    worker.fail["group", 0] = [hang]
    dispatcher = new_dispatcher(slots=3)
    now = [1000.0]
    dispatcher.context.ticks = lambda: now[0]
    tick = dispatcher.tick

    def tick_and_wait():
        tick()
        with database.read() as connection:
            live = [attempt.token for attempt in attempts.live(connection)]
        if live and live == hung:
            now[0] += settings.lost_after + 1.0

    monkeypatch.setattr(dispatcher, "tick", tick_and_wait)
    campaign = new_campaign()
    turn(dispatcher, campaign, CampaignState.COMPLETE)
    go_on.set()
    with database.read() as connection:
        job = groups(database, campaign)[0]
        first, *_ = attempts.of_job(connection, job.id)
    assert first.token == hung[0]
    assert first.error_class == "worker_lost"
    assert job.attempts == 2


def test_cancel_stops_what_runs_and_keeps_what_is_accepted(
    database, new_campaign, new_dispatcher, worker, turn
):
    campaign = new_campaign()

    def block(envelope):
        worker.gate.clear()

    worker.fail["group", 1] = [block]
    dispatcher = new_dispatcher(slots=1)
    deadline = time.monotonic() + 20
    while worker.gate.is_set() and time.monotonic() < deadline:
        dispatcher.tick()
        time.sleep(0.01)
    with database.write() as connection:
        campaigns.set_cancelling(connection, campaign)
    began = time.monotonic()
    turn(dispatcher, campaign, CampaignState.CANCELLED)
    assert time.monotonic() - began < 10
    states = [job.state for job in groups(database, campaign)]
    assert states == [JobState.ACCEPTED, JobState.CANCELLED, JobState.CANCELLED]


@pytest.mark.parametrize(
    ("error_class", "attempts_made"),
    [("killed", 3), ("worker_lost", 3), ("oom", 3), ("bad_input", 1), ("mesh", 1),
     ("not_converged", 2), ("something new", 3)],
)  # fmt: skip
def test_failures_are_retried_by_class(
    database, new_campaign, new_dispatcher, worker, turn, monkeypatch,
    error_class, attempts_made,
):  # fmt: skip
    monkeypatch.setattr("afterslip_service.engine.retry.BACKOFF_S", (0.0,))
    worker.fail["group", 1] = [error_class] * 5
    campaign = new_campaign()
    found = turn(new_dispatcher(), campaign, CampaignState.FAILED)
    assert groups(database, campaign)[1].attempts == attempts_made
    assert found.error_class == error_class
    assert found.error_message == f"group 1: a planned {error_class}"


def test_full_store_pauses_the_campaign_and_resume_goes_on(
    database, new_campaign, new_dispatcher, worker, turn
):
    worker.fail["group", 0] = ["store_full"]
    campaign = new_campaign()
    dispatcher = new_dispatcher()
    found = turn(dispatcher, campaign, CampaignState.PAUSED)
    assert "free space" in found.error_message
    with database.write() as connection:
        campaigns.set_paused(connection, campaign, False)
        campaigns.refresh(connection, campaign)
    found = turn(dispatcher, campaign, CampaignState.COMPLETE)
    assert found.error_message is None


def test_disk_that_fills_during_promotion_keeps_the_stored_result(
    database, new_campaign, new_dispatcher, worker, turn, monkeypatch
):
    real, full = entry.promote, [True]

    def promote(store, name, manifest):
        if manifest.kind == "greens" and full[0]:
            raise OSError(28, "No space left on device")
        real(store, name, manifest)

    monkeypatch.setattr(entry, "promote", promote)
    campaign = new_campaign()
    dispatcher = new_dispatcher()
    turn(dispatcher, campaign, CampaignState.PAUSED)
    full[0] = False
    with database.write() as connection:
        campaigns.set_paused(connection, campaign, False)
        campaigns.refresh(connection, campaign)
    turn(dispatcher, campaign, CampaignState.COMPLETE)
    assert all(job.attempts == 1 for job in groups(database, campaign))


def test_damaged_result_is_solved_again(
    database, settings, new_campaign, new_dispatcher, worker, turn, monkeypatch
):
    monkeypatch.setattr("afterslip_service.engine.retry.BACKOFF_S", (0.0,))
    damaged = []

    def execute(envelope):
        receipt = worker(envelope)
        if envelope["kind"] == "group" and not damaged:
            damaged.append(envelope["token"])
            folder = settings.store / "attempts" / envelope["token"] / "group.zarr"
            chunk = next(p for p in folder.rglob("c/*") if p.is_file())
            chunk.write_bytes(b"bit rot")
        return receipt

    campaign = new_campaign()
    turn(new_dispatcher(execute), campaign, CampaignState.COMPLETE)
    tries = sorted(job.attempts for job in groups(database, campaign))
    assert tries == [1, 1, 2]


def test_paused_campaign_gives_its_slots_to_others(
    database, new_campaign, new_dispatcher, turn
):
    paused, other = new_campaign("paused"), new_campaign("other")
    with database.write() as connection:
        campaigns.set_paused(connection, paused, True)
        campaigns.refresh(connection, paused)
    dispatcher = new_dispatcher()
    turn(dispatcher, other, CampaignState.COMPLETE)
    turn(dispatcher, paused, CampaignState.PAUSED)


def test_campaigns_share_the_slots_fairly(new_campaign, new_dispatcher, worker, turn):
    order = []

    def execute(envelope):
        order.append(envelope["campaign"])
        return worker(envelope)

    first, second = new_campaign("first"), new_campaign("second")
    dispatcher = new_dispatcher(execute, slots=1)
    turn(dispatcher, first, CampaignState.COMPLETE)
    turn(dispatcher, second, CampaignState.COMPLETE)
    assert order[:6] == [first, second] * 3
