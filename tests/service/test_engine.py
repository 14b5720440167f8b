"""Decisions of the engine: moves, retries, states of campaigns."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterslip.error_class import ErrorClass
from afterslip_service import clock
from afterslip_service.engine import retry
from afterslip_service.engine.access import EVERYBODY, Principal, Role
from afterslip_service.engine.campaign import JobTally, derive, greens_done
from afterslip_service.engine.forecast import forecast
from afterslip_service.engine.ids import sortable
from afterslip_service.engine.retry import Action
from afterslip_service.engine.states import (
    ACTIVE_JOBS,
    FINAL_JOBS,
    MOVES,
    CampaignState,
    JobKind,
    JobState,
    may_move,
    sources_of,
)

tallies = st.dictionaries(st.sampled_from(JobState), st.integers(0, 5))
standings = st.builds(
    JobTally,
    jobs=st.dictionaries(st.sampled_from(JobKind), tallies),
    paused=st.booleans(),
    cancelling=st.booleans(),
    finished=st.booleans(),
)


def test_only_accepted_and_cancelled_are_final():
    assert {state for state, to in MOVES.items() if not to} == FINAL_JOBS


def test_every_state_can_reach_accepted_unless_it_is_cancelled():
    for start in JobState:
        reached, frontier = {start}, [start]
        while frontier:
            for target in MOVES[frontier.pop()]:
                if target not in reached:
                    reached.add(target)
                    frontier.append(target)
        assert (JobState.ACCEPTED in reached) == (start is not JobState.CANCELLED)


def test_nothing_becomes_accepted_that_was_not_stored():
    assert sources_of(JobState.ACCEPTED) == {JobState.STORED}


@pytest.mark.parametrize("operator", [False, True])
def test_sources_are_the_inverse_of_moves(operator):
    for start, target in itertools.product(JobState, JobState):
        may = may_move(start, target, operator=operator)
        assert may == (start in sources_of(target, operator=operator))


def test_only_who_asks_for_it_leaves_a_final_state():
    for state in FINAL_JOBS:
        assert not any(may_move(state, target) for target in JobState)
        assert may_move(state, JobState.WAITING, operator=True)
    assert not may_move(JobState.CANCELLED, JobState.ACCEPTED, operator=True)


def test_store_without_groups_is_not_closed():
    assert not greens_done(JobTally({}))
    assert not greens_done(JobTally({JobKind.GROUP: {}}))
    assert greens_done(JobTally({JobKind.GROUP: {JobState.ACCEPTED: 1}}))


@given(standings)
def test_campaign_is_never_cancelled_while_something_runs(tally):
    every = tuple(JobKind)
    if tally.count(every, ACTIVE_JOBS):
        assert derive(tally) is not CampaignState.CANCELLED
    elif tally.cancelling:
        assert derive(tally) is CampaignState.CANCELLED


@given(standings)
def test_failed_inversions_never_change_a_campaign(tally):
    jobs = {**tally.jobs, JobKind.INVERSION: {JobState.FAILED: 3}}
    without = {**tally.jobs, JobKind.INVERSION: {}}
    with_, bare = (
        derive(JobTally(kinds, tally.paused, tally.cancelling, tally.finished))
        for kinds in (jobs, without)
    )
    assert with_ is bare


@given(tallies)
def test_store_is_closed_only_when_every_group_is_accepted(greens):
    done = greens_done(JobTally({JobKind.GROUP: greens}))
    others = sum(n for state, n in greens.items() if state is not JobState.ACCEPTED)
    assert done == (others == 0 and greens.get(JobState.ACCEPTED, 0) > 0)


KINDS = [*retry.ATTEMPTS, *retry.LOSSES, "new kind"]


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=9))
def test_no_sequence_of_failures_is_retried_for_ever(classes):
    failures, tries = {}, 0
    for error_class in itertools.cycle(classes):
        tries += 1
        failures = retry.counted(failures, error_class)
        if retry.decide(error_class, failures).action is Action.FAIL:
            break
    # one less of either kind leaves it alive
    assert tries <= retry.ATTEMPTS_IN_ALL - 1 + retry.LOST_LIMIT


@given(st.integers(1, 40), st.lists(st.sampled_from(sorted(retry.LOSSES)), min_size=40))
def test_job_may_lose_its_worker_as_often_as_the_setting_says(limit, classes):
    failures = {}
    for times, error_class in enumerate(classes, 1):
        failures = retry.counted(failures, error_class)
        action = retry.decide(error_class, failures, limit).action
        assert action is (Action.RETRY if times < limit else Action.FAIL)
        if times == limit:
            break


def test_lost_workers_leave_a_job_its_own_attempts():
    failures = {"worker_lost": 20, "killed": 20, "oom": 1}
    assert retry.decide("oom", failures, lost_limit=100).action is Action.RETRY


@pytest.mark.parametrize("error_class", ["bad_input", "mesh"])
def test_input_that_is_wrong_is_never_tried_again(error_class):
    assert retry.decide(error_class, {error_class: 1}).action is Action.FAIL


def test_stopping_the_service_never_uses_up_attempts():
    failures = {}
    for _ in range(100):
        failures = retry.counted(failures, ErrorClass.INTERRUPTED)
        assert retry.decide(ErrorClass.INTERRUPTED, failures).action is Action.RETRY
    failures = retry.counted(failures, "killed")
    assert retry.decide("killed", failures).action is Action.RETRY


def test_worker_of_another_release_is_waited_for_twice_as_long_each_time():
    kind = ErrorClass.OTHER_RELEASE
    verdicts = [retry.decide(kind, {kind: n, "killed": 7}) for n in range(1, 7)]
    assert {verdict.action for verdict in verdicts} == {Action.RETRY}
    waits = [verdict.delay_s for verdict in verdicts]
    assert waits == [15.0, 30.0, 60.0, 120.0, 240.0, 240.0]


def test_full_or_damaged_store_is_not_tried_again_and_says_what_to_do():
    full = retry.decide(ErrorClass.STORE_FULL, {ErrorClass.STORE_FULL: 1})
    assert (full.action, full.delay_s) == (Action.PAUSE, 0.0)
    assert "free space" in full.reason
    damaged = retry.decide(ErrorClass.DAMAGED, {ErrorClass.DAMAGED: 1})
    assert damaged.action is Action.FAIL
    assert "afterslip fsck --repair" in damaged.reason


def test_pauses_between_attempts_grow():
    delays = []
    failures = {}
    for error_class in ("killed", "oom", "timeout"):
        failures = retry.counted(failures, error_class)
        delays.append(retry.decide(error_class, failures).delay_s)
    assert delays == sorted(delays)
    assert delays[0] < delays[-1]


@given(st.integers(0, 2**44), st.integers(0, 2**44), st.integers(0, 2**40 - 1))
def test_identifiers_sort_by_time(first, second, randomness):
    early, late = sorted((first, second))
    if early != late:
        assert sortable(early, randomness) < sortable(late, 0)
    assert len(sortable(first, randomness)) == 17


def test_times_are_scaled_by_the_unknowns_of_the_nearest_campaigns():
    measured = [(1000, (2.0, 4.0, 3.0), 10.0), (10**9, (1.0,), None)]
    found = forecast(2000, 5, 2, measured[:1])
    assert found is not None
    # twice the unknowns: 6 s a group and 20 s for the model; three rounds of two
    assert found.group == pytest.approx(6.0)
    assert found.total == pytest.approx(20.0 + 3 * 6.0)
    assert found.worker == pytest.approx(20.0 + 5 * 6.0)
    assert found.model == pytest.approx(20.0)
    assert (found.slots, found.campaigns) == (2, 1)
    both = forecast(2000, 5, 2, measured)
    assert both is not None
    assert [both.low, both.high] == pytest.approx([2e-6, 6.0])
    assert forecast(2000, 5, 2, [(0, (1.0,), None), (9, (), None)]) is None


def test_campaigns_of_about_the_same_size_are_those_whose_ratio_is_nearest():
    alike = [(size, (1.0,), None) for size in (800, 900, 1000, 1100, 1200)]
    found = forecast(1000, 1, 1, [(1, (1.0,), None), *alike, (10**6, (1.0,), None)])
    assert found is not None
    assert found.low == pytest.approx(1000 / 1200)
    assert found.high == pytest.approx(1000 / 800)


def test_times_without_slots_are_those_of_one_and_without_a_model_those_of_groups():
    alone = forecast(1000, 5, 1, [(1000, (2.0,), None)])
    none = forecast(1000, 5, 0, [(1000, (2.0,), None)])
    assert alone is not None
    assert none is not None
    assert (alone.total, alone.worker, alone.model) == (10.0, 10.0, None)
    assert none.total == alone.total


def test_what_fails_for_good_is_not_put_off():
    failures: dict[str, int] = {ErrorClass.NAN: 50}
    assert retry.decide(ErrorClass.NAN, failures) == retry.Verdict(
        Action.FAIL, 0.0, "failed 50 times"
    )


def test_each_role_may_do_what_those_before_it_may():
    order = ["viewer", "submitter", "operator", "admin"]
    for mine, role in enumerate(map(Role, order)):
        assert [role.covers(Role(other)) for other in order] == [
            other <= mine for other in range(4)
        ]


@pytest.mark.parametrize(
    ("role", "owner", "may"),
    [
        ("viewer", "ada", False),
        ("submitter", "ada", True),
        ("submitter", "bob", False),
        ("submitter", None, False),
        ("operator", "bob", True),
        ("operator", None, True),
        ("admin", None, True),
    ],
)
def test_things_are_changed_by_their_owner_and_by_operators(role, owner, may):
    assert Principal("ada", Role(role)).may_change(owner) is may


def test_whom_the_service_does_not_know_owns_nothing():
    assert not Principal(None, Role.SUBMITTER).may_change(None)
    assert EVERYBODY.may_change(None)


def test_ids_sort_in_the_order_in_which_they_were_made(monkeypatch):
    moment = time.time_ns()
    for milliseconds in (0, 1, 1, 0):  # a clock may be set back
        ids = [clock.new_id() for _ in range(100)]
        now = moment + 1_000_000 * milliseconds
        monkeypatch.setattr("time.time_ns", lambda now=now: now)
        ids += [clock.new_id() for _ in range(100)]
        assert ids == sorted(set(ids))
