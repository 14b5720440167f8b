"""A whole service in one process and the directory that it works in."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time

import httpx
import pytest
import tiny_worker

from afterslip.client import Client
from afterslip_service import embedded
from afterslip_service.errors import DirectoryBusyError, ServiceError
from afterslip_service.placement.inprocess import InProcess
from afterslip_workers import entry


def start(directory, worker, **options):
    return embedded.start(
        directory, placement=lambda _: InProcess(worker, 2), tick=0.02, **options
    )


def test_campaign_through_the_client(tmp_path, worker):
    with start(tmp_path, worker) as service, Client(service.url) as client:
        campaign = client.submit(tiny_worker.spec())
        campaign.wait(timeout=20)
        assert campaign.state == "complete"
        assert len(campaign.groups()) == 3
    assert (tmp_path / "afterslip.sqlite").exists()
    assert (tmp_path / "store" / "campaigns" / campaign.id / "greens.zarr").is_dir()


def test_engines_are_imported_once_the_workers_are_up(tmp_path, worker, monkeypatch):
    placed, found, called = [], [], threading.Event()

    def load_engines():
        found.extend(placed)
        called.set()

    def place(_):
        time.sleep(0.1)
        placed.append("workers")
        return InProcess(worker, 2)

    monkeypatch.setattr(entry, "load_engines", load_engines)
    with embedded.start(tmp_path, placement=place):
        assert called.wait(10)
    assert found == ["workers"]


def test_two_services_never_share_a_directory(tmp_path, worker):
    first = start(tmp_path, worker)
    with pytest.raises(DirectoryBusyError, match="another service"):
        start(tmp_path, worker)
    first.close()
    start(tmp_path, worker).close()


def test_port_that_is_taken_is_one_clear_sentence(tmp_path, worker):
    with start(tmp_path / "a", worker) as service:
        port = int(service.url.rpartition(":")[2])
        with pytest.raises(ServiceError, match=f"cannot listen on .*{port}"):
            start(tmp_path / "b", worker, port=port)
    # and the directory is free again
    start(tmp_path / "b", worker).close()


def test_close_takes_seconds_and_a_second_start_goes_on(tmp_path, worker):
    worker.delay_s = 0.3
    service = start(tmp_path, worker)
    made = httpx.post(service.url + "/v1/campaigns", json=tiny_worker.spec()).json()
    while worker.ran[made["id"], "group", 0] == 0:
        time.sleep(0.01)
    began = time.monotonic()
    service.close()
    assert time.monotonic() - began < 5
    with start(tmp_path, worker) as service, Client(service.url) as client:
        campaign = client.campaign(made["id"])
        campaign.wait(timeout=20)
        assert campaign.progress["accepted"] == 3


def test_broken_database_is_one_clear_sentence(tmp_path, worker):
    (tmp_path / "afterslip.sqlite").write_bytes(b"this is no database at all" * 100)
    with pytest.raises(ServiceError, match="database"):
        start(tmp_path, worker)


def test_database_of_a_newer_version_is_refused(tmp_path, worker):
    start(tmp_path, worker).close()
    with sqlite3.connect(tmp_path / "afterslip.sqlite") as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'later'")
    with pytest.raises(ServiceError, match="newer version"):
        start(tmp_path, worker)


def run_script(folder, *lines):
    script = folder / "script.py"
    script.write_text("\n".join(lines))
    return subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def test_workers_do_not_run_the_script_that_starts_them(tmp_path):
    # nor do those that take the place of a worker that died
    done = run_script(
        tmp_path,
        "import os, signal, time",
        "from distributed import Client",
        "from afterslip_service.placement.local import LocalCluster",
        "print('begun', flush=True)",
        "cluster = LocalCluster(1)",
        "with Client(cluster.dask) as client:",
        "    (first,) = client.run(os.getpid).values()",
        "    os.kill(first, signal.SIGKILL)",
        "    found = {}",
        "    while not found or first in found.values():",
        "        time.sleep(0.1)",
        "        found = client.run(os.getpid, on_error='ignore')",
        "cluster.close()",
        "print('ended')",
    )
    assert done.stdout == "begun\nended\n", done.stderr


def test_script_without_a_guard_starts_a_service(tmp_path):
    done = run_script(
        tmp_path,
        "from afterslip_service import embedded",
        f"with embedded.start({str(tmp_path / 'folder')!r}, workers=1) as service:",
        "    print(service.url)",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("http://127.0.0.1:")
    assert done.stdout.count("\n") == 1
