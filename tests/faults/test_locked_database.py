"""Another process holds SQLite's write lock for some seconds."""

from __future__ import annotations

import subprocess
import sys

import arena
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

LOCKED_S = 5
HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
time.sleep(float(sys.argv[2]))
connection.execute("COMMIT")
"""


def test_campaign_waits_for_the_lock(
    new_service, tmp_path, undisturbed, with_models, record
):
    service = new_service(str(tmp_path / "db.sqlite"))
    with_models(service.store)
    service.start()
    campaign = service.submit()
    service.hold_solving(campaign)
    measure = arena.Measure(service, campaign, f"SQLite locked for {LOCKED_S} s")
    command = [sys.executable, "-c", HOLD, service.database, str(LOCKED_S)]
    service.go_on()
    subprocess.run(command, check=True)
    row = measure.close(service, undisturbed, record)
    assert row["groups again"] == 0
    assert row["result"] == "bitwise"
