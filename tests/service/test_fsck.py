"""``afterslip fsck`` finds what is not as promised, and has it repaired."""

from __future__ import annotations

import json
import shutil

import pytest
import tiny_worker
from typer.testing import CliRunner

from afterslip.cli.main import app as cli
from afterslip_service.commands.fsck import fsck
from afterslip_service.db import campaigns, jobs
from afterslip_service.engine.states import CampaignState, JobKind, JobState
from afterslip_workers import entry

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata")


@pytest.fixture
def solved(new_campaign, new_dispatcher, turn, settings):
    """Return two complete campaigns of the same sources, and the dispatcher."""
    dispatcher = new_dispatcher()
    found = [new_campaign("one"), new_campaign("two")]
    for campaign in found:
        turn(dispatcher, campaign, CampaignState.COMPLETE)
    return found, dispatcher


@pytest.fixture
def run(settings, tmp_path):
    """Run the command; return its exit status and report."""

    def call(*options):
        path = tmp_path / "report.json"
        arguments = [str(settings.store), *options, "--json", str(path)]
        done = CliRunner().invoke(_app(), arguments)
        assert done.exit_code in {0, 1}, done.output
        return done.exit_code, json.loads(path.read_text())

    return call


def _app():
    import typer

    app = typer.Typer()
    app.command()(fsck)
    return app


def shard(settings, campaign, group=0):
    root = settings.store / "campaigns" / campaign / "greens.zarr"
    (found,) = (p for p in (root / "response/c" / str(group)).rglob("*") if p.is_file())
    return found


def kinds(report):
    return sorted(finding["kind"] for finding in report["findings"])


def test_sound_store_is_said_to_be_sound(solved, run, settings):
    status, report = run("--database", settings.database)
    assert (status, kinds(report)) == (0, [])
    assert report["campaigns"] == 2
    assert report["groups"] >= 4
    assert run()[0] == 0, "without a database as well"


def test_damaged_shard_comes_back_from_another_campaign(solved, run, settings):
    (one, _), _ = solved
    path = shard(settings, one)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    status, report = run()
    assert (status, kinds(report)) == (1, ["damaged"])
    assert report["findings"][0]["group"] == 0
    status, report = run("--repair")
    assert status == 0
    assert list(report["repaired"].values()) == ["copied from where it is whole"]
    assert report["mended"] == report["repaired"], "the old key, until 0.3"
    assert path.read_bytes() == whole
    assert run()[0] == 0


def test_lost_shard_comes_back_from_another_campaign(solved, run, settings):
    (one, _), _ = solved
    path = shard(settings, one)
    whole = path.read_bytes()
    path.unlink()
    status, report = run()
    assert (status, kinds(report)) == (1, ["missing"])
    status, report = run("--repair")
    assert status == 0
    key = str(path.relative_to(settings.store))
    assert report["repaired"] == {key: "copied from where it is whole"}
    assert path.read_bytes() == whole
    assert run()[0] == 0


def test_lost_shard_that_nobody_else_has_is_solved_again(
    solved, run, settings, database, turn, worker
):
    (one, two), dispatcher = solved
    expected = tiny_worker.stored(settings.store, one)
    for campaign in (one, two):
        shard(settings, campaign).unlink()
    status, report = run()
    assert (status, kinds(report)) == (1, ["missing", "missing"])
    assert run("--repair")[0] == 1, "the store alone cannot repair it"
    status, report = run("--repair", "--database", settings.database)
    assert status == 0
    assert set(report["repaired"].values()) == {"group 0 will be solved again"}
    with database.read() as connection:
        found = jobs.of_campaign(connection, one, JobKind.GROUP)
    assert found[0].state is JobState.WAITING
    assert {job.state for job in found[1:]} <= {JobState.ACCEPTED}
    for campaign in (one, two):
        turn(dispatcher, campaign, CampaignState.COMPLETE)
    assert (tiny_worker.stored(settings.store, one) == expected).all()
    assert run("--database", settings.database)[0] == 0


def test_deleted_campaigns_are_not_solved_again(solved, run, settings, database):
    (one, two), _ = solved
    for campaign in (one, two):
        shard(settings, campaign).unlink()
    with database.write() as connection:
        campaigns.set_deleted(connection, two)
    status, report = run("--repair", "--database", settings.database)
    assert status == 0
    assert {f["campaign"] for f in report["findings"]} == {one}
    with database.read() as connection:
        states = [
            {job.state for job in jobs.of_campaign(connection, campaign, JobKind.GROUP)}
            for campaign in (one, two)
        ]
    assert JobState.WAITING in states[0]
    assert states[1] == {JobState.ACCEPTED}


def test_campaign_deleted_during_a_repair_is_not_solved_again(
    solved, run, settings, database, monkeypatch
):
    (one, two), _ = solved
    for campaign in (one, two):
        shard(settings, campaign).unlink()
    repair = entry.repair_store

    def meanwhile(*arguments):
        with database.write() as connection:
            campaigns.set_deleted(connection, two)
        return repair(*arguments)

    monkeypatch.setattr(entry, "repair_store", meanwhile)
    run("--repair", "--database", settings.database)
    with database.read() as connection:
        found = jobs.of_campaign(connection, two, JobKind.GROUP)
    assert {job.state for job in found} == {JobState.ACCEPTED}


def test_orphans_are_removed_and_results_that_wait_are_left(solved, run, settings):
    attempts = settings.store / "attempts"
    (attempts / "orphan").mkdir()
    (attempts / "orphan" / "log.txt").write_text("of a worker that was lost")
    (attempts / "waits").mkdir()
    (attempts / "waits" / "manifest.json").write_text('{"token": "waits"}')
    status, report = run("--database", settings.database)
    assert (status, kinds(report)) == (0, ["orphan", "waiting"])
    run("--repair", "--database", settings.database)
    assert [path.name for path in attempts.iterdir()] == ["waits"]
    assert kinds(run()[1]) == [], "without a database all may be wanted"


def test_damaged_model_upload_and_coordinates_are_found(solved, run, settings):
    (one, _), _ = solved
    (settings.store / "models" / "abc").mkdir()
    (settings.store / "models" / "abc" / "meta.json").write_text("{")
    reference = entry.keep_content(settings.store, b"observations")
    upload = settings.store / "files" / reference.removeprefix("sha256:")
    upload.write_bytes(b"observation")
    shutil.rmtree(settings.store / "campaigns" / one / "greens.zarr")
    status, report = run()
    assert status == 1
    assert kinds(report) == ["model", "unreadable", "upload"]


def test_store_that_is_not_there_is_not_called_sound(tmp_path):
    done = CliRunner().invoke(_app(), [str(tmp_path / "nowhere")])
    assert done.exit_code == 2
    assert "cannot be read" in done.output


def test_command_is_one_of_afterslips():
    assert "fsck" in CliRunner().invoke(cli, ["--help"]).output
