"""Separate scheduler, worker and service around PostgreSQL, with the real solver."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import postgres
import psutil
import pytest
import tiny_worker
import xarray as xr

from afterslip.archive import open_greens
from afterslip.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(600)]
AFTERSLIP = str(Path(sys.executable).with_name("afterslip"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Deployment:
    """The processes of a small installation."""

    def __init__(self, folder, database):
        self.folder, self.database = folder, database
        self.scheduler = f"tcp://127.0.0.1:{free_port()}"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.store = folder / "store"
        self._started = []

    def start(self, *command, **environment):
        name = f"{Path(command[0]).name}-{len(self._started)}"
        process = subprocess.Popen(
            command,
            stdout=(self.folder / f"{name}.log").open("w"),
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def start_scheduler(self):
        port = self.scheduler.rpartition(":")[2]
        options = ["--host", "127.0.0.1", "--port", port, "--no-dashboard"]
        command = [sys.executable, "-m", "dask", "scheduler", *options]
        return self.start(*command, "--dashboard-address", "127.0.0.1:0")

    def start_worker(self):
        return self.start(AFTERSLIP, "worker", self.scheduler, "--cpu")

    def start_service(self, lost_after=8):
        options = ["--database", self.database, "--scheduler", self.scheduler]
        options += ["--store", str(self.store), "--port", str(self.port)]
        process = self.start(
            AFTERSLIP, "serve", *options,
            AFTERSLIP_LOST_AFTER=str(lost_after), AFTERSLIP_LEASE="3",
        )  # fmt: skip
        self.until(lambda: httpx.get(self.url + "/readyz").status_code == 200)
        return process

    def until(self, condition, seconds=90):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                if value := condition():
                    return value
            time.sleep(0.1)
        logs = [path.read_text()[-2000:] for path in self.folder.glob("*.log")]
        raise AssertionError("never true\n" + "\n----\n".join(logs))

    def submit(self):
        spec = tiny_worker.spec("deployed")
        spec["sources"] = {"fault": "main", "along_strike": 4, "down_dip": 3}
        spec["model"]["mesh"] = {"size": {"fault": 6, "far": 30}}
        with Client(self.url) as client:
            return client.submit(spec).id

    def show(self, campaign):
        return httpx.get(f"{self.url}/v1/campaigns/{campaign}").json()

    def groups(self, campaign):
        return httpx.get(f"{self.url}/v1/campaigns/{campaign}/groups").json()["items"]

    def until_half_way(self, campaign):
        def half_way():
            states = [group["state"] for group in self.groups(campaign)]
            return "accepted" in states and "running" in states

        self.until(half_way)

    def until_complete(self, campaign):
        self.until(lambda: self.show(campaign)["state"] == "complete", 180)

    def stop(self):
        for process in self._started:
            with contextlib.suppress(psutil.NoSuchProcess):
                family = psutil.Process(process.pid)
                for child in [*family.children(recursive=True), family]:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        child.kill()
            process.wait(20)


@pytest.fixture(scope="module")
def reference(tmp_path_factory, postgres_server):
    """The store of a campaign that nothing disturbed."""
    folder = tmp_path_factory.mktemp("reference")
    with postgres.database(postgres_server) as url:
        deployment = Deployment(folder, url)
        try:
            deployment.start_scheduler()
            deployment.start_worker()
            deployment.start_service()
            campaign = deployment.submit()
            deployment.until_complete(campaign)
        finally:
            deployment.stop()
        yield folder / "store" / "campaigns" / campaign / "greens.zarr"


@pytest.fixture
def deployment(tmp_path, postgres_server, reference):
    with postgres.database(postgres_server) as url:
        deployment = Deployment(tmp_path, url)
        try:
            deployment.start_scheduler()
            deployment.start_worker()
            yield deployment
        finally:
            deployment.stop()


def same_as(reference, deployment, campaign):
    url = f"{deployment.url}/v1/campaigns/{campaign}/greens.zarr"
    ours, theirs = xr.open_zarr(url), open_greens(reference)
    assert ours.attrs["status"] == "complete"
    np.testing.assert_allclose(
        ours.response.values, theirs.response.values, atol=1e-7, equal_nan=True
    )


def test_service_killed_while_solving_takes_up_the_attempts_again(
    deployment, reference
):
    """Its tasks live on; their results are used, nothing is solved twice."""
    service = deployment.start_service(lost_after=60)
    campaign = deployment.submit()
    deployment.until_half_way(campaign)
    service.send_signal(signal.SIGKILL)
    service.wait()
    time.sleep(3)
    deployment.start_service(lost_after=60)
    deployment.until_complete(campaign)
    assert [group["attempts"] for group in deployment.groups(campaign)] == [1] * 6
    same_as(reference, deployment, campaign)


def test_worker_killed_while_solving_is_replaced(deployment, reference):
    deployment.start_service()
    campaign = deployment.submit()
    deployment.until_half_way(campaign)
    worker = psutil.Process(deployment._started[1].pid)
    # Dask gives it a title where setproctitle is installed
    names = "spawn_main", "dask worker ["
    victims = [
        process
        for process in worker.children(recursive=True)
        if any(name in " ".join(process.cmdline()) for name in names)
    ]
    assert victims
    for process in victims:
        process.kill()
    deployment.until_complete(campaign)
    repeated = sum(group["attempts"] - 1 for group in deployment.groups(campaign))
    assert repeated <= 2
    same_as(reference, deployment, campaign)


def test_scheduler_killed_and_started_again(deployment, reference):
    scheduler = deployment._started[0]
    deployment.start_service()
    campaign = deployment.submit()
    deployment.until_half_way(campaign)
    scheduler.send_signal(signal.SIGKILL)
    scheduler.wait()
    time.sleep(1)
    deployment.start_scheduler()
    deployment.start_worker()
    deployment.until_complete(campaign)
    same_as(reference, deployment, campaign)


def test_second_service_stands_by_and_takes_over(deployment, reference):
    first = deployment.start_service(lost_after=60)
    campaign = deployment.submit()
    deployment.until_half_way(campaign)
    deployment.port = free_port()
    deployment.url = f"http://127.0.0.1:{deployment.port}"
    deployment.start_service(lost_after=60)
    first.send_signal(signal.SIGKILL)
    first.wait()
    deployment.until_complete(campaign)
    assert [group["attempts"] for group in deployment.groups(campaign)] == [1] * 6
    same_as(reference, deployment, campaign)
