"""A worker gets SIGTERM while it solves: it ends in good order, or at once."""

from __future__ import annotations

import signal
import time

import arena
import distributed
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]


@pytest.fixture
def client():
    with (
        distributed.LocalCluster(
            n_workers=0, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def worker(client, tmp_path):
    log = tmp_path / "worker.log"
    address = client.scheduler.address
    process = arena.start(
        log, arena.AFTERSLIP, "worker", address, "--cpu", "--drain", "30"
    )
    client.wait_for_workers(1, timeout=60)
    yield process
    arena.end(process.pid)


def busy(client, seconds):
    """Occupy the worker as an attempt does, and wait until it has begun."""

    def attempt(seconds):
        from afterslip_workers.process.drain import drain

        with drain.working():
            distributed.Event("begun").set()
            time.sleep(seconds)
        return "finished"

    future = client.submit(attempt, seconds, pure=False)
    assert distributed.Event("begun", client=client).wait(30)
    return future


def test_running_attempt_is_finished_and_the_worker_ends_well(client, worker):
    future = busy(client, 4.0)
    later = client.submit(int, 1, pure=False)
    worker.send_signal(signal.SIGTERM)
    assert future.result(30) == "finished"
    assert worker.wait(30) == 0
    assert arena.session(worker.pid) == []
    assert later.status == "pending", "it waits for another worker"


def test_second_signal_stops_at_once(client, worker):
    busy(client, 60.0)
    worker.send_signal(signal.SIGTERM)
    time.sleep(1.5)
    assert worker.poll() is None
    began = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    worker.wait(30)
    assert time.monotonic() - began < 15
    assert arena.session(worker.pid) == []
