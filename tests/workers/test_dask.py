"""Under Dask: the task runs in a worker's child, which dies with its worker."""

import os
import signal
import sys
import time
from pathlib import Path

import distributed
import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from small_campaign import SPEC

from afterslip_workers import entry
from afterslip_workers.messages import VERSION
from afterslip_workers.process.use import measure


def envelope(store):
    """A group of a campaign that has no model: its child says so and lives on."""
    return {
        "version": VERSION,
        "token": "a1",
        "kind": "group",
        "campaign": "c1",
        "physics": "viscoelastic",
        "spec": SPEC,
        "store": str(store),
        "group": {"index": 0, "sources": [0]},
    }


@pytest.fixture
def client():
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address=None,
            preload=["afterslip_workers.lifecycle"],
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def run_and_find_child(client, store):
    entry.prepare(store)
    receipt = client.submit(entry.execute, envelope(store), pure=False).result(60)
    (pid,) = client.run(os.getpid).values()
    (child,) = (
        process
        for process in psutil.Process(pid).children()
        if "afterslip_workers.child" in process.cmdline()
    )
    return receipt, pid, child


def test_worker_answers_with_its_name_and_closes_its_child(client, tmp_path):
    receipt, pid, child = run_and_find_child(client, tmp_path)
    assert receipt["outcome"] == "failed"
    assert receipt["stats"]["worker"] == "0"
    assert child.ppid() == pid
    client.retire_workers()
    assert psutil.wait_procs([child], timeout=20)[1] == []


def test_a_worker_s_figures_are_those_of_all_its_processes(client, tmp_path):
    _, pid, child = run_and_find_child(client, tmp_path)
    (found,) = client.run(measure).values()
    both = child.memory_info().rss + psutil.Process(pid).memory_info().rss
    assert found["memory_used"] > 0.8 * both
    assert found["memory_limit"] > 0
    assert found["host"]
    assert found["at_work"] == []
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        (worker,) = client.scheduler_info()["workers"].values()
        if worker["metrics"].get("afterslip", {}).get("memory_used"):
            return
        time.sleep(0.2)
    raise AssertionError("the scheduler heard nothing of them")


@pytest.mark.faults
def test_child_dies_with_a_killed_worker(client, tmp_path):
    _, pid, child = run_and_find_child(client, tmp_path)
    os.kill(pid, signal.SIGKILL)
    assert psutil.wait_procs([child], timeout=10)[1] == []
