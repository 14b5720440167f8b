"""A full store that was freed meanwhile: who hears of it late does not pause."""

from __future__ import annotations

import errno

import pytest

from afterslip_service.db import campaigns, jobs
from afterslip_service.engine.states import CampaignState, JobKind
from afterslip_workers import entry

FULL = {"class": "store_full", "message": "No space left on device"}


@pytest.fixture
def resume(database):
    """Resume a campaign, as an operator does while its groups are under way."""

    def call(campaign):
        with database.write() as connection:
            campaigns.set_paused(connection, campaign, False)
            campaigns.refresh(connection, campaign)

    return call


@pytest.fixture
def refused_after(worker, resume, monkeypatch):
    """Let group 0 be refused for want of space, right after a resume.

    Returns the callable that executes attempts.
    """

    def nowhere():
        """Neither the store nor the spool took it."""

        def plan(envelope):
            resume(envelope.campaign)
            return "store_full"

        worker.fail["group", 0] = [plan]
        return worker

    def spooled():
        """It waits on the disk of its worker."""

        def execute(envelope):
            receipt = worker(envelope)
            if envelope["kind"] == "group":
                resume(envelope["campaign"])
                receipt["stats"]["spooled"] = FULL
            return receipt

        return execute

    def promoted():
        """The campaign had no room for it."""
        real, refused = entry.promote, []

        def promote(store, campaign, manifest):
            if manifest.kind == "greens" and not refused:
                refused.append(campaign)
                resume(campaign)
                raise OSError(errno.ENOSPC, "No space left on device")
            real(store, campaign, manifest)

        monkeypatch.setattr(entry, "promote", promote)
        return worker

    return {"nowhere": nowhere, "spooled": spooled, "promoted": promoted}


@pytest.mark.parametrize(
    ("where", "tries"), [("nowhere", 2), ("spooled", 1), ("promoted", 1)]
)
def test_late_refusal_does_not_pause(
    database, new_campaign, new_dispatcher, turn, refused_after, where, tries
):
    dispatcher = new_dispatcher(refused_after[where]())
    campaign = new_campaign()
    turn(dispatcher, campaign, CampaignState.COMPLETE)
    with database.read() as connection:
        first = jobs.of_campaign(connection, campaign, JobKind.GROUP)[0]
    assert first.attempts == tries


def test_store_that_is_full_again_pauses(
    new_campaign, new_dispatcher, worker, turn, refused_after
):
    dispatcher = new_dispatcher(refused_after["nowhere"]())
    worker.fail["group", 0].append("store_full")
    turn(dispatcher, new_campaign(), CampaignState.PAUSED)
