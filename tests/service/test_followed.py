"""One attempt is followed by its token through all processes, in logs and traces."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import tiny_worker

AFTERSLIP = str(Path(sys.executable).with_name("afterslip"))
SECONDS = 90


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """What API, dispatcher, worker and child of a whole campaign have written."""
    folder = tmp_path_factory.mktemp("followed")
    command = [AFTERSLIP, "serve", "--json-logs", "--database", folder / "db.sqlite"]
    command += ["--store", folder / "store", "--port", "0", "--workers", "1"]
    environment = {
        **os.environ,
        "AFTERSLIP_TRACES": "on",
        "OTEL_TRACES_EXPORTER": "console",
        "OMP_NUM_THREADS": "1",
    }
    with (folder / "log").open("w") as log:
        service = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert service.stdout is not None
        found = re.search(r"http://\S+", service.stdout.readline())
        assert found is not None
        url = found[0]
        spec = tiny_worker.spec("followed")
        spec["sources"] = {"fault": "main", "along_strike": 1, "down_dip": 1}
        headers = {"X-Request-ID": "asked-by-a-test"}
        answer = httpx.post(
            f"{url}/v1/campaigns", json=spec, headers=headers, timeout=20
        )
        assert answer.headers["x-request-id"] == "asked-by-a-test"
        campaign = answer.json()["id"]
        deadline = time.monotonic() + SECONDS
        while httpx.get(f"{url}/v1/campaigns/{campaign}").json()["state"] != "complete":
            assert time.monotonic() < deadline, (folder / "log").read_text()[-3000:]
            time.sleep(0.2)
        group = httpx.get(f"{url}/v1/campaigns/{campaign}/groups/0").json()
    finally:
        service.terminate()
        service.wait(30)
    written = (folder / "log").read_text().splitlines()
    # a program that reads the log line by line can read every one of them
    lines = [json.loads(line) for line in written if line.startswith("{")]
    return campaign, group, lines


def test_every_line_about_a_group_names_it_in_all_four_processes(lines):
    campaign, _, found = lines
    of_group = [one for one in found if one.get("kind") == "group"]
    token = next(one["attempt"] for one in of_group if "attempt" in one)
    ids = {"campaign": campaign, "kind": "group", "group": 0, "attempt": token}
    matching = [one for one in of_group if one.items() >= ids.items()]
    events = [one["event"] for one in matching]
    assert set(events) == {
        "attempt placed", "attempt begins", "task begins", "task ended",
        "attempt done", "attempt ended",
    }  # fmt: skip
    (submitted,) = (one for one in found if one.get("event") == "campaign submitted")
    assert submitted["campaign"] == campaign
    assert submitted["request_id"] == "asked-by-a-test"
    assert all(one["timestamp"] and one["level"] for one in matching)


def test_one_trace_holds_claim_attempt_task_and_solves_of_a_group(lines):
    campaign, group, found = lines
    spans = [one for one in found if "context" in one and "parent_id" in one]
    service = {s["context"]["span_id"]: s["resource"]["attributes"] for s in spans}
    (claim,) = (
        s for s in spans
        if s["name"] == "claim" and s["attributes"]["afterslip.kind"] == "group"
    )  # fmt: skip
    same = [
        s for s in spans if s["context"]["trace_id"] == claim["context"]["trace_id"]
    ]
    (attempt,) = (s for s in same if s["name"] == "attempt")
    (task,) = (s for s in same if s["name"] == "group")
    solves = [s for s in same if s["name"] == "solve"]
    assert claim["parent_id"] is None
    assert attempt["parent_id"] == claim["context"]["span_id"]
    assert task["parent_id"] == attempt["context"]["span_id"]
    assert {s["parent_id"] for s in solves} == {task["context"]["span_id"]}
    assert len(solves) == group["attempts"][0]["stats"]["solves"]
    parts = [service[s["context"]["span_id"]]["service.name"]
             for s in (claim, attempt, task)]  # fmt: skip
    assert parts == ["afterslip-api", "afterslip-worker", "afterslip-child"]
    # the claim names the submission, and that the request that asked for it
    (submit,) = (s for s in spans if s["name"] == "submit")
    assert submit["attributes"]["afterslip.campaign"] == campaign
    assert claim["links"][0]["context"] == submit["context"]
    (request,) = (
        s for s in spans
        if s["attributes"].get("afterslip.request") == "asked-by-a-test"
    )  # fmt: skip
    assert submit["links"][0]["context"]["span_id"] == request["context"]["span_id"]
