"""The deployment as plain processes: it starts, loses its scheduler, and goes on."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import arena
import pytest

from afterslip.client import Client

sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
import tiny_worker

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not shutil.which("postgres") and not [*Path("/usr/lib/postgresql").glob("*")],
        reason="needs PostgreSQL's programs",
    ),
]
RUN_LOCAL = Path(__file__).parents[2] / "deploy/run_local.py"


@pytest.fixture
def deployment(tmp_path):
    """A whole deployment; the database's own user must reach its folder."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)

    def call(verb, *more):
        command = [sys.executable, RUN_LOCAL, verb, tmp_path / "d", *more]
        # what is started keeps our standard output open, so it goes to a file
        with (tmp_path / f"{verb}.out").open("w") as out:
            done = subprocess.run(command, stdout=out, stderr=out, timeout=240)
        printed = (tmp_path / f"{verb}.out").read_text()
        assert done.returncode == 0, printed
        return printed

    port = arena.free_port()
    try:
        call("start", "--port", str(port))
        token = (tmp_path / "d/secrets/admin_token").read_text().strip()
        with Client(f"http://127.0.0.1:{port}", token) as client:
            yield call, client
    finally:
        call("stop")


def test_campaign_outlives_the_scheduler_of_a_local_deployment(deployment):
    call, client = deployment
    spec = tiny_worker.spec("local")
    spec["sources"] = {"fault": "main", "along_strike": 4, "down_dip": 3}
    campaign = client.submit(spec)
    deadline = time.monotonic() + 120
    while campaign.refresh().progress.get("running", 0) == 0:
        assert time.monotonic() < deadline, campaign.data
        time.sleep(0.2)
    assert "processes killed" in call("kill", "scheduler")
    campaign.wait(timeout=240)
    groups = campaign.groups()
    assert {group["state"] for group in groups} == {"accepted"}
    assert "is dead" not in call("status")
