"""What attempts leave behind."""

from __future__ import annotations

from datetime import timedelta

from afterslip_service.db import attempts, jobs
from afterslip_service.engine.states import CampaignState, JobKind
from afterslip_service.reconcile import dispatcher as module
from afterslip_workers.store import spool


def test_folders_of_lost_attempts_are_swept_and_others_are_left(
    settings, new_campaign, new_dispatcher, worker, turn, monkeypatch
):
    monkeypatch.setattr(module, "LINGER", timedelta(0))
    monkeypatch.setattr(module, "SWEEP_EVERY_S", 0.0)
    monkeypatch.setattr("afterslip_service.engine.retry.BACKOFF_S", (0.0,))
    worker.fail["group", 1] = ["killed"]
    foreign = settings.store / "attempts" / "of-another-service"
    foreign.mkdir(parents=True)
    dispatcher = new_dispatcher()
    campaign = new_campaign()
    turn(dispatcher, campaign, CampaignState.COMPLETE)
    dispatcher.tick()
    left = [path.name for path in (settings.store / "attempts").iterdir()]
    assert left == [foreign.name]


def test_log_of_a_failed_attempt_is_stored_in_the_database(
    database, new_campaign, new_dispatcher, worker, turn
):
    def complain(envelope):
        (spool.folder_of(envelope) / "log.txt").write_text("it was the mesh\n")
        return "mesh"

    worker.fail["group", 0] = [complain]
    campaign = new_campaign()
    turn(new_dispatcher(), campaign, CampaignState.FAILED)
    with database.read() as connection:
        job = jobs.of_campaign(connection, campaign, JobKind.GROUP)[0]
        (attempt,) = attempts.of_job(connection, job.id)
    assert attempt.log == "it was the mesh"
