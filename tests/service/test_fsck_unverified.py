"""``afterslip fsck`` never calls sound what it could not compare with anything."""

from __future__ import annotations

import json

import pytest
import tiny_worker
from checked import kinds, open_inversion, run_fsck, shard

from afterslip import integrity
from afterslip_service.db import attempts, bulk, campaigns, jobs
from afterslip_service.db.session import Database
from afterslip_service.engine.states import (
    AttemptState,
    CampaignState,
    JobKind,
    JobState,
)
from afterslip_service.reconcile import damage
from afterslip_workers import entry
from afterslip_workers.messages import read_manifest

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata")


@pytest.fixture
def one(new_campaign, new_dispatcher, turn, database):
    """Return a complete campaign with an inversion, and its dispatcher."""
    dispatcher = new_dispatcher()
    campaign = new_campaign("one")
    turn(dispatcher, campaign, CampaignState.COMPLETE)
    open_inversion(database, campaign, "inv-1")
    turn_until_inverted(database, dispatcher, campaign)
    return campaign, dispatcher


def turn_until_inverted(database, dispatcher, campaign):
    for _ in range(500):
        dispatcher.tick()
        with database.read() as connection:
            (job,) = jobs.of_campaign(connection, campaign, JobKind.INVERSION)
        if job.state is JobState.ACCEPTED:
            return
    raise AssertionError(job)


@pytest.fixture
def run(settings, tmp_path):
    return lambda *options: run_fsck(settings.store, tmp_path / "r.json", *options)


def damage_file(path):
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))


def manifests(settings, campaign):
    return sorted((settings.store / "campaigns" / campaign / "manifests").iterdir())


def remove_words(settings, campaign):
    """Remove all that says what the files of groups and inversions should hold."""
    for path in manifests(settings, campaign):
        path.unlink()
    root = settings.store / "campaigns" / campaign / "greens.zarr"
    for document in (root / "checksums").glob("*/zarr.json"):
        document.unlink()


def test_groups_that_nothing_speaks_of_are_not_called_sound(one, run, settings):
    campaign, _ = one
    remove_words(settings, campaign)
    damage_file(shard(settings, campaign))
    done = run()
    assert done.status == 1
    assert set(kinds(done.report)) == {"unproven"}
    groups = {f["group"] for f in done.report["findings"]} - {None}
    assert groups == {0, 1, 2}
    assert {f["inversion"] for f in done.report["findings"]} == {None, "inv-1"}
    assert done.report["unverified"] == 4
    assert "sound" not in done.output
    assert "cannot be verified" in done.output


def test_a_shard_without_its_mode_count_is_not_called_sound(one, run, settings):
    campaign, _ = one
    remove_words(settings, campaign)
    root = settings.store / "campaigns" / campaign / "greens.zarr"
    (root / "mode_count/c/1").unlink()
    done = run()
    assert {f["group"] for f in done.report["findings"]} - {None} == {0, 1, 2}


def test_group_that_is_wholly_gone_from_a_complete_store_is_missing(one, run, settings):
    campaign, _ = one
    root = settings.store / "campaigns" / campaign / "greens.zarr"
    keys = [path.relative_to(root).as_posix() for path in root.rglob("*")]
    grouped = integrity.read_root((root / integrity.ROOT).read_bytes()).grouped
    of_group = [key for key in keys if integrity.group_of(key, grouped) == 1]
    files = [root / key for key in of_group if (root / key).is_file()]
    assert len(files) == 8, "one of each array"
    for path in files:
        path.unlink()
    (settings.store / "campaigns" / campaign / "manifests/1.json").unlink()
    (root / "checksums/1/zarr.json").unlink()
    done = run()
    assert done.status == 1
    assert [(f["kind"], f["group"]) for f in done.report["findings"]] == [
        ("missing", 1)
    ]


def test_database_stands_in_for_lost_manifests_and_writes_them_anew(one, run, settings):
    campaign, _ = one
    before = {path.name: path.read_bytes() for path in manifests(settings, campaign)}
    (settings.store / "campaigns" / campaign / "manifests/0.json").write_text("{")
    for name in ("1.json", "2.json", "inversion-inv-1.json"):
        (settings.store / "campaigns" / campaign / "manifests" / name).unlink()
    done = run("--database", settings.database)
    assert kinds(done.report) == ["manifest"] * 4
    assert done.report["groups"] == 3
    done = run("--database", settings.database, "--repair")
    assert done.status == 0
    assert set(done.report["repaired"].values()) == {"written from the database"}
    after = {path.name: path.read_bytes() for path in manifests(settings, campaign)}
    assert {n: json.loads(t) for n, t in after.items()} == {
        n: json.loads(t) for n, t in before.items()
    }
    assert run().report["findings"] == []


def test_what_the_database_knows_is_missed_in_the_store(
    one, run, settings, client_upload
):
    campaign, _ = one
    (settings.store / "files" / client_upload).unlink()
    (settings.store / "campaigns" / campaign).rename(settings.store / "elsewhere")
    assert run().status == 0, "the store alone cannot know"
    done = run("--database", settings.database)
    assert (done.status, kinds(done.report)) == (1, ["unreadable", "upload"])


@pytest.fixture
def client_upload(settings, database):
    from afterslip_service.db import datasets

    reference = entry.keep_content(settings.store, b"observations")
    with database.write() as connection:
        datasets.record_file(connection, reference, 12)
    return reference.removeprefix("sha256:")


def test_repaired_group_is_unreadable_until_it_is_solved_again(
    one, run, settings, database, turn
):
    campaign, dispatcher = one
    expected = tiny_worker.stored(settings.store, campaign)
    damage_file(shard(settings, campaign))
    done = run("--repair", "--database", settings.database)
    assert done.status == 0
    root = settings.store / "campaigns" / campaign / "greens.zarr"
    assert json.loads((root / "zarr.json").read_text())["attributes"]["status"] == (
        "building"
    )
    assert not [path for path in (root / "response/c/0").rglob("*") if path.is_file()]
    assert not (root / "mode_count/c/0").exists()
    turn(dispatcher, campaign, CampaignState.COMPLETE)
    assert (tiny_worker.stored(settings.store, campaign) == expected).all()
    assert json.loads((root / "zarr.json").read_text())["attributes"]["status"] == (
        "complete"
    )
    with database.read() as connection:
        (job, *_) = jobs.of_campaign(connection, campaign, JobKind.GROUP)
        states = [attempt.state for attempt in attempts.of_job(connection, job.id)]
    assert states == [AttemptState.DAMAGED, AttemptState.ACCEPTED]
    assert run("--database", settings.database).report["findings"] == []


def test_damaged_inversion_is_computed_again(one, run, settings, database):
    campaign, dispatcher = one
    folder = settings.store / "campaigns" / campaign / "inversions/inv-1"
    damage_file(folder / "result.nc")
    done = run("--repair", "--database", settings.database)
    assert done.status == 0
    assert not (folder / "result.nc").exists()
    turn_until_inverted(database, dispatcher, campaign)
    assert (folder / "result.nc").read_bytes() == b"CDF tiny"
    assert run("--database", settings.database).report["findings"] == []


def test_cancel_does_not_bring_a_damaged_result_back(one, run, settings, database):
    campaign, _ = one
    shard(settings, campaign).unlink()
    run("--repair", "--database", settings.database)
    with database.write() as connection:
        bulk.cancel(connection, campaign)
        campaigns.refresh(connection, campaign)
        (job, *_) = jobs.of_campaign(connection, campaign, JobKind.GROUP)
    assert job.state is JobState.CANCELLED


def test_group_that_was_accepted_anew_meanwhile_is_left_alone(
    one, settings, database: Database, turn
):
    campaign, dispatcher = one
    path = settings.store / "campaigns" / campaign / "manifests/0.json"
    old = read_manifest(json.loads(path.read_text()))
    with database.write() as connection:
        bulk.invalidate(connection, campaign, [0])
        campaigns.refresh(connection, campaign)
    turn(dispatcher, campaign, CampaignState.COMPLETE)
    damaged = [(old, ["response/c/0"])]
    assert not damage.make_again(database.write, settings.store, campaign, damaged)
    assert shard(settings, campaign).exists()
    with database.read() as connection:
        found = campaigns.get(connection, campaign)
    assert found.state is CampaignState.COMPLETE
