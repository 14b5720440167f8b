"""What once went wrong between a claim, a placement and a successor."""

from __future__ import annotations

import time

import dask
import distributed
import pytest

from afterslip.error_class import ErrorClass
from afterslip_service.db import attempts, jobs
from afterslip_service.engine import retry
from afterslip_service.engine.states import CampaignState, JobKind, JobState
from afterslip_service.placement.cluster import Cluster
from afterslip_service.placement.inprocess import InProcess
from afterslip_service.reconcile import acceptance
from afterslip_workers import entry
from afterslip_workers.messages import read_envelope
from afterslip_workers.store import durable, paths


def model_job(database, campaign):
    with database.read() as connection:
        return jobs.of_campaign(connection, campaign, JobKind.MODEL)[0]


def test_claim_that_is_not_placed_gives_its_slot_back_at_once(
    database, new_campaign, new_dispatcher, turn, monkeypatch
):
    """Also when the database is away just then: the next tick does it."""
    monkeypatch.setattr(retry, "BACKOFF_S", (0.0,))
    dispatcher = new_dispatcher()
    placement = dispatcher.context.placement
    submit, refused = placement.submit, []

    def refuse(envelope):
        refused.append(envelope.token)
        monkeypatch.setattr(placement, "submit", submit)
        raise OSError("the scheduler is away")

    monkeypatch.setattr(placement, "submit", refuse)
    campaign = new_campaign()
    with pytest.raises(OSError, match="away"):
        dispatcher.tick()
    job = model_job(database, campaign)
    assert job.state is JobState.WAITING
    assert job.failures == {ErrorClass.INTERRUPTED: 1}
    turn(dispatcher, campaign, CampaignState.COMPLETE)
    assert len(refused) == 1


class _Elsewhere(InProcess):
    """A cluster of others: it forgets nothing when a dispatcher dies."""

    dies_with_us = False


def test_failure_of_a_dead_dispatchers_attempt_is_read_in_the_store(
    database, settings, new_campaign, new_dispatcher, worker, turn, monkeypatch
):
    monkeypatch.setattr(retry, "BACKOFF_S", (0.0,))
    worker.gate.clear()
    first = new_dispatcher()
    campaign = new_campaign()
    turn(first, campaign, CampaignState.BUILDING)
    token = model_job(database, campaign).token
    first.stop()
    # the worker ends while nobody listens; its receipt is the last thing it writes
    receipt = {"token": token, "outcome": "failed", "manifest": None, "stats": {},
               "error": {"class": "oom", "message": "no memory"}}  # fmt: skip
    durable.write_json(settings.store / paths.attempt(token) / "receipt.json", receipt)
    worker.gate.set()
    second = new_dispatcher()
    second.context.placement = _Elsewhere(worker, 2)
    began = time.monotonic()
    turn(second, campaign, CampaignState.COMPLETE)
    second.context.placement.close()
    assert time.monotonic() - began < settings.lost_after / 2
    with database.read() as connection:
        tries = attempts.of_job(connection, model_job(database, campaign).id)
    assert tries[0].error_class == "oom"


def test_mark_that_stops_a_lost_attempt_outlives_the_takeover(
    database, settings, new_campaign, new_dispatcher, worker, turn
):
    worker.gate.clear()
    first = new_dispatcher()
    campaign = new_campaign()
    turn(first, campaign, CampaignState.BUILDING)
    token = model_job(database, campaign).token
    first.stop()
    new_dispatcher().tick()
    assert (settings.store / "attempts" / token / "cancel").exists()


def test_solver_that_did_not_converge_is_asked_to_try_harder(
    database, new_campaign, new_dispatcher, worker, turn, monkeypatch
):
    monkeypatch.setattr(retry, "BACKOFF_S", (0.0,))
    worker.fail["group", 1] = ["not_converged"]
    asked = []

    def execute(envelope):
        if read_envelope(envelope).kind == "group" and envelope["group"]["index"] == 1:
            asked.append(read_envelope(envelope).escalation)
        return worker(envelope)

    campaign = new_campaign()
    turn(new_dispatcher(execute), campaign, CampaignState.COMPLETE)
    assert asked == [0, 1]


def test_scheduler_of_others_never_runs_an_attempt_twice():
    with distributed.LocalCluster(
        n_workers=0, processes=False, dashboard_address=None
    ) as cluster:
        cluster.scheduler.allowed_failures = 3
        placement = Cluster(cluster.scheduler_address)
        assert cluster.scheduler.allowed_failures == 0
        placement.close()


def test_workers_are_known_whatever_the_client_of_dask_asks_meanwhile():
    """Its periodic query asks for no workers, and stores what it was answered."""
    interval = {"distributed.client.scheduler-info-interval": "1 ms"}
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        with dask.config.set(interval):
            placement = Cluster(cluster.scheduler_address)
        said = [(placement.trouble(), placement.slots()) for _ in range(500)]
        placement.close()
    assert set(said) == {(None, 2)}


def test_store_that_was_away_for_a_moment_is_asked_again(
    new_campaign, new_dispatcher, turn, monkeypatch
):
    """It is no full disk, for which a campaign is paused, when it is back at once."""
    promote, away = entry.promote, []

    def refuse(store, campaign, manifest):
        if manifest.kind == "greens" and not away:
            away.append(campaign)
            raise entry.StoreLostError("no answer")
        promote(store, campaign, manifest)

    monkeypatch.setattr(entry, "promote", refuse)
    monkeypatch.setattr(acceptance, "ASK_AGAIN_S", 0.0)
    campaign = new_campaign()
    finished = turn(new_dispatcher(), campaign, CampaignState.COMPLETE)
    assert away == [campaign]
    assert finished.error_class is None


class _CutOff(InProcess):
    """A scheduler that hears nothing from its workers, and does not notice."""

    def __init__(self, *made):
        super().__init__(*made)
        self.sent = set()

    def submit(self, envelope):
        self.sent.add(envelope.token)
        super().submit(envelope)

    def ended(self):
        super().ended()
        return []

    def holds(self):
        return frozenset(self.sent)


class _Clock:
    """A clock that goes forward only when it is moved."""

    now = 1000.0

    def __call__(self):
        return self.now


def test_stored_result_that_was_not_reported_is_taken_before_it_is_given_up(
    database, settings, new_campaign, new_dispatcher, worker, monkeypatch, turn
):
    """However slow the machine is: time passes only when all workers are done."""
    dispatcher = new_dispatcher()
    dispatcher.context.placement = _CutOff(worker, 2)
    clock = dispatcher.context.ticks = _Clock()
    tick, silences = dispatcher.tick, []

    def tick_and_wait():
        tick()
        with database.read() as connection:
            live = attempts.live(connection)
        folders = [settings.store / "attempts" / attempt.token for attempt in live]
        if live and all((folder / "manifest.json").exists() for folder in folders):
            clock.now += settings.lost_after + 1.0
            silences.append(len(live))

    monkeypatch.setattr(dispatcher, "tick", tick_and_wait)
    campaign = new_campaign()
    turn(dispatcher, campaign, CampaignState.COMPLETE)
    dispatcher.context.placement.close()
    assert silences
    assert set(worker.ran.values()) == {1}


def test_reason_of_a_failure_outlives_a_store_that_is_away(
    database, new_campaign, new_dispatcher, worker, turn, monkeypatch
):
    monkeypatch.setattr(retry, "BACKOFF_S", (0.0,))
    read, away = entry.read_log, []

    def refuse(store, token):
        if not away:
            away.append(token)
            raise entry.StoreLostError("no answer")
        return read(store, token)

    monkeypatch.setattr(entry, "read_log", refuse)
    worker.fail["model", 0] = ["oom"]
    dispatcher = new_dispatcher()
    campaign = new_campaign()
    with pytest.raises(entry.StoreLostError):
        turn(dispatcher, campaign, CampaignState.COMPLETE)
    turn(dispatcher, campaign, CampaignState.COMPLETE)
    with database.read() as connection:
        tries = attempts.of_job(connection, model_job(database, campaign).id)
    assert [attempt.error_class for attempt in tries] == ["oom", None]
