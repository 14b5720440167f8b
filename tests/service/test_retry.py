"""What follows a failure: every class is known, and the next try is another one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import distributed
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterslip.error_class import ErrorClass
from afterslip_service.db import jobs
from afterslip_service.db.claims import Claim
from afterslip_service.engine import retry
from afterslip_service.engine.explain import ADVICE
from afterslip_service.engine.retry import Action
from afterslip_service.engine.states import CampaignState, JobKind
from afterslip_service.placement.cluster import Cluster
from afterslip_workers import entry
from afterslip_workers.errors import TaskError, classify
from afterslip_workers.messages import Envelope, read_envelope

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def rows():
    """Return (classes, tries, then) of each row of the page's table."""
    text = PAGE.read_text().partition("### What follows a failure")[2]
    table = text.partition("\n###")[0]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        classes = re.findall(r"`([a-z_]+)`", cells[0])
        if classes:
            yield classes, cells[1], cells[3]


def test_every_class_is_decided_explained_and_documented_once():
    decided = [*retry.ATTEMPTS, *retry.LOSSES, *retry.FREE, ErrorClass.STORE_FULL]
    assert sorted(decided) == sorted(ErrorClass)
    assert set(ADVICE) == set(ErrorClass)
    listed = [name for classes, _, _ in rows() for name in classes]
    assert sorted(listed) == sorted(ErrorClass)


def tries_of(error_class):
    """Count how often a job is tried that always fails in one way; None: for ever."""
    failures = {}
    for tries in range(1, 20):
        failures = retry.counted(failures, error_class)
        verdict = retry.decide(error_class, failures)
        if verdict.action is Action.FAIL:
            return tries
    return None


@pytest.mark.parametrize(
    ("error_class", "tries", "then"),
    [(name, tries, then) for classes, tries, then in rows() for name in classes],
)
def test_page_says_what_the_engine_does(error_class, tries, then):
    if tries == "any number":
        assert tries_of(error_class) is None
        paused = retry.decide(error_class, {error_class: 1}).action is Action.PAUSE
        assert paused == ("paused" in then)
    else:
        assert tries_of(error_class) == int(tries.partition(",")[0])
        assert then == "failed"


def test_every_error_of_a_worker_has_a_known_class():
    for error in (MemoryError(), ValueError("x"), OSError(28, "full")):
        assert classify(error).error_class in ErrorClass
    assert isinstance(TaskError(ErrorClass.NAN, "m").error_class, ErrorClass)


@pytest.mark.parametrize(
    ("failures", "strict", "avoid", "backend"),
    [
        ({}, 0, set(), None),
        ({"internal": 2, "interrupted": 9, "worker_lost": 2}, 0, set(), None),
        ({"not_converged": 1}, 1, set(), None),
        ({"unstable": 1}, 1, set(), None),
        ({"oom": 1}, 0, {"oom"}, None),
        ({"no_memory": 1}, 0, {"no_memory"}, None),
        ({"oom": 2}, 0, {"oom"}, "cpu"),
        ({"oom": 1, "no_memory": 1}, 0, {"oom", "no_memory"}, "cpu"),
        ({"gpu_lost": 2, "killed": 1}, 0, {"gpu_lost", "killed"}, None),
        ({"gpu_error": 1, "oom": 0}, 0, {"gpu_error"}, None),
    ],
)
def test_next_try_is_another_one(failures, strict, avoid, backend):
    assert retry.escalate(failures) == retry.Escalation(strict, avoid, backend)


@given(st.dictionaries(st.sampled_from(ErrorClass), st.integers(0, 5)))
def test_next_try_never_asks_for_less(failures):
    """One failure more makes the solver no laxer and the choice of workers no wider."""
    before = retry.escalate(failures)
    for error_class in ErrorClass:
        after = retry.escalate(retry.counted(failures, error_class))
        assert after.strict >= before.strict
        assert after.avoid >= before.avoid
        assert before.backend in (None, after.backend)


@pytest.fixture
def asked_of_group_1(new_campaign, new_dispatcher, worker, turn, monkeypatch):
    """Fail group 1 some times; return the envelopes of its tries."""
    monkeypatch.setattr(retry, "BACKOFF_S", (0.0,))

    def run(failures, canonical=None, **changes):
        worker.fail["group", 1] = list(failures)
        asked = []

        def execute(envelope):
            if envelope["kind"] == "group" and envelope["group"]["index"] == 1:
                asked.append(read_envelope(envelope))
            return worker(envelope)

        campaign = new_campaign()
        turn(new_dispatcher(execute, **changes), campaign, CampaignState.COMPLETE)
        return asked

    return run


def test_group_that_ran_out_of_memory_goes_elsewhere_and_at_last_to_the_cpu(
    asked_of_group_1,
):
    first, second, third = asked_of_group_1(["oom", "no_memory"])
    assert (list(first.avoid), first.backend) == ([], "auto")
    assert (list(second.avoid), second.backend) == (["tiny"], "auto")
    assert (list(third.avoid), third.backend) == (["tiny"], "cpu")


def test_backend_that_is_configured_is_never_changed(asked_of_group_1):
    asked = asked_of_group_1(["oom", "oom"], backend="gpu")
    assert [envelope.backend for envelope in asked] == ["gpu"] * 3


def test_failures_that_say_nothing_of_a_worker_change_nothing(asked_of_group_1):
    first, second = asked_of_group_1(["internal"])
    assert (list(second.avoid), second.backend, second.escalation) == ([], "auto", 0)
    assert first.avoid == second.avoid


def test_model_in_parts_stays_on_its_gpus(
    database, new_campaign, new_dispatcher, worker
):
    campaign = new_campaign()
    dispatcher = new_dispatcher()
    with database.read() as connection:
        job = jobs.of_campaign(connection, campaign, JobKind.MODEL)[0]

    failed = replace(job, failures={"oom": 2})
    for gpus, backend in ((4, "auto"), (1, "cpu")):
        claim = Claim(failed, "t", 3, "viscoelastic", {"solver": {"gpus": gpus}})
        assert dispatcher._envelope(claim).backend == backend


def _where(content):
    return {"token": content["token"], "worker": distributed.get_worker().name}


def test_cluster_gives_an_attempt_to_another_worker_while_there_is_one(monkeypatch):

    monkeypatch.setattr(entry, "execute", _where)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=False, dashboard_address=None
    ) as dask:
        placement = Cluster(dask.scheduler_address)
        names = sorted(worker.name for worker in placement.workers())
        ended = {}
        for number in range(8):
            avoid = names[:1] if number < 6 else names
            named = {"token": f"t{number}", "campaign": "c", "store": "s", "spec": {}}
            named["physics"] = "viscoelastic"
            placement.submit(Envelope(kind="model", avoid=avoid, **named))
            for future in list(placement._held.values()):
                future.result(timeout=20)
        while len(ended) < 8:
            ended |= {e.token: (e.receipt or {})["worker"] for e in placement.ended()}
        placement.close()
    assert {str(ended[f"t{n}"]) for n in range(6)} == set(names[1:])


@pytest.mark.parametrize(
    ("error_class", "failures", "delay", "reason"),
    [
        (ErrorClass.INTERRUPTED, {}, 1.0, "the service was stopped"),
        (ErrorClass.INTERRUPTED, {"interrupted": 9}, 1.0, "the service was stopped"),
        (ErrorClass.INTERNAL, {"internal": 1}, 1.0, "attempt 1 failed"),
        (
            ErrorClass.GPU_ERROR,
            {"gpu_error": 1, "internal": 1},
            5.0,
            "attempt 2 failed",
        ),
        (ErrorClass.KILLED, {"killed": 1}, 1.0, "lost for the 1. time"),
    ],
)
def test_next_try_waits_longer_each_time_and_says_why(
    error_class, failures, delay, reason
):
    verdict = retry.decide(error_class, failures)
    assert verdict == retry.Verdict(Action.RETRY, delay, reason)
