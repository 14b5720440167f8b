"""Who no longer holds a job or the lease writes nothing, however late it comes."""

from __future__ import annotations

import dataclasses
import threading
from types import SimpleNamespace

import pytest
from tiny_worker import group_manifest

from afterslip.error_class import ErrorClass
from afterslip_service.db import attempts, bulk, campaigns, claims, jobs, leases
from afterslip_service.db.jobs import NewJob
from afterslip_service.engine import retry
from afterslip_service.engine.states import (
    AttemptState,
    CampaignState,
    JobKind,
    JobState,
)
from afterslip_service.errors import LeaseLostError
from afterslip_service.placement.base import Ended
from afterslip_service.reconcile import acceptance, failures, receipts, watch
from afterslip_service.reconcile.context import Context
from afterslip_service.settings import Settings
from afterslip_workers import entry
from afterslip_workers.messages import TaskError

QUIET = SimpleNamespace(
    promote=lambda *a: None, discard=lambda *a: None, read_manifest=lambda *a: None,
    read_log=lambda *a: "", request_cancel=lambda *a: None, finish=lambda *a: None,
    NotDeliveredError=ValueError, StoreError=KeyError,
)  # fmt: skip


class OneGroup:
    """A campaign with one group, between dispatchers whose store is silent."""

    def __init__(self, database):
        self.database = database
        settings = Settings(store="/nowhere", spool_wait=60.0, lost_limit=3)
        placement = SimpleNamespace(forget=lambda token: None)
        self.context = Context(database, placement, settings, "d")
        with database.write() as connection:
            self.campaign = campaigns.create(
                connection, name="c", digest="d", spec={}, canonical={}
            )
            jobs.create(
                connection, self.campaign, [NewJob(JobKind.GROUP, 0, {"sources": [0]})]
            )
            campaigns.set_model(connection, self.campaign, {}, 1)
            campaigns.refresh(connection, self.campaign)

    @property
    def job(self):
        with self.database.read() as connection:
            return jobs.of_campaign(connection, self.campaign, JobKind.GROUP)[0]

    def attempt(self, token):
        with self.database.read() as connection:
            return attempts.get(connection, token)

    def claim(self):
        with self.database.write() as connection:
            connection.exec_driver_sql("UPDATE jobs SET not_before = created_at")
            campaigns.refresh(connection, self.campaign)
            (found,) = claims.claim(connection, "d")
            campaigns.refresh(connection, self.campaign)
        return found.token

    def store(self, token):
        manifest = group_manifest(token, self.campaign, 0)
        receipt = {"token": token, "outcome": "stored", "manifest": manifest,
                   "stats": {"seconds": 2.5}}  # fmt: skip
        receipts.take(self.context, Ended(token, receipt))

    def invalidate(self):
        with self.database.write() as connection:
            bulk.invalidate(connection, self.campaign)
            campaigns.refresh(connection, self.campaign)


@pytest.fixture
def group(database, monkeypatch):
    for module in (acceptance, receipts, watch):
        monkeypatch.setattr(module, "entry", QUIET)
    return OneGroup(database)


def test_move_in_the_name_of_another_attempt_is_refused(group, database):
    token = group.claim()
    before = group.job
    with database.write() as connection:
        assert not jobs.move(connection, before, JobState.RUNNING, holder="another")
    assert group.job == before
    with database.write() as connection:
        assert jobs.move(connection, before, JobState.RUNNING, holder=token)


def test_failure_of_an_attempt_that_was_followed_by_another_changes_nothing(
    group, database
):
    """Between the look at the job and the write, its next attempt has begun."""
    first = group.claim()
    looked_at = group.job
    watch.give_up(group.context, group.attempt(first), ErrorClass.INTERRUPTED, "silent")
    second = group.claim()
    before = group.job
    with database.write() as connection:
        assert not failures.fail(connection, looked_at, first, "killed", "late")
        assert not failures.cancelled(connection, looked_at, first)
    assert group.job == before
    assert before.token == second
    assert group.attempt(first).error_class == ErrorClass.INTERRUPTED


def test_attempt_that_stored_its_result_meanwhile_is_not_given_up(group):
    token = group.claim()
    looked_at = group.attempt(token)
    group.store(token)
    watch.give_up(group.context, looked_at, "worker_lost", "silent")
    assert group.job.state is JobState.STORED
    assert acceptance.accept_all(group.context)
    assert group.job.token == token


def test_acceptance_that_another_dispatcher_made_and_an_operator_undid(group):
    """It was promoted twice; who comes second finds another attempt in its place."""
    first = group.claim()
    group.store(first)
    later = {}

    def meanwhile():
        assert acceptance.accept_all(group.context)
        group.invalidate()
        later["token"] = group.claim()
        group.store(later["token"])
        assert acceptance.accept_all(group.context)

    assert not acceptance.accept_all(group.context, meanwhile)
    assert group.job.token == later["token"]
    assert group.attempt(first).state is AttemptState.REPLACED
    assert group.attempt(later["token"]).state is AttemptState.ACCEPTED


def test_acceptance_made_twice_counts_once(group, database):
    token = group.claim()
    group.store(token)

    def meanwhile():
        acceptance.accept_all(group.context)

    assert not acceptance.accept_all(group.context, meanwhile)
    with database.read() as connection:
        assert campaigns.get(connection, group.campaign).recent == (2.5,)
    assert group.job.token == token


def test_acceptance_of_an_attempt_leaves_its_successor_that_is_stored_alone(group):
    first = group.claim()
    group.store(first)
    later = {}

    def meanwhile():
        assert acceptance.accept_all(group.context)
        group.invalidate()
        later["token"] = group.claim()
        group.store(later["token"])

    assert not acceptance.accept_all(group.context, meanwhile)
    assert group.job.state is JobState.STORED
    assert group.attempt(later["token"]).state is AttemptState.STORED
    assert acceptance.accept_all(group.context)
    assert group.job.token == later["token"]


def test_result_that_was_refused_meanwhile_is_not_accepted(group, database):
    """The other dispatcher found it damaged."""
    token = group.claim()
    group.store(token)

    def meanwhile():
        with database.write() as connection:
            assert failures.fail(connection, group.job, token, "internal", "damaged")

    assert not acceptance.accept_all(group.context, meanwhile)
    assert group.job.state is JobState.WAITING
    assert group.attempt(token).state is AttemptState.FAILED


def test_lease_of_the_same_holder_but_another_epoch_is_lost(database):
    """It was taken by another one in between, who may have done anything."""
    with database.write() as connection:
        first = leases.acquire(connection, "l", "a", 10.0)
        row = leases.look(connection, "l")
        assert row is not None
        other = leases.take(connection, row, "b", 10.0)
        row = leases.look(connection, "l")
        assert row is not None
        again = leases.take(connection, row, "a", 10.0)
    assert first is not None
    assert other is not None
    assert again is not None
    assert [first.epoch, other.epoch, again.epoch] == [1, 2, 3]
    for stale in (first, dataclasses.replace(again, epoch=4)):
        with database.write() as connection, pytest.raises(LeaseLostError):
            leases.hold(connection, stale)
    with database.write() as connection:
        leases.release(connection, first)
        row = leases.look(connection, "l")
        assert row is not None
        assert not row.released
        leases.hold(connection, again)


def test_dispatcher_that_does_not_stop_in_time_stays_fenced(
    database, new_dispatcher, monkeypatch
):
    """Without its lease it would write unasked while another one leads."""
    dispatcher = new_dispatcher()
    entered, finish, refused = threading.Event(), threading.Event(), []

    def slow():
        if not dispatcher._lead():
            return
        entered.set()
        finish.wait(20)
        try:
            with dispatcher.context.write():
                pass
        except LeaseLostError as error:
            refused.append(error)
            raise

    monkeypatch.setattr(dispatcher, "tick", slow)
    dispatcher.start()
    assert entered.wait(20)
    dispatcher.stop(timeout=0.05)
    with database.write() as connection:
        row = leases.look(connection, "dispatcher")
        assert row is not None
        assert not row.released
        leases.take(connection, row, "another", 10.0)
    finish.set()
    dispatcher._thread.join(20)
    assert refused


def test_attempt_that_was_refused_is_discarded_before_another_is_promoted(
    settings, new_campaign, new_dispatcher, worker, turn, monkeypatch
):
    """Who was suspended while it moved the first one's files finds none to move."""
    monkeypatch.setattr(retry, "BACKOFF_S", (0.0,))
    real, damaged, found, group = entry.promote, [], [], []

    def execute(envelope):
        receipt = worker(envelope)
        if envelope["kind"] == "group" and not damaged:
            damaged.append(envelope["token"])
            folder = settings.store / "attempts" / envelope["token"] / "group.zarr"
            next(p for p in folder.rglob("c/*") if p.is_file()).write_bytes(b"bit rot")
            group.append(envelope["group"]["index"])
        return receipt

    def promote(store, campaign, manifest):
        if group and manifest.kind == "greens" and manifest.group.index == group[0]:
            folder = settings.store / "attempts" / damaged[0]
            found.append((manifest.token == damaged[0], folder.exists()))
        return real(store, campaign, manifest)

    monkeypatch.setattr(entry, "promote", promote)
    turn(new_dispatcher(execute), new_campaign(), CampaignState.COMPLETE)
    assert found[0] == (True, True)
    assert found[-1] == (False, False)


def test_attempt_whose_progress_is_of_a_later_release_goes_to_another_worker(
    group, database, monkeypatch
):
    """Its result could not be read either."""
    refused = TaskError(ErrorClass.OTHER_RELEASE, "the progress has version 3")

    def read_progress(_store, _token):
        raise refused

    monkeypatch.setattr(QUIET, "read_progress", read_progress, raising=False)
    token = group.claim()
    attempt = group.attempt(token)
    assert watch._look_at(group.context, attempt, placed=True) is None
    ended = group.attempt(token)
    assert (ended.state, ended.error_class) == ("lost", ErrorClass.OTHER_RELEASE)
    assert group.claim() != token
