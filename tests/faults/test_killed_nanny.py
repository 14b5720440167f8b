"""A worker's nanny dies, where scheduler and workers are processes of their own."""

from __future__ import annotations

import sys

import arena
import psutil
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


@pytest.fixture
def deployed(new_service, tmp_path, postgres_url, with_models):
    """A service, a scheduler, and two workers with a nanny each."""
    port = arena.free_port()
    address = f"tcp://127.0.0.1:{port}"
    options = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    command = [sys.executable, "-m", "dask", "scheduler", *options]
    command += ["--dashboard-address", "127.0.0.1:0"]
    started = [arena.start(tmp_path / "scheduler.log", *command)]
    for name in ("one", "two"):
        command = [arena.AFTERSLIP, "worker", address, "--cpu", "--name", name]
        log, spool = tmp_path / f"{name}.log", str(tmp_path / "spool")
        started.append(arena.start(log, *command, AFTERSLIP_SPOOL=spool))
    service = new_service(postgres_url, AFTERSLIP_LOST_AFTER="10")
    service.scheduler = address
    with_models(service.store)
    try:
        service.start()
        service.worker_sessions = [process.pid for process in started[1:]]
        arena.until(lambda: len(service.get("/workers")["items"]) == 2, 60)
        yield service
    finally:
        service.stop()
        for process in started:
            arena.end(process.pid)
            process.wait(20)


def test_work_goes_on_at_another_worker(deployed, undisturbed, record):
    def computing():
        return {
            token: child
            for leader in deployed.worker_sessions
            for token, child in arena.computing(leader, deployed.attempts).items()
        }

    deployed.computing = computing
    campaign = deployed.submit()
    _, child = deployed.hold_solving(campaign)
    worker = child.parent()
    nanny = worker.parent()
    assert "dask" in " ".join(nanny.cmdline())
    fault = "nanny killed while solving, two workers, PostgreSQL"
    measure = arena.Measure(deployed, campaign, fault)
    nanny.kill()
    deployed.go_on()
    arena.until(
        lambda: not any(_lives(process) for process in (worker, child)),
        20,
        "worker and child die with their nanny",
    )
    row = measure.close(deployed, undisturbed, record)
    assert row["result"] == "bitwise"
    assert len(deployed.get("/workers")["items"]) == 1


def _lives(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
