"""A worker outlives whatever its child does, and answers for it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest
from structlog.testing import capture_logs

sys.path.insert(0, str(Path(__file__).parent))

from supervised import FAKE, envelope, wait_for_phase

from afterslip_workers import child as computing
from afterslip_workers import entry
from afterslip_workers.process import supervisor
from afterslip_workers.process.children import Pool


@pytest.fixture(autouse=True)
def pool(monkeypatch, tmp_path):
    entry.prepare(tmp_path)
    pool = Pool((FAKE,))
    monkeypatch.setattr(supervisor, "pool", pool)
    yield pool
    pool.close()


def in_background(store, **order):
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(entry.execute(envelope(store, **order)))
    )
    thread.start()
    return thread, answers


def test_result_comes_back_as_a_small_receipt(tmp_path):
    receipt = entry.execute(envelope(tmp_path, do="nothing"))
    assert receipt["outcome"] == "stored"
    assert receipt["error"] is None
    assert receipt["stats"]["solves"] == 3
    assert receipt["stats"]["seconds"] >= 0
    assert receipt["stats"]["worker"]


def test_child_lives_on_between_tasks(tmp_path):
    first = entry.execute(envelope(tmp_path, "a1", do="nothing"))
    second = entry.execute(envelope(tmp_path, "a2", do="nothing"))
    assert first["stats"]["pid"] == second["stats"]["pid"] != os.getpid()


def test_log_holds_what_python_and_compiled_code_print(tmp_path):
    entry.execute(envelope(tmp_path, do="nothing"))
    log = entry.read_log(tmp_path, "a1")
    assert "line from the task" in log
    assert "line from compiled code" in log


def test_closing_leaves_no_process_and_no_open_pipe(tmp_path, pool):
    idle, busy = pool.take(), pool.take()
    pool.give_back(idle)
    pool.close()
    assert not idle.alive
    assert not busy.alive
    # who listens to a busy child gives it back, and its pipes are closed then
    pool.give_back(busy)
    for child in (idle, busy):
        assert child._process.stdin.closed
        assert child._process.stdout.closed


def test_killed_child_is_a_failed_attempt_and_the_next_gets_a_fresh_child(tmp_path):
    before = entry.execute(envelope(tmp_path, "a1", do="nothing"))
    receipt = entry.execute(envelope(tmp_path, "a2", do="die"))
    assert receipt["outcome"] == "failed"
    assert receipt["error"]["class"] == "killed"
    assert "SIGKILL" in receipt["error"]["message"]
    assert "line from the task" in receipt["error"]["message"]
    after = entry.execute(envelope(tmp_path, "a3", do="nothing"))
    assert after["outcome"] == "stored"
    assert after["stats"]["pid"] != before["stats"]["pid"]


def test_segmentation_fault_is_named(tmp_path):
    receipt = entry.execute(envelope(tmp_path, do="segfault"))
    assert receipt["error"]["class"] == "killed"
    assert "SIGSEGV" in receipt["error"]["message"]


def test_child_that_dies_after_its_manifest_has_stored(tmp_path):
    receipt = entry.execute(envelope(tmp_path, do="commit_and_die"))
    assert receipt["outcome"] == "stored"


def test_stored_attempt_is_not_run_twice(tmp_path):
    entry.execute(envelope(tmp_path, do="commit_and_die"))
    again = entry.execute(envelope(tmp_path, do="die"))
    assert again["outcome"] == "stored"


@pytest.mark.parametrize(
    ("order", "error_class", "text"),
    [
        ({"do": "memory"}, "oom", "coarser mesh"),
        ({"do": "mesh"}, "mesh", "fault main: too small"),
        ({"do": "task", "class": "not_converged"}, "not_converged", "as asked"),
        ({"do": "zero"}, "internal", "ZeroDivisionError"),
    ],
)
def test_failure_has_a_class_and_a_sentence(tmp_path, order, error_class, text):
    receipt = entry.execute(envelope(tmp_path, **order))
    assert receipt["outcome"] == "failed"
    assert receipt["error"]["class"] == error_class
    assert text in receipt["error"]["message"]
    assert "Traceback" not in receipt["error"]["message"]
    assert "Traceback" in entry.read_log(tmp_path, "a1")


def test_failed_attempt_leaves_only_what_tells_why(tmp_path):
    entry.execute(envelope(tmp_path, do="sleep", seconds=0))
    entry.execute(envelope(tmp_path, "a2", do="die"))
    names = {path.name for path in (tmp_path / "attempts" / "a2").iterdir()}
    assert names == {"log.txt", "progress.json", "receipt.json"}


def test_cancel_stops_a_solve_and_keeps_the_child(tmp_path, pool):
    thread, answers = in_background(tmp_path, do="sleep", seconds=60)
    wait_for_phase(tmp_path, "solving")
    started = time.monotonic()
    entry.request_cancel(tmp_path, "a1")
    thread.join(15)
    assert answers[0]["outcome"] == "cancelled"
    assert time.monotonic() - started < 3
    assert len(pool._idle) == 1


def test_cancel_kills_a_child_that_does_not_listen(tmp_path):
    thread, answers = in_background(tmp_path, do="hang", seconds=60)
    wait_for_phase(tmp_path, "solving")
    started = time.monotonic()
    entry.request_cancel(tmp_path, "a1")
    thread.join(15)
    assert answers[0]["outcome"] == "cancelled"
    assert time.monotonic() - started < 10


def test_cancel_before_the_start_costs_nothing(tmp_path, pool):
    entry.request_cancel(tmp_path, "a1")
    receipt = entry.execute(envelope(tmp_path, do="nothing"))
    assert receipt["outcome"] == "cancelled"
    assert not pool._idle


def test_time_limit_is_a_failure_of_its_own_class(tmp_path):
    receipt = entry.execute(envelope(tmp_path, do="sleep", seconds=60, timeout_s=0.5))
    assert receipt["outcome"] == "failed"
    assert receipt["error"]["class"] == "timeout"


def test_heartbeat_goes_on_while_the_child_holds_its_interpreter(tmp_path):
    thread, answers = in_background(tmp_path, do="hang", seconds=3)
    wait_for_phase(tmp_path, "solving")
    path = tmp_path / "attempts" / "a1" / "progress.json"
    ages = []
    while thread.is_alive():
        ages.append(time.time() - path.stat().st_mtime)
        time.sleep(0.1)
    assert answers[0]["outcome"] == "stored"
    assert max(ages) < 2.0
    assert len(ages) > 10


def test_full_store_is_reported_as_such(tmp_path):
    # a limit on the size of files stands in for a full disk
    program = textwrap.dedent(f"""
        import json, resource, sys
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        from afterslip_workers import entry
        from afterslip_workers.process import supervisor
        from afterslip_workers.process.children import Pool
        supervisor.pool = Pool(({FAKE!r},))
        print(json.dumps(entry.execute({envelope(tmp_path, do="fill")!r})))
        supervisor.pool.close()
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert '"store_full"' in done.stdout, done.stdout
    assert "free space" in done.stdout


@pytest.mark.parametrize("order", [("sleep", 60), ("hang", 60)])
def test_no_child_survives_a_killed_worker(tmp_path, order):
    program = textwrap.dedent(f"""
        from afterslip_workers import entry
        from afterslip_workers.process import supervisor
        from afterslip_workers.process.children import Pool
        supervisor.pool = Pool(({FAKE!r},))
        entry.execute({envelope(tmp_path, do=order[0], seconds=order[1])!r})
    """)
    worker = subprocess.Popen([sys.executable, "-c", program])
    try:
        wait_for_phase(tmp_path, "solving")
        children = psutil.Process(worker.pid).children(recursive=True)
        assert len(children) == 1
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    assert psutil.wait_procs(children, timeout=5)[1] == []


def test_child_outlives_the_thread_that_asked_for_it(tmp_path):
    thread, first = in_background(tmp_path, token="a1", do="nothing")
    thread.join()
    second = entry.execute(envelope(tmp_path, "a2", do="nothing"))
    assert first[0]["stats"]["pid"] == second["stats"]["pid"]


def test_envelope_of_another_release_is_refused():
    receipt = entry.execute({"version": 99, "token": "a1"})
    assert receipt["error"]["class"] == "other_release"
    assert "same release" in receipt["error"]["message"]


@pytest.mark.parametrize("token", ["../x", "", "a/b", ".hidden"])
def test_envelope_cannot_leave_the_store(tmp_path, token):
    receipt = entry.execute(envelope(tmp_path, token, do="nothing"))
    assert receipt["outcome"] == "failed"
    assert not list((tmp_path / "attempts").iterdir())


def test_unwritable_store_is_a_receipt(tmp_path):
    (tmp_path / "attempts").rmdir()
    (tmp_path / "attempts").write_text("in the way")
    receipt = entry.execute(envelope(tmp_path, do="nothing"))
    assert receipt["outcome"] == "failed"
    assert receipt["error"]["class"] == "store_lost"


def test_children_of_a_forked_process_are_left_alone(tmp_path, pool):
    entry.execute(envelope(tmp_path, do="nothing"))
    fork = multiprocessing.get_context("fork").Process(target=pool.close)
    fork.start()
    fork.join(10)
    assert fork.exitcode == 0
    assert entry.execute(envelope(tmp_path, "a2", do="nothing"))["outcome"] == "stored"


def test_child_started_ahead_has_imported_the_engines_before_its_first_task():
    pool = Pool()
    try:
        pool.start_ahead()
        child = pool.take()
        assert child is not None
        compiled = Path(f"/proc/{child.pid}/maps")
        wait_until(lambda: "llvmlite" in compiled.read_text())
        assert child.alive
    finally:
        pool.close()


def test_child_that_cannot_prepare_ahead_still_takes_tasks(monkeypatch):
    def broken():
        raise RuntimeError("no engine")

    monkeypatch.setattr(computing, "load_all", broken)
    with capture_logs() as lines:
        computing._import_ahead()
    (line,) = lines
    assert line["event"] == "nothing is prepared ahead of the first task"


def wait_until(condition, limit_s=60.0):
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
