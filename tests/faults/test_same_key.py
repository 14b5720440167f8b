"""Clients that send the same request at the same moment."""

from __future__ import annotations

import threading
import time

import arena
import httpx
import pytest

pytestmark = pytest.mark.timeout(120)
TWINS = 4


@pytest.mark.parametrize(
    "database_url",
    # the first runs with every other test: it solves nothing
    ["sqlite", pytest.param("postgresql", marks=pytest.mark.faults)],
    indirect=True,
)
def test_one_key_makes_one_campaign(new_service, database_url, record):
    service = new_service(database_url, workers=1).start()
    together = threading.Barrier(TWINS)
    answers = []

    def post():
        url = f"{service.url}/v1/campaigns"
        with httpx.Client(timeout=60, headers={"Idempotency-Key": "same"}) as client:
            client.get(service.url + "/healthz")
            together.wait()
            answers.append(client.post(url, json=arena.spec()))

    began = time.monotonic()
    twins = [threading.Thread(target=post) for _ in range(TWINS)]
    for twin in twins:
        twin.start()
    for twin in twins:
        twin.join()
    took = time.monotonic() - began
    assert [answer.status_code for answer in answers] == [201] * TWINS
    made = {answer.json()["id"] for answer in answers}
    replayed = [answer.headers.get("Idempotent-Replayed") for answer in answers]
    assert replayed.count(None) == 1
    listed = [campaign["id"] for campaign in service.get("/campaigns")["items"]]
    record(
        {
            "fault": f"{TWINS} clients send one Idempotency-Key at once",
            "seconds": round(took, 1),
            "groups again": 0,
            "solves again": 0,
            "lost": len(made - set(listed)),
            "twice": len(listed) - 1,
            "result": f"{len(listed)} campaign",
        }
    )
    assert set(listed) == made
    assert len(listed) == 1
