"""Why work waits and failed, and what operators do about it, over HTTP."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import tiny_worker

from afterslip_service.engine.explain import (
    Situation,
    _t95,
    _turn,
    differences,
    remaining_interval_s,
    remaining_s,
    why_waiting,
)
from afterslip_service.engine.states import CampaignState, JobState


def post(client, name="tiny", **changes):
    answer = client.post("/v1/campaigns", json=tiny_worker.spec(name, **changes))
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def bulk(client, campaign, action, **choice):
    answer = client.post(f"/v1/campaigns/{campaign}/groups/{action}", json=choice)
    assert answer.status_code == 200, answer.text
    return answer.json()


def explain(client, campaign, **query):
    answer = client.get(f"/v1/campaigns/{campaign}/explain", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def until(look, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError("it never came")


def test_failed_groups_are_explained_and_retried_by_class(client, wait_for, worker):
    worker.fail["group", 0] = ["bad_input"]
    campaign = post(client)
    wait_for(campaign, "failed")
    explained = explain(client, campaign)
    (failure,) = explained["failures"]
    assert failure["error_class"] == "bad_input"
    assert "correct it" in failure["advice"]
    assert explain(client, campaign, group=0)["failures"][0]["count"] == 1
    assert bulk(client, campaign, "retry", error_class="oom")["changed"] == 0
    assert bulk(client, campaign, "retry", error_class="bad_input")["changed"] == 1
    shown = wait_for(campaign, "complete")
    assert shown["remaining_s"] == 0.0


def test_invalidated_group_keeps_its_result_until_the_new_one(client, wait_for, worker):
    campaign = post(client)
    wait_for(campaign, "complete")
    worker.gate.clear()
    done = bulk(client, campaign, "invalidate", groups=[1])
    assert (done["changed"], done["state"]) == (1, "running")
    again = bulk(client, campaign, "invalidate", groups=[1])
    assert again["changed"] == 0
    until(lambda: worker.ran[campaign, "group", 1] == 2)
    path = f"/v1/campaigns/{campaign}/groups/1"
    states = [a["state"] for a in client.get(path).json()["attempts"]]
    assert states[0] == "accepted"
    worker.gate.set()
    wait_for(campaign, "complete")
    states = [a["state"] for a in client.get(path).json()["attempts"]]
    assert states == ["replaced", "accepted"]


def test_cancelled_campaign_is_taken_up_again(client, wait_for, worker):
    worker.gate.clear()
    campaign = post(client)
    client.post(f"/v1/campaigns/{campaign}/cancel")
    wait_for(campaign, "cancelled")
    assert explain(client, campaign)["waiting"][0]["code"] == "cancelled"
    worker.gate.set()
    path = f"/v1/campaigns/{campaign}/uncancel"
    assert client.post(path).json()["changed"] == 1
    assert client.post(path).json()["changed"] == 0
    wait_for(campaign, "complete")


def test_waiting_campaign_says_what_it_waits_for(client, worker):
    worker.gate.clear()
    busy = [post(client, f"busy {n}", priority=5) for n in range(3)]
    late = post(client, "late")
    codes = until(
        lambda: (
            {r["code"] for r in explain(client, late)["waiting"]} & {"priority"}
            and {r["code"] for r in explain(client, late)["waiting"]}
        )
    )
    assert codes >= {"model", "priority"}
    client.post(f"/v1/campaigns/{late}/pause")
    assert explain(client, late)["waiting"][0]["code"] == "paused"
    assert client.get(f"/v1/campaigns/{late}").json()["remaining_s"] is None
    assert busy


def test_time_left_is_unknown_before_the_first_group():
    groups = {JobState.WAITING: 8, JobState.RUNNING: 2}
    assert remaining_s((), groups) is None
    assert remaining_s((3.0,), {JobState.WAITING: 8}) is None
    assert remaining_s((2.0, 2.0, 50.0), groups) == 10.0
    assert remaining_s((2.0,), {JobState.ACCEPTED: 4}) == 0.0
    # one of two waits for its turn on the other's worker
    turns = {JobState.WAITING: 8, JobState.QUEUED: 1, JobState.RUNNING: 1}
    assert remaining_s((2.0,), turns) == 20.0


def test_the_interval_of_the_time_left_holds_it_as_often_as_it_says():
    """Of campaigns with random times of groups, 90 % end inside; 2,000 are drawn."""
    random, slots, left, inside, drawn = np.random.default_rng(5), 4, 40, 0, 2000
    groups = {JobState.WAITING: left - slots, JobState.RUNNING: slots}
    for _ in range(drawn):
        # times of groups vary by a fifth
        recent = tuple(random.normal(100.0, 20.0, 15).tolist())
        middle, interval = (
            remaining_s(recent, groups),
            remaining_interval_s(recent, groups),
        )
        assert middle is not None
        assert interval is not None
        low, high = interval
        assert low <= middle <= high
        inside += low <= random.normal(100.0, 20.0, left // slots).sum() <= high
    # three standard deviations of the count; what lies outside the median widens it
    assert 0.88 <= inside / drawn <= 0.95


def test_the_time_left_has_no_interval_before_five_groups_have_ended():
    groups = {JobState.WAITING: 8, JobState.RUNNING: 2}
    assert remaining_interval_s((2.0, 2.1, 1.9, 2.0), groups) is None
    interval = remaining_interval_s((2.0, 2.1, 1.9, 2.0, 2.0), groups)
    assert interval is not None
    assert 0 < interval[0] < 10.0 < interval[1]
    assert remaining_interval_s((2.0,) * 5, {JobState.ACCEPTED: 4}) is None
    # t of 4 degrees of freedom, 2.132 in tables
    assert _t95(4) == pytest.approx(2.132, rel=0.01)


def test_differences_name_the_paths():
    one = {"layers": [{"vs": 1, "vp": 2}, {"vs": 3}], "mesh": 1}
    two = {"layers": [{"vs": 1, "vp": 9}, {"vs": 3}], "bodies": []}
    assert differences(one, two, "model") == [
        "model.bodies",
        "model.layers[0].vp",
        "model.mesh",
    ]


def test_a_turn_names_those_before_it_only_where_there_are_some():
    assert _turn(0, 2) == "it is the next in turn, once one of 2 slots is free"
    assert _turn(1, 1) == "it takes turns: 1 campaign comes before it, 1 slot"
    assert "3 campaigns come before it, 2 slots" in _turn(3, 2)


def test_a_second_cancel_says_what_takes_the_campaign_up_again(
    client, worker, wait_for
):
    worker.gate.clear()
    made = post(client)
    wait_for(made, "building")
    client.post(f"/v1/campaigns/{made}/cancel")
    answer = client.post(f"/v1/campaigns/{made}/pause")
    assert answer.status_code == 409
    assert answer.json()["detail"].endswith("is cancelled: uncancel it first")
    wait_for(made, "cancelled", seconds=10)
    answer = client.post(f"/v1/campaigns/{made}/cancel")
    assert answer.status_code == 409
    assert answer.json()["detail"].endswith(
        "is cancelled already; uncancel takes it up again"
    )


def test_what_is_complete_is_not_cancelled(client, wait_for):
    made = post(client)
    wait_for(made, "complete")
    answer = client.post(f"/v1/campaigns/{made}/cancel")
    assert answer.status_code == 409
    assert "is complete: nothing of it waits or runs" in answer.json()["detail"]
    assert client.get(f"/v1/campaigns/{made}").json()["state"] == "complete"


def test_each_hindrance_has_a_code_of_its_own():
    now = datetime(2030, 1, 1, tzinfo=UTC)
    free = Situation(
        state=CampaignState.RUNNING, error_class=None, error_message=None,
        cancelling=False, paused=False, built=True, waiting=1, active=0, slots=2,
        trouble=None, busy=0, limit=None, above=0, before=0, wake_at=None, now=now,
    )  # fmt: skip

    def reasons(**changes):
        return why_waiting(replace(free, **changes))

    def codes(**changes):
        return [reason.code for reason in reasons(**changes)]

    assert codes() == ["turn"]
    assert codes(waiting=0) == []
    assert codes(busy=3, limit=4) == ["turn"]
    assert codes(busy=4, limit=4) == ["limit", "turn"]
    assert codes(above=1) == ["priority"]
    assert codes(built=False) == ["model", "turn"]
    assert codes(wake_at=now) == ["turn"]
    assert codes(wake_at=now + timedelta(seconds=1)) == ["backoff", "turn"]
    soon = now + timedelta(seconds=1)
    assert codes(wake_at=soon, shares=True) == ["shared", "turn"]
    assert codes(wake_at=soon, awaits=("a",)) == ["other_earths"]
    assert codes(paused=True, awaits=("a",)) == ["paused"]
    assert codes(slots=None) == ["no_dispatcher"]
    assert codes(slots=0) == ["no_worker"]
    assert codes(paused=True, slots=0) == ["paused", "no_worker"]
    assert codes(cancelling=True) == ["cancelled"]
    assert codes(state=CampaignState.FAILED) == ["failed"]
    full = {"paused": True, "error_class": "store_full"}
    assert codes(**full) == ["store_full"]
    assert reasons(**full, error_message="0 bytes left")[0].message == "0 bytes left"
    assert "there are no workers" in reasons(slots=0)[0].message
    assert reasons(trouble="no answer")[0].message == "no answer"
    assert "pauses a while" in reasons(wake_at=soon)[0].message
    assert reasons(awaits=("a", "b"))[0].message.endswith(
        "2 campaigns in other earths: a, b"
    )
