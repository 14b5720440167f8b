"""What finished campaigns say of the time that the next one will take."""

from __future__ import annotations

import sqlalchemy as sa

from afterslip_service import clock
from afterslip_service.db.measured import newest, step_s
from afterslip_service.db.tables import attempts, campaigns, jobs

MODEL = {"n_unknowns": 900}


def solve(database, campaign, stats, kind="model", **values):
    """Accept an attempt at a campaign's model, or another job of it."""
    now = clock.now()
    with database.write() as connection:
        connection.execute(
            campaigns.update()
            .where(campaigns.c.id == campaign)
            .values(model=MODEL, recent=[2.0, 3.0], **values)
        )
        mine = jobs.c.campaign_id == campaign
        job = connection.execute(sa.select(jobs.c.id).where(mine)).scalar_one()
        token = f"of-{campaign}"
        connection.execute(
            attempts.insert().values(
                token=token, job_id=job, number=1, state="accepted",
                dispatcher="d", queued_at=now, started_at=now, finished_at=now,
                stats=stats,
            )
        )  # fmt: skip
        connection.execute(jobs.update().where(mine).values(token=token, kind=kind))


def test_solved_campaigns_of_the_physics_are_listed_newest_first(
    database, new_campaign
):
    built, reused, other, deleted, waiting = (new_campaign(name) for name in "abcde")
    solve(database, built, {"seconds": 12.5})
    solve(database, reused, {"seconds": 0.1, "cached": True})
    solve(database, other, {"seconds": 1.0}, physics="scalar")
    solve(database, deleted, {"seconds": 1.0}, deleted_at=clock.now())
    with database.read() as connection:
        found = newest(connection, "viscoelastic")
    assert [row.id for row in found] == sorted([built, reused], reverse=True)
    of = {row.id: row for row in found}
    assert of[built].model_s == 12.5
    assert of[reused].model_s is None
    assert of[built].unknowns == 900
    assert of[built].group_s == (2.0, 3.0)
    assert waiting not in of


def test_a_step_of_time_takes_what_groups_took_over_their_steps(database, new_campaign):
    known, stored, model = (new_campaign(name) for name in "abc")
    solve(database, known, {"seconds": 6.0, "iterations": 120}, "group")
    solve(database, stored, {"seconds": 0.5, "iterations": 0}, "group")
    solve(database, model, {"seconds": 9.0, "iterations": 3})
    with database.read() as connection:
        assert step_s(connection, [known, stored, model]) == {known: 0.05}
