"""What was computed, for whom, and what Prometheus reads of it."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families

from afterslip_service import clock
from afterslip_service.db import usage
from afterslip_service.db.tables import attempts, campaigns, jobs, sources
from afterslip_service.placement.base import WorkerFacts

BOARD = Path(__file__).parents[2] / "deploy/grafana/afterslip.json"


@pytest.fixture
def worked(database, new_campaign):
    """Ann's campaign with an accepted and a lost attempt, and one of nobody's."""
    mine, theirs = new_campaign("ann"), new_campaign("nobody")
    now = clock.now()
    with database.write() as connection:
        connection.execute(
            campaigns.update().where(campaigns.c.id == mine).values(owner="ann")
        )
        for number, (campaign, state, seconds, stats) in enumerate(
            (
                (mine, "lost", 20.0, None),
                (mine, "accepted", 100.0, {"solves": 6, "iterations": 70}),
                (theirs, "accepted", 3.5, {"solves": 1, "iterations": 9}),
            )
        ):
            job = connection.execute(
                sa.select(jobs.c.id).where(jobs.c.campaign_id == campaign)
            ).scalar_one()
            connection.execute(
                attempts.insert().values(
                    token=f"t{number}",
                    job_id=job,
                    number=number,
                    state=state,
                    dispatcher="d",
                    queued_at=now,
                    started_at=now,
                    finished_at=now + timedelta(seconds=seconds),
                    stats=stats,
                    error_class="worker_lost" if state == "lost" else None,
                )
            )
            if state == "accepted":
                connection.execute(
                    jobs.update()
                    .where(jobs.c.id == job)
                    .values(
                        token=f"t{number}",
                        kind="group",
                        state="accepted",
                        attempts=number + 1,
                    )
                )
        connection.execute(sources.insert(), [source(mine, n) for n in range(4)])
    return mine, theirs


def source(campaign, position):
    """Three of them are stored, one of these was copied."""
    return {
        "campaign_id": campaign,
        "position": position,
        **dict.fromkeys(("key", "model", "slip", "solver"), "sha256:0"),
        "quality": {"tolerance": 1.0},
        "token": None if position == 3 else "t1",
        "origin": "elsewhere" if position == 0 else None,
    }


def scraped(client):
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_worker_seconds_are_summed_by_campaign_with_what_was_lost(database, worked):
    mine, theirs = worked
    with database.read() as connection:
        found = {u.who: u for u in usage.by_campaign(connection, None, 10, None)}
        only = usage.by_campaign(connection, "ann", 10, None)
        names = connection.execute(sa.select(campaigns.c.id, campaigns.c.name)).all()
    assert {(u.who, u.name) for u in found.values()} == set(map(tuple, names))
    assert found[mine].attempts == 2
    assert found[mine].seconds == pytest.approx(120.0, abs=1e-3)
    assert found[mine].lost == pytest.approx(20.0, abs=1e-3)
    assert (found[mine].solves, found[mine].iterations) == (6, 70)
    assert found[theirs].seconds == pytest.approx(3.5, abs=1e-3)
    assert [u.who for u in only] == [mine]


def test_users_are_summed_with_nobody_under_an_empty_name(database, worked):
    with database.read() as connection:
        found = {u.who: u.seconds for u in usage.by_user(connection)}
    assert found == pytest.approx({"": 3.5, "ann": 120.0}, abs=1e-3)


def test_prometheus_reads_what_the_database_holds(client, worked):
    found = scraped(client)
    lost = ("afterslip_attempts", ("error", "worker_lost"), ("state", "lost"))
    assert found[lost] == 1
    assert found[("afterslip_groups_solved_total",)] == 2
    assert found[("afterslip_iterations_total",)] == 79
    assert found[("afterslip_solve_seconds_total",)] == pytest.approx(103.5, abs=1e-3)
    jobs_accepted = ("afterslip_jobs", ("kind", "group"), ("state", "accepted"))
    assert found[jobs_accepted] == 2
    # the lost attempt was followed by another
    assert found[("afterslip_recoveries_total",)] == 1
    assert found[("afterslip_sources_stored_total",)] == 3
    assert found[("afterslip_sources_reused_total",)] == 1


GPU = WorkerFacts(
    "w1", "tcp://h:1", "running", 1,
    {"memory_used": 1e9, "gpu_memory_used": 7e10, "gpu_utilization": 93,
     "gpu_process_memory": 5e10, "gpu_process_utilization": 60},
)  # fmt: skip


def test_memory_and_use_of_gpus_are_shown_where_workers_have_them(client, monkeypatch):
    host = WorkerFacts("w2", "tcp://h:2", "running", 1, {"memory_used": 2e9})
    placement = client.server.app.state.service.placement
    monkeypatch.setattr(placement, "workers", lambda: [GPU, host])
    found = scraped(client)
    name = ("worker", "w1")
    assert found["afterslip_worker_gpu_memory_bytes", name] == 7e10
    assert found["afterslip_worker_gpu_utilization_percent", name] == 93
    assert found["afterslip_worker_gpu_process_memory_bytes", name] == 5e10
    assert found["afterslip_worker_gpu_process_utilization_percent", name] == 60
    assert ("afterslip_worker_gpu_memory_bytes", ("worker", "w2")) not in found
    assert found["afterslip_worker_memory_bytes", ("worker", "w2")] == 2e9


def test_every_figure_of_the_board_exists(client, worked, monkeypatch):
    placement = client.server.app.state.service.placement
    monkeypatch.setattr(placement, "workers", lambda: [GPU])
    exist = {name for name, *_ in scraped(client)}
    shown = {
        name
        for panel in json.loads(BOARD.read_text())["panels"]
        for target in panel["targets"]
        for name in re.findall(r"afterslip_\w+", target["expr"])
    }
    assert len(shown) > 10
    assert shown <= exist


def test_a_campaign_shows_the_time_that_all_its_attempts_took(client, worked):
    used = [client.get(f"/v1/campaigns/{c}").json()["worker_seconds"] for c in worked]
    assert used == pytest.approx([120.0, 3.5], abs=1e-3)


def test_usage_is_paged_and_refuses_what_it_cannot_do(client, worked):
    mine, theirs = sorted(worked)
    first = client.get("/v1/usage", params={"limit": 1}).json()
    assert [item["who"] for item in first["items"]] == [theirs]
    second = client.get(
        "/v1/usage", params={"limit": 1, "cursor": first["next"]}
    ).json()
    assert [item["who"] for item in second["items"]] == [mine]
    refused = client.get("/v1/usage", params={"by": "user", "owner": "ann"})
    assert refused.status_code == 422
