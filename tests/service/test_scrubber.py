"""The scrubber finds damage on the disk, and what is damaged is made again."""

from __future__ import annotations

import json
import threading
import time

import httpx
import pytest
import tiny_worker
from checked import shard

from afterslip_service.db import campaigns, events, jobs, scrubbing
from afterslip_service.engine.states import JobKind, JobState
from afterslip_service.reconcile import scrubber
from afterslip_workers import entry

EVERY_H = 0.2 / 3600

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(scrubber, "BEGIN_S", 0.0)
    monkeypatch.setattr(scrubber, "LOOK_S", 0.05)
    monkeypatch.setattr(scrubber, "CONFIRM_S", 0.05)
    monkeypatch.setattr(scrubber, "RETRY_S", 0.05)
    monkeypatch.setattr(scrubber, "SAVE_S", 0.1)


@pytest.fixture
def scrubbed(serve):
    """Return a client of a service whose scrubber reads all the time."""
    server = serve(scrub_every=EVERY_H)
    with httpx.Client(base_url=server.url, timeout=20) as client:
        yield client


def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(condition())


def complete(client):
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()["id"]
    until(lambda: client.get(f"/v1/campaigns/{made}").json()["state"] == "complete")
    return made


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def content(path):
    """Return what a file holds, None while there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def damages(database, campaign=None):
    with database.read() as connection:
        found = events.after(connection, 0)
    return [
        event.data
        for event in found
        if event.kind == "store.damaged" and event.campaign == campaign
    ]


def cycles(database):
    with database.read() as connection:
        return scrubbing.record(connection).get("cycles", 0)


def pass_by(database, more=2):
    """Wait until everything was read again from its beginning."""
    before = cycles(database)
    until(lambda: cycles(database) >= before + more)


def group(client, campaign, index=0):
    return client.get(f"/v1/campaigns/{campaign}/groups/{index}").json()


def metric(client, name):
    lines = client.get("/metrics").text.splitlines()
    return [float(ln.split()[1]) for ln in lines if ln.split()[0] == name]


def test_damaged_shard_is_found_and_solved_again_bit_by_bit(
    scrubbed, database, settings
):
    campaign = complete(scrubbed)
    path = shard(settings, campaign, 1)
    whole, expected = path.read_bytes(), tiny_worker.stored(settings.store, campaign)
    flip(path)
    # the scrubber deletes it first
    until(lambda: content(path) == whole)
    until(lambda: scrubbed.get(f"/v1/campaigns/{campaign}").json()["state"]
          == "complete")  # fmt: skip
    assert (tiny_worker.stored(settings.store, campaign) == expected).all()
    (damage,) = damages(database, campaign)
    assert (damage["kind"], damage["index"], damage["again"]) == ("group", 1, True)
    assert damage["files"] == [str(path.relative_to(settings.store))]
    states = [attempt["state"] for attempt in group(scrubbed, campaign, 1)["attempts"]]
    assert states == ["damaged", "accepted"]
    assert [len(group(scrubbed, campaign, n)["attempts"]) for n in (0, 2)] == [1, 1]
    root = settings.store / "campaigns" / campaign / "greens.zarr/zarr.json"
    assert json.loads(root.read_text())["attributes"]["status"] == "complete"
    pass_by(database)
    assert len(damages(database, campaign)) == 1
    assert metric(scrubbed, "afterslip_scrub_damaged_total") == [1.0]
    assert metric(scrubbed, "afterslip_scrub_bytes_total")[0] > 0
    assert metric(scrubbed, "afterslip_scrub_oldest_seconds")[0] < 20


def test_damaged_group_cannot_be_read_until_it_is_solved_again(
    scrubbed, database, settings, worker
):
    campaign = complete(scrubbed)
    path = shard(settings, campaign, 1)
    worker.gate.clear()
    flip(path)
    until(lambda: damages(database, campaign))
    until(lambda: group(scrubbed, campaign, 1)["state"] == "running")
    assert not path.exists()
    folder = settings.store / "campaigns" / campaign / "greens.zarr"
    assert not (folder / "checksums/1/zarr.json").exists()
    assert (folder / "checksums/0/zarr.json").exists()
    status = json.loads((folder / "zarr.json").read_text())["attributes"]["status"]
    assert status == "building"
    pass_by(database)
    assert len(damages(database, campaign)) == 1, "it is being made again"
    worker.gate.set()
    until(path.exists)


def test_damaged_inversion_is_not_served_and_computed_again(
    scrubbed, database, settings, worker
):
    campaign = complete(scrubbed)
    csv = "station,x_km,y_km,east,north,up\nA,0,0,1.0,0.2,0.1\nB,9,3,0.5,0.1,0.0\n"
    sigma = {"horizontal": 0.01, "vertical": 0.03}
    body = {"name": "late", "csv": csv, "epoch": "0 d", "sigma": sigma}
    assert scrubbed.post("/v1/datasets", json=body).status_code == 201
    body = {"campaign": campaign, "name": "i1", "datasets": ["late"]}
    made = scrubbed.post("/v1/inversions", json=body).json()["id"]

    def state():
        return scrubbed.get(f"/v1/inversions/{made}").json()["state"]

    until(lambda: state() == "accepted")
    worker.gate.clear()
    result = settings.store / "campaigns" / campaign / "inversions" / made / "result.nc"
    flip(result)
    until(lambda: state() == "running")
    assert scrubbed.get(f"/v1/inversions/{made}/result").status_code == 409
    worker.gate.set()
    until(lambda: state() == "accepted")
    assert scrubbed.get(f"/v1/inversions/{made}/result").content == b"CDF tiny"
    assert scrubbed.get(f"/v1/campaigns/{campaign}").json()["state"] == "complete"
    (damage,) = damages(database, campaign)
    assert damage["kind"] == "inversion"


def test_damaged_upload_is_reported_with_what_to_do(scrubbed, database, settings):
    reference = entry.keep_content(settings.store, b"observations")
    path = settings.store / "files" / reference.removeprefix("sha256:")
    flip(path)
    damage = until(lambda: damages(database))[0]
    assert (damage["kind"], damage["again"]) == ("upload", False)
    assert damage["files"] == [f"files/{path.name}"]
    assert "upload" in damage["hint"]


def test_store_that_is_away_is_no_damage(scrubbed, database, settings):
    campaign = complete(scrubbed)
    away = settings.store.with_name("away")
    settings.store.rename(away)
    time.sleep(0.5)
    away.rename(settings.store)
    pass_by(database)
    assert damages(database, campaign) == []
    assert group(scrubbed, campaign)["state"] == "accepted"


def test_campaign_without_a_root_loses_no_group(scrubbed, database, settings):
    """Nothing could take a new result, so none is taken back."""
    campaign = complete(scrubbed)
    (settings.store / "campaigns" / campaign / "greens.zarr/zarr.json").unlink()
    damage = until(lambda: damages(database, campaign))[0]
    assert (damage["kind"], damage["again"]) == ("campaign", False)
    pass_by(database)
    assert group(scrubbed, campaign)["state"] == "accepted"
    assert shard(settings, campaign).exists()


def test_reading_goes_on_where_the_last_service_stopped(serve, database, settings):
    server = serve(scrub_every=1.0)
    with httpx.Client(base_url=server.url, timeout=20) as client:
        first, second = complete(client), complete(client)
    until(lambda: cycles(database) == 1)
    server.stop()
    with database.write() as connection:
        record = scrubbing.record(connection)
        record |= {"stage": "results", "after": [first, "model", 0], "began": 1.0}
        change_record(connection, record)
    for campaign in (first, second):
        shard(settings, campaign).unlink()
    serve(scrub_every=1.0)
    until(lambda: cycles(database) == 2)
    assert damages(database, first) == [], "it was read before"
    assert len(damages(database, second)) == 1


def change_record(connection, record):
    from afterslip_service.db.tables import leases

    connection.execute(
        leases.update().where(leases.c.name == "scrubber").values(facts=record)
    )


def test_only_the_leader_reads_and_a_standby_takes_over(serve, database, settings):
    """Two services on one database; the first one stops."""
    leader = serve(scrub_every=EVERY_H)
    until(lambda: leader.app.state.service.dispatcher.leads)
    standby = serve(scrub_every=EVERY_H)
    until(lambda: cycles(database) > 2)
    other = standby.app.state.service.dispatcher.scrubber
    assert other._record == scrubber.Record()
    leader.stop()
    before = cycles(database)
    until(lambda: cycles(database) > before + 2)
    assert other._record.cycles > before


def test_rate_holds_and_a_stop_does_not_wait_for_the_file(
    serve, database, settings, monkeypatch
):
    content = bytes(3 << 20)
    entry.keep_content(settings.store, content)
    server = serve(scrub_every=1.0, scrub_rate=1.0)

    def read():
        with database.read() as connection:
            return scrubbing.record(connection).get("bytes", 0)

    until(lambda: read() > 0)
    began = time.monotonic()
    until(lambda: cycles(database) == 1)
    assert time.monotonic() - began > 1.0, "2 MiB at 1 MB/s, less what was let through"
    assert read() >= len(content)
    server.stop()
    # an hour for what is stored by now
    slow = serve(scrub_every=EVERY_H, scrub_rate=0.001)
    reader = slow.app.state.service.dispatcher.scrubber
    until(lambda: reader._record.began)
    slow.stop()
    assert not reader._thread.is_alive()
    assert cycles(database) == 1


def test_rate_of_zero_reads_nothing(serve, database):
    serve(scrub_every=EVERY_H, scrub_rate=0)
    assert "scrubber" not in {thread.name for thread in threading.enumerate()}


def test_deleted_campaign_is_not_solved_again(scrubbed, database, settings):
    campaign = complete(scrubbed)
    with database.write() as connection:
        campaigns.set_deleted(connection, campaign)
    shard(settings, campaign).unlink()
    pass_by(database)
    assert damages(database, campaign) == []


@pytest.mark.parametrize("kind", [JobKind.GROUP, JobKind.MODEL])
def test_campaign_deleted_while_it_is_read_is_neither_damaged_nor_solved_again(
    scrubbed, database, settings, monkeypatch, kind
):
    """What is read next is chosen; then somebody deletes the campaign."""
    campaign = complete(scrubbed)
    deleted = threading.Event()
    read = scrubber.Scrubber._read_result

    def delete_before(self, result):
        if result.kind is kind and not deleted.is_set():
            with database.write() as connection:
                campaigns.set_deleted(connection, campaign)
            root = settings.store / "campaigns" / campaign / "greens.zarr/zarr.json"
            (shard(settings, campaign) if kind is JobKind.GROUP else root).unlink()
            deleted.set()
        read(self, result)

    monkeypatch.setattr(scrubber.Scrubber, "_read_result", delete_before)
    assert deleted.wait(20)
    pass_by(database)
    assert damages(database, campaign) == []
    with database.read() as connection:
        groups = jobs.of_campaign(connection, campaign, JobKind.GROUP)
    assert {job.state for job in groups} == {JobState.ACCEPTED}
