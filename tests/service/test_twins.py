"""Groups of two campaigns that have unit sources in common, as claims see them."""

from __future__ import annotations

from afterslip_service import clock
from afterslip_service.db import attempts, bulk, campaigns, claims, jobs, sources
from afterslip_service.db.jobs import NewJob
from afterslip_service.db.twins import DELAY
from afterslip_service.engine.states import AttemptState, JobKind


def with_groups(connection, keys):
    """Create a campaign of one group for each key; equal keys are equal sources."""
    identity = campaigns.create(connection, name="c", digest="d", spec={}, canonical={})
    new = [NewJob(JobKind.GROUP, n, {"sources": [n]}) for n in range(len(keys))]
    jobs.create(connection, identity, new)
    campaigns.set_model(connection, identity, {}, len(keys))
    quality = {"until": 1.0, "tolerance": 1e-8, "time_tolerance": 1e-6}
    sources.plan(
        connection,
        [
            sources.Source(identity, n, key, "m", key, "s", quality)
            for n, key in enumerate(keys)
        ],
    )
    campaigns.refresh(connection, identity)
    return identity


def claimed(database):
    with database.write() as connection:
        found = claims.claim(connection, "d1", 10)
    return [(claim.job.campaign_id, claim.job.index) for claim in found]


def begins(database, campaign):
    with database.read() as connection:
        found = jobs.of_campaign(connection, campaign, JobKind.GROUP)
    return [job.not_before for job in found]


def test_group_whose_source_another_campaign_solves_is_put_off(database):
    with database.write() as connection:
        first = with_groups(connection, ["a"])
    assert claimed(database) == [(first, 0)]
    with database.write() as connection:
        second = with_groups(connection, ["b", "a"])
    before = clock.now()
    assert claimed(database) == [(second, 0)]
    assert before <= begins(database, second)[1] - DELAY <= clock.now()


def test_of_groups_claimed_together_one_solves_what_both_want(database):
    with database.write() as connection:
        made = [with_groups(connection, ["a"]) for _ in range(2)]
    (only,) = claimed(database)
    assert only[0] in made


def test_groups_of_one_campaign_do_not_put_each_other_off(database):
    with database.write() as connection:
        first = with_groups(connection, ["a", "a"])
    assert sorted(claimed(database)) == [(first, 0), (first, 1)]


def test_retracted_group_begins_as_soon_as_its_files_are_gone(database):
    with database.write() as connection:
        campaign = with_groups(connection, ["a", "b"])
        found = jobs.of_campaign(connection, campaign, JobKind.GROUP)
        late = clock.now() + 10 * DELAY
        jobs.set_begin(connection, [job.id for job in found], late)
    with database.write() as connection:
        bulk.release(connection, campaign, found[:1])
    first, second = begins(database, campaign)
    assert first <= clock.now()
    assert second == late
    assert claimed(database) == [(campaign, 0)]


def test_log_of_a_failed_attempt_is_read_back(database):
    with database.write() as connection:
        with_groups(connection, ["a"])
    with database.write() as connection:
        (claim,) = claims.claim(connection, "d1")
        state = AttemptState.FAILED
        attempts.finish(connection, claim.token, state, log="its last lines")
    with database.read() as connection:
        found = attempts.get(connection, claim.token)
    assert found is not None
    assert found.log == "its last lines"
