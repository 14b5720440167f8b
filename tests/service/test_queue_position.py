"""What stands before a campaign in the queue."""

from datetime import timedelta

import sqlalchemy as sa

from afterslip_service import clock
from afterslip_service.db import queue_position
from afterslip_service.db.tables import campaigns, jobs
from afterslip_service.engine.states import JobState


def change(database, table, where, **values):
    with database.write() as connection:
        connection.execute(sa.update(table).where(where).values(**values))


def test_only_jobs_at_work_of_the_same_user_are_busy(database, new_campaign):
    ada, bob, other = (new_campaign(name) for name in ("ada", "bob", "other"))
    change(database, campaigns, campaigns.c.id.in_([ada, other]), owner="ada")
    change(database, campaigns, campaigns.c.id == bob, owner="bob")
    for found, state in ((bob, JobState.RUNNING), (ada, JobState.WAITING)):
        change(database, jobs, jobs.c.campaign_id == found, state=state)
    for state, busy in (
        (JobState.RUNNING, 1),
        (JobState.QUEUED, 1),
        (JobState.FAILED, 0),
    ):
        change(database, jobs, jobs.c.campaign_id == other, state=state)
        with database.read() as connection:
            place = queue_position.of(connection, ada, clock.now())
        assert place.busy == busy


def test_who_waits_with_more_priority_or_an_earlier_turn_stands_before(
    database, new_campaign
):
    now = clock.now()
    mine = new_campaign("mine")
    change(database, campaigns, campaigns.c.id == mine, priority=0, turn=5, wake_at=now)
    for priority, turn, wake_at in (
        (1, 9, now),
        (0, 4, now),
        (0, 4, now - timedelta(seconds=1)),
        (0, 6, now),
        (-1, 1, now),
        (1, 1, now + timedelta(minutes=1)),
        (0, 1, None),
    ):
        values = {"priority": priority, "turn": turn, "wake_at": wake_at}
        other = new_campaign("other")
        change(database, campaigns, campaigns.c.id == other, **values)
    with database.read() as connection:
        place = queue_position.of(connection, mine, now)
    assert (place.above, place.before) == (1, 2)
