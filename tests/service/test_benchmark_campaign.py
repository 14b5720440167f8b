"""The benchmark of a campaign says where a group's time goes."""

from __future__ import annotations

from types import SimpleNamespace

from afterslip_service.benchmarks import phases


def moment(seconds):
    return f"1970-01-01T00:00:{seconds:09.6f}+00:00"


def group(index, began, solving, ended):
    laps = {"solving": solving - 0.5, "writing": 1.0}
    stats = {
        "began": began,
        "solving_s": solving,
        "seconds": solving + 1.0,
        "ended": ended,
    }
    attempt = {"stats": {**stats, "phases": laps}, "finished_at": moment(ended + 0.25)}
    return {"index": index, "attempts": [{"stats": None}, attempt]}


def test_pace_is_made_of_held_and_idle_time():
    # the order of the store is not that of the clock
    groups = [group(1, 12.5, 2.0, 15.6), group(0, 10.0, 2.0, 13.1)]
    events = [
        SimpleNamespace(kind="group.progress", time=moment(11), data={"index": 0}),
        *(
            SimpleNamespace(
                kind="group.state", time=moment(t), data={"index": i, "state": state}
            )
            for i, state, t in [
                (0, "stored", 13.35),
                (0, "accepted", 13.75),
                (1, "accepted", 16.25),
            ]
        ),
    ]
    made = phases.records(groups, phases.accepted_at(events))
    found = {item["metric"]: round(item["value"], 6) for item in made}
    assert found == {
        "campaign_overlapped": 1.0,
        "campaign_first_group_s": 2.5,
        "campaign_pace_s": 2.5,
        "campaign_held_s": 2.0,
        "campaign_idle_s": 0.5,
        "campaign_receipt_s": 0.25,
        "campaign_acceptance_s": 0.4,
        "campaign_phase_solving_s": 1.5,
        "campaign_phase_writing_s": 1.0,
    }
