"""Groups are solved before their turn, beside the one whose turn it is."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

sys.path.insert(0, str(Path(__file__).parent))

from small_campaign import SmallCampaign
from supervised import Attempt, wait_for_phase

from afterslip.error_class import ErrorClass
from afterslip_workers import child, entry
from afterslip_workers.engines import registry
from afterslip_workers.engines.base import EvaluatingEngine
from afterslip_workers.engines.viscoelastic import solving
from afterslip_workers.engines.viscoelastic.solvers import Solvers
from afterslip_workers.errors import CancelledError, TaskError
from afterslip_workers.machine.model_cache import ModelCache, WarmOnly
from afterslip_workers.messages import read_envelope
from afterslip_workers.process import supervisor
from afterslip_workers.process.children import Pool
from afterslip_workers.tasks import greens
from afterslip_workers.tasks.ahead import Ahead, Job
from afterslip_workers.tasks.context import Context


@pytest.fixture
def ahead():
    made = Ahead()
    yield made
    made.drop()


def take(ahead, token, stop=lambda: False):
    return ahead.take(token, stop, lambda _: None)


def held(job):
    """Work until it is stopped."""
    assert job.stop.wait(20)
    raise CancelledError


def test_attempt_is_taken_once(ahead):
    ahead.begin("a1", lambda _: "numbers")
    assert take(ahead, "a2") is None
    assert take(ahead, "a1") == "numbers"
    assert take(ahead, "a1") is None


def test_two_attempts_are_under_way_at_a_time(ahead):
    both = threading.Barrier(2)
    for token in ("a1", "a2"):
        ahead.begin(token, lambda _: both.wait(20))
    assert {take(ahead, "a1"), take(ahead, "a2")} == {0, 1}


def test_progress_arrives_while_an_attempt_is_waited_for(ahead):
    go, reports = threading.Event(), []

    def work(job):
        job.report({"phase": "solving"})
        job.report({"solves_done": 2})
        assert go.wait(20)
        return "numbers"

    def report(news):
        reports.append(news)
        go.set()

    ahead.begin("a1", work)
    assert ahead.take("a1", lambda: False, report) == "numbers"
    assert reports[-1] == {"phase": "solving", "solves_done": 2}


def test_failure_before_its_turn_is_no_result_but_is_logged(ahead):
    def work(job):
        raise TaskError(ErrorClass.NO_MEMORY, "too little")

    with capture_logs() as lines:
        ahead.begin("a1", work)
        assert take(ahead, "a1") is None
    assert [line["log_level"] for line in lines] == ["error"]


def test_cancelled_attempt_stops(ahead):
    ahead.begin("a1", held)
    assert take(ahead, "a1", lambda: True) is None


def test_nothing_is_under_way_once_all_is_dropped(ahead):
    jobs = []

    def work(job):
        jobs.append(job)
        return held(job)

    for token in ("a1", "a2"):
        ahead.begin(token, work)
    while len(jobs) < 2:
        time.sleep(0.01)
    ahead.drop()
    assert all(job.stop.is_set() for job in jobs)
    assert take(ahead, "a1") is None


def test_attempts_that_nobody_comes_for_make_room(ahead):
    jobs = []

    def work(job):
        jobs.append(job)
        return held(job)

    for number in range(3):
        ahead.begin(f"a{number}", work)
    while not jobs or not jobs[0].stop.is_set():
        time.sleep(0.01)
    assert take(ahead, "a0") is None


class Twin:
    """Stands for a prepared model."""


def test_a_model_without_a_twin_solves_one_group_at_a_time():
    only: Any = Twin()
    solvers = Solvers(only, twice=True)
    with solvers.one(lambda: False) as found:
        assert found is only
        with pytest.raises(CancelledError), solvers.one(lambda: True):
            pass
    with solvers.one(lambda: False) as found:
        assert found is only


def test_waiting_group_is_announced_once_to_the_process_that_solves(tmp_path, pools):
    first = Attempt(tmp_path, "a1", do="sleep", seconds=60)
    wait_for_phase(tmp_path, "solving", "a1")
    second = Attempt(tmp_path, "a2")
    sign = tmp_path / "attempts" / "a2" / "announced"
    while not sign.exists():
        time.sleep(0.02)
    time.sleep(1.0)
    (solver,) = pools[0]._busy
    assert sign.read_text().split() == [str(solver.pid)]
    entry.request_cancel(tmp_path, "a1")
    first.receipt()
    assert second.receipt()["outcome"] == "stored"
    assert not (tmp_path / "attempts" / "a1" / "announced").exists()


def test_group_is_announced_while_the_process_changes_hands(tmp_path, pools):
    assert Attempt(tmp_path, "a1").receipt()["outcome"] == "stored"
    with pools[0].line():  # the next one, which is about to take the process
        second = Attempt(tmp_path, "a2")
        deadline = time.monotonic() + 20
        while not (tmp_path / "attempts" / "a2" / "announced").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert second.receipt()["outcome"] == "stored"


def test_group_that_was_announced_outlives_the_process_that_solved_it(tmp_path, pools):
    first = Attempt(tmp_path, "a1", do="sleep", seconds=60)
    wait_for_phase(tmp_path, "solving", "a1")
    second = Attempt(tmp_path, "a2")
    while not (tmp_path / "attempts" / "a2" / "announced").exists():
        time.sleep(0.02)
    (solver,) = pools[0]._busy
    os.kill(solver.pid, signal.SIGKILL)
    assert first.receipt()["error"]["class"] == "killed"
    stored = second.receipt()
    assert stored["outcome"] == "stored"
    assert stored["stats"]["solver"] != solver.pid


def test_groups_have_their_turns_in_the_order_in_which_they_came(tmp_path, pools):
    busy = pools[0].take()
    attempts = []
    for number in range(4):
        attempts.append(Attempt(tmp_path, f"a{number}"))
        while len(pools[0]._line) <= number:
            time.sleep(0.01)
    pools[0].give_back(busy)
    began = [attempt.receipt()["stats"]["began"] for attempt in attempts]
    assert began == sorted(began)


def test_writers_are_there_before_the_first_group_is_solved(
    tmp_path, pools, monkeypatch
):
    monkeypatch.setattr(supervisor, "_WRITERS", 2)
    first = Attempt(tmp_path, "a1", do="sleep", seconds=60)
    wait_for_phase(tmp_path, "solving", "a1")
    end = time.monotonic() + 20
    while len(pools[1]._idle) < 2:
        assert time.monotonic() < end
        time.sleep(0.02)
    entry.request_cancel(tmp_path, "a1")
    first.receipt()


def context(campaign, token, warm, **more):
    content = read_envelope(campaign.envelope("group", token, **more))
    return Context(content, lambda _: None, lambda: False, warm)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """A small campaign whose model is built, with the model warm."""
    made = SmallCampaign(tmp_path_factory.mktemp("ahead"))
    assert entry.execute(made.envelope("model", "m1"))["outcome"] == "stored"
    yield made
    entry.close_children()


FIRST = {"group": {"index": 0, "sources": [0, 1]}}
SECOND = {"group": {"index": 1, "sources": [2]}}


def test_group_that_is_solved_ahead_has_the_same_numbers(campaign, monkeypatch):
    warm = ModelCache(10**9)
    alone = greens.solve(context(campaign, "a1", warm, **FIRST))(lambda _: None)
    both = threading.Barrier(2)
    run = solving._run

    def together(*arguments):
        both.wait(30)
        return run(*arguments)

    key = next(iter(warm._entries))
    ready = warm.peek(key)
    with ready.solvers.one(lambda: False) as prepared:
        ready.solvers._free.put(prepared.twin())
    monkeypatch.setattr(solving, "_run", together)
    content = campaign.envelope("group", "a2", **FIRST)
    other = context(campaign, "a3", warm, **SECOND)
    with ThreadPoolExecutor(1) as thread:
        begun = thread.submit(child._solved, content, WarmOnly(warm), Job())
        greens.solve(other)
        ahead = begun.result()(lambda _: None)
    assert alone.values.keys() == ahead.values.keys()
    for name, values in alone.values.items():
        np.testing.assert_array_equal(values, ahead.values[name])


def test_groups_of_a_real_worker_are_solved_ahead(campaign, monkeypatch):
    pool, writers = Pool(), Pool()
    pool.limit = 1
    monkeypatch.setattr(supervisor, "pool", pool)
    monkeypatch.setattr(supervisor, "writers", writers)
    contents = [
        campaign.envelope("group", f"r{k}", **(FIRST if k % 2 else SECOND))
        for k in range(4)
    ]
    try:
        # none is solved before its turn while the model is not prepared yet
        receipts = [entry.execute(contents[0])]
        with ThreadPoolExecutor(3) as threads:
            receipts += threads.map(entry.execute, contents[1:])
    finally:
        pool.close()
        writers.close()
    assert {receipt["outcome"] for receipt in receipts} == {"stored"}
    # the chunks of the same group are the same bytes, whichever process solved it
    for number in (0, 1):
        files = [r["manifest"]["files"] for r in receipts[number::2]]
        chunks = [
            {name: own[name] for name in own if name.startswith("response/c/")}
            for own in files
        ]
        assert chunks[0]
        assert chunks[0] == chunks[1]
    phases = [receipt["stats"]["phases"] for receipt in receipts]
    # what was solved before its turn was only waited for
    assert any("making sources" not in own for own in phases)


def test_engine_that_cannot_solve_beside_itself_is_not_asked_to(campaign, monkeypatch):
    class Alone:
        """Its model is one device's state."""

        def solve(self, work):
            raise AssertionError

    monkeypatch.setattr(greens, "find", lambda physics: Alone())
    content = campaign.envelope("group", "a5", **FIRST)
    assert child._solved(content, WarmOnly(ModelCache(10**9)), Job()) is None


def test_waves_are_not_solved_beside_each_other():
    assert not isinstance(registry.find("waves"), EvaluatingEngine)


def test_group_is_not_solved_ahead_where_its_model_would_have_to_be_built(campaign):
    cold = ModelCache(10**9)
    made = Ahead()
    content = campaign.envelope("group", "a4", **FIRST)
    made.begin("a4", partial(child._solved, content, WarmOnly(cold)))
    with capture_logs() as lines:
        assert take(made, "a4") is None
    assert not lines
    assert not len(cold)
