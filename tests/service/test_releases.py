"""Service and workers of different releases, and packages that are missing."""

from __future__ import annotations

import copy
import time

import pytest

from afterslip.errors import SpecError
from afterslip.physics import registry
from afterslip_service.db import attempts, bulk, campaigns, jobs, migrate, sources
from afterslip_service.engine import retry
from afterslip_service.engine.states import CampaignState, JobKind, JobState
from afterslip_service.reconcile import reuse
from afterslip_workers import entry

OLD = "0004"
QUALITY = {"until": 3.0e8, "tolerance": 1e-8, "time_tolerance": 1e-6}
REFUSED = (
    "the envelope has version 2, this worker reads 1: install the same release of "
    "afterslip in the service and its workers"
)


class OfFirst:
    """A worker that reads and writes what 0.1.0 read and wrote."""

    def __init__(self, worker):
        self.worker = worker

    def __call__(self, content):
        envelope = {k: v for k, v in content.items() if k != "physics"}
        kind = {"group": "greens"}.get(content["kind"], content["kind"])
        receipt = self.worker({**envelope, "version": 1, "kind": kind})
        manifest = receipt["manifest"]
        if manifest is not None:
            assert manifest["kind"] == kind
            manifest |= {"version": 1, **described(manifest)}
        return receipt


def described(manifest, quality=QUALITY):
    """Return what a manifest says of its sources; flat in 0.1.0."""
    if manifest["kind"] == "model":
        keys = [f"sha256:{n}" for n in range(manifest["n_sources"])]
        parts = {"model": "sha256:m", "solver": "sha256:s", "slips": keys}
        return {"reuse": {**parts, "keys": keys, **quality}}
    origin = {"origin": None, "origin_position": None}
    places = manifest["group"]["sources"]
    return {"covers": {str(place): {**quality, **origin} for place in places}}


def states(database, campaign):
    with database.read() as connection:
        found = jobs.of_campaign(connection, campaign, JobKind.GROUP)
    return [job.state for job in found]


def until(done, dispatcher, seconds=20):
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        dispatcher.tick()
        time.sleep(0.01)


def test_campaign_goes_on_while_its_database_is_taken_back_and_upgraded(
    database, new_campaign, new_dispatcher, worker, turn, monkeypatch
):
    """Attempts are under way that the release before has begun."""
    monkeypatch.setattr(entry, "arrange", lambda _s, _c, order: order)
    campaign = new_campaign()
    dispatcher = new_dispatcher(OfFirst(worker))
    worker.fail["group", 0] = [lambda _: worker.gate.clear()]
    until(lambda: states(database, campaign).count(JobState.RUNNING) == 2, dispatcher)
    migrate.downgrade(database, OLD)
    migrate.upgrade(database)
    worker.gate.set()
    found = turn(dispatcher, campaign, CampaignState.COMPLETE)
    assert found.physics == "viscoelastic"
    assert all(count == 1 for count in worker.ran.values())
    with database.read() as connection:
        rows = sources.of_campaign(connection, campaign)
    assert [row.quality for row in rows] == [QUALITY] * worker.n_sources
    assert all(row.token for row in rows)


def test_group_waits_for_workers_of_this_release_and_loses_nothing(
    database, new_campaign, new_dispatcher, worker, turn, monkeypatch
):
    monkeypatch.setattr(retry, "AWAY_S", 0.01)
    monkeypatch.setattr(retry, "LONGEST_AWAY_S", 0.02)
    refusals = []

    def execute(envelope):
        group = envelope["group"]
        if group and group["index"] == 1 and len(refusals) < 9:
            refusals.append(copy.deepcopy(envelope))
            error = {"class": "internal", "message": REFUSED}
            stats = {"worker": f"old-{len(refusals)}"}
            return {"token": envelope["token"], "outcome": "failed", "error": error,
                    "manifest": None, "stats": stats}  # fmt: skip
        return worker(envelope)

    campaign = new_campaign()
    turn(new_dispatcher(execute), campaign, CampaignState.COMPLETE)
    with database.read() as connection:
        job = jobs.of_campaign(connection, campaign, JobKind.GROUP)[1]
    assert job.failures == {"other_release": 9}
    assert refusals[-1]["avoid"] == [f"old-{n}" for n in range(1, 9)]
    assert worker.ran[campaign, "group", 0] == 1


def test_physics_that_is_not_installed_is_named_and_the_campaign_goes_on_later(
    database, new_dispatcher, worker, turn, monkeypatch
):
    """The service was started without a package that it had before."""
    monkeypatch.setattr(retry, "BACKOFF_S", (0.0,))
    monkeypatch.setattr(entry, "arrange", lambda _s, _c, order: order)

    def execute(envelope):
        receipt = worker(envelope)
        quality = {"quality": {"duration": 60.0}}
        receipt["manifest"] |= described(receipt["manifest"], quality)
        return receipt

    with database.write() as connection:
        campaign = campaigns.create(
            connection, name="shaking", digest="sha256:0", spec={}, canonical={},
            physics="heat",
        )  # fmt: skip
        jobs.create(connection, campaign, [jobs.NewJob(JobKind.MODEL, 0)])
    dispatcher = new_dispatcher(execute)
    failed = turn(dispatcher, campaign, CampaignState.FAILED)
    assert failed.error_class == "not_installed"
    assert "heat" in failed.error_message
    assert "known: viscoelastic" in failed.error_message

    class Heat:
        name, group_size = "heat", 3

    monkeypatch.setattr(reuse, "find", lambda name: {"heat": Heat}[name])
    with database.write() as connection:
        bulk.reset_failed(connection, campaign)
        campaigns.refresh(connection, campaign)
    until(lambda: states(database, campaign), dispatcher)
    with database.read() as connection:
        groups = jobs.of_campaign(connection, campaign, JobKind.GROUP)
    assert [job.payload["sources"] for job in groups] == [
        [0, 1, 2], [3, 4, 5], [6, 7, 8], [9]
    ]  # fmt: skip


def test_missing_physics_is_an_error_of_the_spec():
    with pytest.raises(SpecError, match="physics"):
        registry.find("nothing of the kind")


def test_result_of_a_later_release_is_solved_again_by_one_of_this(
    database, new_campaign, new_dispatcher, worker, turn, monkeypatch
):
    """A worker that was upgraded before its service: nothing is lost."""
    monkeypatch.setattr(retry, "AWAY_S", 0.01)
    later = []

    def execute(envelope):
        receipt = worker(envelope)
        group = envelope["group"]
        if group and group["index"] == 1 and len(later) < 2:
            later.append(envelope["token"])
            part = receipt if len(later) == 1 else receipt["manifest"]
            part |= {"version": 3, "something": "new"}
        return receipt

    campaign = new_campaign()
    turn(new_dispatcher(execute), campaign, CampaignState.COMPLETE)
    with database.read() as connection:
        job = jobs.of_campaign(connection, campaign, JobKind.GROUP)[1]
        tries = attempts.of_job(connection, job.id)
    assert job.failures == {"other_release": 2}
    said = [attempt.error_message or "" for attempt in tries[:2]]
    assert [text.partition(",")[0] for text in said] == [
        "the receipt has version 3",
        "the manifest has version 3",
    ]
    assert worker.ran[campaign, "group", 0] == 1
