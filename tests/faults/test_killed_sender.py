"""A worker dies between its result and the bucket that should get it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import arena
import buckets
import pytest
import supervised

from afterslip_workers import entry
from afterslip_workers.process import delivery
from afterslip_workers.store import spool

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]


@pytest.fixture
def address(monkeypatch, tmp_path):
    monkeypatch.setenv("AFTERSLIP_SPOOL", str(tmp_path / "spool"))
    with buckets.server(monkeypatch) as server:
        yield server.bucket()


def worker(address, instead):
    """Start a worker that does something else than to send its files."""
    program = textwrap.dedent(f"""
        import time
        from afterslip_workers import entry
        from afterslip_workers.process import supervisor
        from afterslip_workers.process.children import Pool
        from afterslip_workers.store import spool
        from afterslip_workers.store.bucket import BucketBackend
        supervisor.pool = Pool(({supervised.FAKE!r},))
        {instead}
        entry.execute({supervised.envelope(address, do="write", seconds=0)!r})
    """)
    return subprocess.Popen([sys.executable, "-c", program], env=os.environ)


@pytest.mark.parametrize(
    ("instead", "sign"),
    [
        # before anything was sent
        ("spool.deliver = lambda *_: time.sleep(60)", "receipt.json"),
        # some files are there, the receipt is not
        (
            "spool.write_json = lambda backend, key, content: time.sleep(60)",
            "receipt.json",
        ),
    ],
)
def test_result_of_a_killed_worker_reaches_the_bucket(address, instead, sign):
    backend = entry.open_store(address)
    folder = spool.entry(backend, "a1")
    process = worker(address, instead)
    try:
        arena.until((folder / sign).exists, 60)
        if "write_json" in instead:
            shard = "attempts/a1/group.zarr/x/c/0"
            arena.until(lambda: backend.size(shard) is not None, 30)
        assert delivery.deliver_all() == 0, "its worker still works on it"
        assert entry.read_receipt(address, "a1") is None
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert delivery.deliver_all() == 0
    receipt = entry.read_receipt(address, "a1")
    assert receipt is not None
    assert receipt["outcome"] == "stored"
    for name, digest in receipt["manifest"]["files"].items():
        assert backend.sha256(f"attempts/a1/group.zarr/{name}") == digest
    assert spool.waiting() == []
    again = entry.execute(supervised.envelope(address, do="die"))
    assert again["outcome"] == "stored", "reported twice, it is not solved again"
