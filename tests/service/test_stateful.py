"""The state machine of groups against the real code, with operators at random."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tiny_worker import group_manifest

from afterslip.error_class import ErrorClass
from afterslip_service.db import attempts, bulk, campaigns, claims, jobs
from afterslip_service.db.jobs import NewJob
from afterslip_service.db.session import Database
from afterslip_service.engine.states import AttemptState, JobKind, JobState
from afterslip_service.placement.base import Ended
from afterslip_service.reconcile import acceptance, failures, receipts, watch
from afterslip_service.reconcile.context import Context
from afterslip_service.settings import Settings

N_GROUP = 3
FINAL = {JobState.ACCEPTED, JobState.CANCELLED}
ACTS = ["cancel", "uncancel", "retry", "invalidate"]
MEANWHILE = {
    "accept": lambda groups, data: groups.accept(),
    "invalidate": lambda groups, data: groups.bulk(None, "invalidate"),
    "claim": lambda groups, data: groups.claim(N_GROUP),
    "stored": lambda groups, data: groups.ended(data, "stored"),
}
CLASSES = ["killed", "oom", "not_converged", "bad_input", "store_full"]


class Groups(RuleBasedStateMachine):
    """One campaign with three groups; the store and the workers are a dictionary."""

    database: Database

    def __init__(self):
        super().__init__()
        chosen = Settings(store="/nowhere", spool_wait=60.0, lost_limit=3)
        self.context = Context(self.database, SimpleNamespace(forget=lambda t: None),
                               chosen, "model")  # fmt: skip
        with self.database.write() as connection:
            self.campaign = campaigns.create(
                connection, name="c", digest="d", spec={}, canonical={}
            )
            new = [NewJob(JobKind.GROUP, n, {"sources": [n]}) for n in range(N_GROUP)]
            jobs.create(connection, self.campaign, new)
            campaigns.set_model(connection, self.campaign, {}, N_GROUP)
            campaigns.refresh(connection, self.campaign)
        self.tokens = []
        self.looks = []
        self.before = {}
        self.operator = False
        self.ever = set()

    def group(self, index):
        with self.database.read() as connection:
            return jobs.of_campaign(
                connection, self.campaign, JobKind.GROUP, after=index - 1, limit=1
            )[0]

    def operate(self, act):
        self.operator = True
        with self.database.write() as connection:
            campaigns.get(connection, self.campaign, lock=True)
            act(connection)
            campaigns.refresh(connection, self.campaign)

    @rule(most=st.integers(1, 3))
    def claim(self, most):
        with self.database.write() as connection:
            # what waits after a failure may start at once here
            connection.exec_driver_sql("UPDATE jobs SET not_before = created_at")
            campaigns.refresh(connection, self.campaign)
            found = claims.claim(connection, "model", most)
            campaigns.refresh(connection, self.campaign)
        self.tokens += [(claim.token, claim.job.index) for claim in found]

    def ended(self, data, outcome, error=None):
        if not self.tokens:
            return
        token, index = data.draw(st.sampled_from(self.tokens))
        manifest = group_manifest(token, self.campaign, index)
        receipt = {
            "token": token,
            "outcome": outcome,
            "manifest": manifest if outcome == "stored" else None,
            "error": error and {"class": error, "message": "m"},
            "stats": {"seconds": 1.0},
        }
        receipts.take(self.context, Ended(token, receipt))

    @rule(data=st.data())
    def stored_early_late_or_twice(self, data):
        self.ended(data, "stored")

    @rule(data=st.data(), error=st.sampled_from(CLASSES))
    def failed(self, data, error):
        self.ended(data, "failed", error)

    @rule(data=st.data())
    def stopped(self, data):
        self.ended(data, "cancelled")

    @rule(data=st.data())
    def given_up(self, data):
        if not self.tokens:
            return
        token, _ = data.draw(st.sampled_from(self.tokens))
        with self.database.read() as connection:
            attempt = attempts.get(connection, token)
        assert attempt is not None
        if attempt.state in attempts.LIVE:
            assert attempt is not None
            watch.give_up(self.context, attempt, ErrorClass.INTERRUPTED, "lease lost")

    @rule()
    def look_at_what_is_under_way(self):
        """As a watch, or another dispatcher, that acts on it only later."""
        with self.database.read() as connection:
            found = attempts.live(connection)
            owned = [jobs.by_token(connection, attempt.token) for attempt in found]
        self.looks += zip(found, owned, strict=True)

    @rule(data=st.data(), error=st.sampled_from(CLASSES))
    def given_up_after_an_old_look(self, data, error):
        if self.looks:
            attempt, _ = data.draw(st.sampled_from(self.looks))
            watch.give_up(self.context, attempt, error, "silent")

    @rule(data=st.data(), error=st.sampled_from(CLASSES))
    def failed_after_an_old_look(self, data, error):
        if self.looks:
            attempt, job = data.draw(st.sampled_from(self.looks))
            with self.database.write() as connection:
                failures.fail(connection, job, attempt.token, error, "m")

    @rule()
    def accept(self):
        acceptance.accept_all(self.context)

    @rule(data=st.data())
    def accept_while_others_act(self, data):
        """Between the promotion of files and the acceptance of their jobs."""

        def meanwhile():
            for act in data.draw(
                st.lists(st.sampled_from(sorted(MEANWHILE)), max_size=6)
            ):
                MEANWHILE[act](self, data)

        acceptance.accept_all(self.context, meanwhile)

    @rule(index=st.none() | st.integers(0, N_GROUP - 1), what=st.sampled_from(ACTS))
    def bulk(self, index, what):
        only = None if index is None else {index}
        act = getattr(bulk, what)
        self.operate(lambda c: act(c, self.campaign, only=only))

    @rule(paused=st.booleans())
    def pause(self, paused):
        self.operate(lambda c: campaigns.set_paused(c, self.campaign, paused))

    @rule(cancelling=st.booleans())
    def cancel_campaign(self, cancelling):
        def act(connection):
            campaigns.set_cancelling(connection, self.campaign, cancelling)
            if cancelling:
                bulk.cancel_waiting(connection, self.campaign)
            else:
                bulk.uncancel(connection, self.campaign)

        self.operate(act)

    @invariant()
    def every_promise_holds(self):
        with self.database.read() as connection:
            found = jobs.of_campaign(connection, self.campaign, JobKind.GROUP)
            for job in found:
                tries = attempts.of_job(connection, job.id)
                good = [t for t in tries if t.state is AttemptState.ACCEPTED]
                assert len(good) <= 1, "at most one accepted attempt"
                if job.index in self.ever:
                    assert good, "what was accepted is never lost"
                if job.state is JobState.ACCEPTED:
                    assert good
                    assert job.token == good[0].token
                    self.ever.add(job.index)
                live = [t.token for t in tries if t.state in attempts.LIVE]
                assert set(live) <= {job.token}, "only the holder is under way"
                was = self.before.get(job.index)
                if was in FINAL and job.state is not was:
                    assert self.operator, "final states are left by operators only"
                self.before[job.index] = job.state
        self.operator = False


@pytest.fixture(params=["sqlite", "postgresql"])
def one_database(request, tmp_path, sqlite_template):
    if request.param == "sqlite":
        shutil.copy(sqlite_template, tmp_path / "db.sqlite")
        made = Database(str(tmp_path / "db.sqlite"))
        yield made
        made.close()
        return
    with request.getfixturevalue("postgres_databases").one() as url:
        made = Database(url)
        yield made
        made.close()


def test_groups_keep_their_promises_whatever_happens(one_database, monkeypatch):
    nothing = SimpleNamespace(
        promote=lambda *a: None, discard=lambda *a: None, read_manifest=lambda *a: None,
        read_log=lambda *a: "", request_cancel=lambda *a: None,
        NotDeliveredError=ValueError, StoreError=KeyError, finish=lambda *a: None,
    )  # fmt: skip
    for module in (acceptance, receipts, watch):
        monkeypatch.setattr(module, "entry", nothing)
    few = settings(max_examples=10, stateful_step_count=30, deadline=None,
                   suppress_health_check=list(HealthCheck), database=None)  # fmt: skip
    machine = type("Machine", (Groups,), {"database": one_database})
    run_state_machine_as_test(machine, settings=few)
