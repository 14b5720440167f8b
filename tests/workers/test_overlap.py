"""A group is solved while the one before is written, by another process."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from afterslip.error_class import ErrorClass
from afterslip_common.observe import logs, telemetry
from afterslip_workers.process.delivery import deliverer

sys.path.insert(0, str(Path(__file__).parent))

from supervised import FAKE, Attempt, wait_for_phase

from afterslip_workers import entry, lifecycle
from afterslip_workers.errors import TaskError
from afterslip_workers.machine import device, exchange
from afterslip_workers.process import memory, supervisor
from afterslip_workers.process.children import Pool
from afterslip_workers.process.drain import Drain
from afterslip_workers.tasks import greens

pytestmark = pytest.mark.usefixtures("pools")


def test_next_group_is_solved_while_one_is_written(tmp_path):
    first = Attempt(tmp_path, "a1", until="go")
    wait_for_phase(tmp_path, "writing", "a1")
    second = Attempt(tmp_path, "a2")
    done = second.receipt()
    assert not first.ended
    first.touch("go")
    written = first.receipt()
    assert done["outcome"] == written["outcome"] == "stored"
    solvers = {r["stats"]["solver"] for r in (done, written)}
    assert len(solvers) == 1
    assert {r["stats"]["pid"] for r in (done, written)}.isdisjoint(solvers)


def test_receipt_tells_of_both_processes(tmp_path):
    stats = Attempt(tmp_path, "a1").receipt()["stats"]
    assert 0.0 < stats["solving_s"] < stats["seconds"]
    assert "writing" in stats["phases"]
    assert sum(stats["phases"].values()) <= stats["seconds"]
    assert "warm_bytes" not in stats


def test_arrays_arrive_bit_for_bit(tmp_path):
    found = Attempt(tmp_path, "a1").receipt()["stats"]["bits"]
    assert found == np.array([1.5, np.nan, -0.0], dtype=np.float32).tobytes().hex()


def test_attempt_that_waits_for_its_turn_has_not_begun(tmp_path, pools):
    first = Attempt(tmp_path, "a1", do="sleep", seconds=60)
    wait_for_phase(tmp_path, "solving", "a1")
    second = Attempt(tmp_path, "a2")
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        assert entry.read_progress(tmp_path, "a2") is None
        assert len(pools[0]._busy) == 1
        time.sleep(0.05)
    entry.request_cancel(tmp_path, "a1")
    assert first.receipt()["outcome"] == "cancelled"
    assert second.receipt()["outcome"] == "stored"


def test_attempt_that_waits_can_be_cancelled(tmp_path):
    first = Attempt(tmp_path, "a1", do="sleep", seconds=60)
    wait_for_phase(tmp_path, "solving", "a1")
    second = Attempt(tmp_path, "a2")
    entry.request_cancel(tmp_path, "a2")
    asked = time.monotonic()
    assert second.receipt()["outcome"] == "cancelled"
    assert time.monotonic() - asked < 10
    assert not first.ended
    entry.request_cancel(tmp_path, "a1")
    first.receipt()


def test_draining_worker_begins_none_that_waits(tmp_path, monkeypatch):
    drain = Drain()
    monkeypatch.setattr(supervisor, "drain", drain)
    first = Attempt(tmp_path, "a1", do="sleep", seconds=2)
    wait_for_phase(tmp_path, "solving", "a1")
    second = Attempt(tmp_path, "a2")
    while drain.busy < 2:
        time.sleep(0.02)
    drain.ask(60.0)
    assert second.receipt()["outcome"] == "cancelled"
    assert first.receipt()["outcome"] == "stored"


def test_closing_worker_begins_none_that_waits(tmp_path, monkeypatch, pools):
    drain = Drain()
    for module in (supervisor, lifecycle):
        monkeypatch.setattr(module, "drain", drain)
    monkeypatch.setattr(lifecycle, "pool", pools[0])
    first = Attempt(tmp_path, "a1", do="sleep", seconds=60)
    wait_for_phase(tmp_path, "solving", "a1")
    second = Attempt(tmp_path, "a2")
    while drain.busy < 2:
        time.sleep(0.02)
    no_worker: Any = None
    lifecycle.ChildKeeper().teardown(no_worker)
    assert first.receipt()["error"]["class"] == "killed"
    assert second.receipt()["outcome"] == "cancelled"
    assert entry.read_progress(tmp_path, "a2") is None


def test_death_of_the_writer_fails_its_own_attempt_only(tmp_path, pools):
    assert (
        Attempt(tmp_path, "a1", writing="die").receipt()["error"]["class"] == "killed"
    )
    after = Attempt(tmp_path, "a2").receipt()
    assert after["outcome"] == "stored"
    assert after["stats"]["solver"] == pools[0]._idle[0].pid


def test_cancelled_writer_need_not_have_been_counted(tmp_path, pools):
    attempt = Attempt(tmp_path, "a1", until="never")
    wait_for_phase(tmp_path, "writing", "a1")
    entry.request_cancel(tmp_path, "a1")
    receipt = attempt.receipt()
    assert receipt["outcome"] == "cancelled"
    assert receipt["stats"]["memory"]["before"] == {"resident": 0, "gpu": 0}
    assert len(pools[0]._idle) == 1


def test_death_of_the_solver_leaves_what_is_written(tmp_path):
    first = Attempt(tmp_path, "a1", until="go")
    wait_for_phase(tmp_path, "writing", "a1")
    assert Attempt(tmp_path, "a2", do="die").receipt()["error"]["class"] == "killed"
    first.touch("go")
    assert first.receipt()["outcome"] == "stored"
    # and there is room for another
    assert Attempt(tmp_path, "a3").receipt()["outcome"] == "stored"


def test_child_does_not_wait_for_the_count_of_its_memory(tmp_path, monkeypatch):
    answered = threading.Event()

    def slow(pid):
        answered.wait(20)
        return memory.Held(0, 0)

    monkeypatch.setattr(memory, "of", slow)
    assert Attempt(tmp_path, "a1").receipt()["outcome"] == "stored"
    assert not answered.is_set()
    answered.set()


def test_passage_leaves_nothing_behind():
    def held():
        return psutil.Process().num_fds()

    before = held()
    with exchange.exchange_file() as path:
        sending = exchange.Sending(path)
        sending.save({"n": 1}, {"a": np.arange(5), "b": np.zeros((2, 0))})
        facts, arrays = exchange.load(path)
        assert held() == before + 1
    assert facts == {"n": 1}
    np.testing.assert_array_equal(arrays["a"], np.arange(5))
    assert arrays["b"].shape == (2, 0)
    assert held() == before
    assert not os.path.exists(path)  # noqa: PTH110 - no path of a file system


def test_reader_waits_for_what_is_not_sent_yet():
    with exchange.exchange_file() as path, ThreadPoolExecutor(1) as beside:
        sending = exchange.Sending(path)
        found = beside.submit(exchange.load, path)
        time.sleep(0.2)
        assert not found.done()
        sending.save({"n": 1}, {"a": np.arange(5)})
        assert found.result(10)[0] == {"n": 1}


@pytest.mark.parametrize("part", [0, 100, 5000])
def test_death_of_the_sender_is_no_result(part):
    code = (
        "import os, signal, sys, numpy as np\n"
        "from afterslip_workers.machine import exchange\n"
        "sending = exchange.Sending(sys.argv[1])\n"
        "if part := int(sys.argv[2]):\n"
        "    sending.save({}, {'a': np.arange(1000.0)})\n"
        "    os.truncate(sys.argv[1], part)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    with exchange.exchange_file() as path:
        subprocess.run([sys.executable, "-c", code, path, str(part)], check=False)
        with pytest.raises(EOFError):
            exchange.load(path)


class Group:
    """Stands for a group that is solved, and evaluated when the test says so."""

    def __init__(self, monkeypatch, evaluate):
        self.solved = 0
        self._evaluate = evaluate
        monkeypatch.setattr(greens, "solve", self.solve)
        monkeypatch.setattr(greens, "write", lambda _, solved: solved)
        self.context: Any = SimpleNamespace(
            phase=lambda _: None,
            envelope=SimpleNamespace(token="a1"),
            should_stop=lambda: False,
            report=lambda _: None,
        )

    def solve(self, context):
        self.solved += 1
        return self._evaluate


def test_next_group_is_solved_while_one_is_evaluated(monkeypatch):
    go = threading.Event()

    def evaluate(phase):
        assert go.wait(20)
        return greens.Solved({"a": np.arange(3)}, history=[{"phase": "elastic"}])

    group = Group(monkeypatch, evaluate)
    with exchange.exchange_file() as one, exchange.exchange_file() as two:
        greens.hand_over(group.context, one)
        greens.hand_over(group.context, two)
        assert group.solved == 2
        go.set()
        for path in (one, two):
            found: Any = greens.take_over(group.context, path)
            np.testing.assert_array_equal(found.values["a"], np.arange(3))
            assert found.history == [{"phase": "elastic"}]


def test_group_that_cannot_be_evaluated_says_why(monkeypatch):
    def evaluate(phase):
        raise TaskError(ErrorClass.DAMAGED, "the station table is damaged")

    group = Group(monkeypatch, evaluate)
    with exchange.exchange_file() as path:
        greens.hand_over(group.context, path)
        with pytest.raises(TaskError, match="station table") as caught:
            greens.take_over(group.context, path)
    assert caught.value.error_class == ErrorClass.DAMAGED


def test_group_whose_solver_died_is_killed(monkeypatch):
    group = Group(monkeypatch, None)
    early = pytest.raises(TaskError, match="before the group was evaluated")
    with exchange.exchange_file() as path, early as caught:
        greens.take_over(group.context, path)
    assert caught.value.error_class == ErrorClass.KILLED


@pytest.mark.parametrize(
    ("cards", "threads", "limit"), [(1, 2, 1), (1, 1, None), (0, 2, None)]
)
def test_worker_with_a_gpu_and_two_threads_solves_one_at_a_time(
    monkeypatch, cards, threads, limit
):
    pool, compilers = Pool((FAKE,)), Pool((FAKE,))
    monkeypatch.setattr(lifecycle, "pool", pool)
    monkeypatch.setattr(lifecycle, "compilers", compilers)
    monkeypatch.setattr(logs, "inherit", lambda: None)
    monkeypatch.setattr(telemetry, "start", lambda part: None)
    monkeypatch.setattr(deliverer, "kick", lambda: None)
    monkeypatch.setattr(device, "graphics", lambda: ({"name": "card"},) * cards)

    async def added(plugin):
        pass

    state = SimpleNamespace(nthreads=threads)
    worker = SimpleNamespace(state=state, plugin_add=added, metrics={})
    asyncio.run(lifecycle.dask_setup(worker))
    assert pool.limit == limit
    pool.close()
    compilers.close()


def test_worker_imports_little_before_it_starts_its_computing_process():
    program = (
        "import sys, distributed, afterslip_workers.lifecycle\n"
        "late = {'pydantic', 'structlog', 'afterslip_workers.process.supervisor'}\n"
        "sys.exit(', '.join(late & set(sys.modules)) or 0)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
