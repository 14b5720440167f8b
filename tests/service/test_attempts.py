"""Attempts by time, the places of sources, and what a solve says while it runs."""

from __future__ import annotations

from test_explain import post, until


def complete(client, campaign):
    return client.get(f"/v1/campaigns/{campaign}").json()["state"] == "complete"


def read(client, campaign, **query):
    answer = client.get(f"/v1/campaigns/{campaign}/attempts", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_every_attempt_is_listed_with_its_times_and_its_failure(client, worker):
    worker.fail["group", 1] = ["worker_lost"]
    campaign = post(client)
    until(lambda: complete(client, campaign))
    items = read(client, campaign)["items"]
    assert [(a["kind"], a["index"]) for a in items if a["number"] > 1] == [("group", 1)]
    assert sorted((a["kind"], a["index"], a["number"]) for a in items) == [
        ("group", 0, 1),
        ("group", 1, 1),
        ("group", 1, 2),
        ("group", 2, 1),
        ("model", 0, 1),
    ]
    failed = next(a for a in items if a["error_class"])
    assert (failed["index"], failed["error_class"]) == (1, "worker_lost")
    for item in items:
        assert item["queued_at"] <= item["finished_at"]


def test_attempts_are_paged_and_those_that_ended_before_are_left_out(client):
    campaign = post(client)
    until(lambda: complete(client, campaign))
    items = read(client, campaign)["items"]
    first = read(client, campaign, limit=3)
    rest = read(client, campaign, limit=3, cursor=first["next"])
    assert first["items"] + rest["items"] == items
    assert rest["next"] is None
    ends = sorted(item["finished_at"] for item in items)
    late = read(client, campaign, since=ends[-1])["items"]
    assert late
    assert all(item["finished_at"] >= ends[-1] for item in late)


def test_an_attempt_under_way_is_never_left_out(client, worker):
    worker.gate.clear()
    campaign = post(client)
    until(lambda: read(client, campaign)["items"])
    (item,) = read(client, campaign, since="2999-01-01T00:00:00Z")["items"]
    assert (item["kind"], item["finished_at"]) == ("model", None)
    worker.gate.set()


def test_a_time_without_a_zone_is_refused(client):
    campaign = post(client)
    answer = client.get(
        f"/v1/campaigns/{campaign}/attempts", params={"since": "2026-01-01T00:00:00"}
    )
    assert answer.status_code == 422
    assert "since" in answer.text


def test_places_name_the_patch_of_each_source(client, worker):
    campaign = post(client)
    until(lambda: complete(client, campaign))
    found = client.get(f"/v1/campaigns/{campaign}/places").json()
    # the worker lays its ten sources, two components each, along strike
    assert found == {
        "faults": [{"name": "main", "along_strike": 5, "down_dip": 1}],
        "fault": [0] * 10,
        "along_strike": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
        "down_dip": [0] * 10,
    }


def test_places_are_not_known_before_the_model_is_built(client, worker):
    worker.gate.clear()
    campaign = post(client)
    answer = client.get(f"/v1/campaigns/{campaign}/places")
    assert answer.status_code == 409
    assert "not built yet" in answer.json()["detail"]
    worker.gate.set()


def test_the_iteration_of_a_solve_is_reported_while_it_runs(client, worker):
    worker.delay_s = 1.0
    campaign = post(client)

    def live():
        groups = client.get(f"/v1/campaigns/{campaign}/groups").json()["items"]
        return [g for g in groups if (g["progress"] or {}).get("iteration")]

    # any of them: which one is looked at first is the watcher's choice
    shown = until(live)[0]
    assert 0 < shown["progress"]["iteration"] < 150
    group = client.get(f"/v1/campaigns/{campaign}/groups/{shown['index']}").json()
    assert "iteration" in group["attempts"][0]["history"][-1]
