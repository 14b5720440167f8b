"""Moves of many jobs at once, and campaigns whose groups are all done."""

from __future__ import annotations

import pytest

from afterslip.error_class import ErrorClass
from afterslip_service.db import campaigns, events, jobs
from afterslip_service.db.jobs import NewJob
from afterslip_service.engine.states import CampaignState, JobKind, JobState


@pytest.fixture
def grouped(database, new_campaign):
    """Return a campaign of three groups that wait."""
    campaign = new_campaign()
    with database.write() as connection:
        (model,) = jobs.of_campaign(connection, campaign, JobKind.MODEL)
        for state in (JobState.QUEUED, JobState.STORED, JobState.ACCEPTED):
            assert jobs.move(connection, model, state)
        campaigns.set_model(connection, campaign, {}, 12)
        jobs.create(connection, campaign, [NewJob(JobKind.GROUP, k) for k in range(3)])
        assert campaigns.refresh(connection, campaign) is CampaignState.RUNNING
    return campaign


def groups(database, campaign):
    with database.read() as connection:
        return jobs.of_campaign(connection, campaign, JobKind.GROUP)


@pytest.mark.parametrize("each", [True, False])
def test_columns_that_all_share_are_set_with_the_state(database, grouped, each):
    found = groups(database, grouped)[:2]
    moves = [(job, {"attempts": 3 + job.index} if each else {}) for job in found]
    with database.write() as connection:
        moved = jobs.move_all(
            connection,
            moves,
            JobState.FAILED if each else JobState.CANCELLED,
            error_class=ErrorClass.MESH,
            error_message="too coarse",
            operator=True,
        )
    assert moved == 2
    first, second, other = groups(database, grouped)
    for job in (first, second):
        assert (job.error_class, job.error_message) == ("mesh", "too coarse")
    assert (other.state, other.error_class) == (JobState.WAITING, None)
    if each:
        assert [job.attempts for job in (first, second)] == [3, 4]


def test_event_of_each_move_says_why(database, grouped):
    with database.write() as connection:
        before = events.newest(connection)
        jobs.move_all(
            connection,
            [(job, {}) for job in groups(database, grouped)[:1]],
            JobState.CANCELLED,
            error_class=ErrorClass.MESH,
            error_message="too coarse",
        )
    with database.read() as connection:
        (event,) = events.after(connection, before, campaign=grouped)
    assert event.data["error"] == {"class": "mesh", "message": "too coarse"}


def test_campaign_is_unfinished_when_its_last_group_is_accepted(database, grouped):
    """Until it is closed; one that lacks a group, or has none, is not."""
    found = groups(database, grouped)

    def accept(connection, job):
        for state in (JobState.QUEUED, JobState.STORED, JobState.ACCEPTED):
            assert jobs.move(connection, job, state)

    with database.write() as connection:
        assert campaigns.unfinished(connection) == []
        for job in found[:2]:
            accept(connection, job)
        campaigns.refresh(connection, grouped)
        assert campaigns.unfinished(connection) == []
        accept(connection, found[2])
        campaigns.refresh(connection, grouped)
        assert campaigns.unfinished(connection) == [grouped]
        campaigns.set_finished(connection, grouped)
        assert campaigns.unfinished(connection) == []


def test_campaign_without_groups_is_not_unfinished(database, new_campaign):
    campaign = new_campaign()
    with database.write() as connection:
        (model,) = jobs.of_campaign(connection, campaign, JobKind.MODEL)
        assert jobs.move(connection, model, JobState.QUEUED)
        campaigns.refresh(connection, campaign)
        assert campaigns.unfinished(connection) == []
