"""Campaigns over HTTP, with a worker that writes real stores."""

from __future__ import annotations

import threading

import tiny_store
import tiny_worker

PROBLEM = "application/problem+json"


def post(client, name="tiny", **changes):
    answer = client.post("/v1/campaigns", json=tiny_worker.spec(name, **changes))
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_campaign_over_http_from_spec_to_store(client, wait_for):
    made = post(client)
    assert made["state"] == "waiting"
    assert made["spec"]["times"]["until"] == "1 yr"
    shown = wait_for(made["id"], "complete")
    assert shown["progress"]["total"] == shown["progress"]["accepted"] == 3
    assert shown["n_sources"] == 10
    assert shown["model"]["n_unknowns"] == 3 * tiny_store.N_NODE
    groups = client.get(shown["links"]["groups"]).json()["items"]
    assert [group["sources"] for group in groups] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9],
    ]
    detail = client.get(f"{shown['links']['groups']}/2").json()
    (attempt,) = detail["attempts"]
    assert attempt["state"] == "accepted"
    assert attempt["stats"]["solves"] == 3


def test_same_content_has_the_same_digest_and_can_be_found_by_it(client, wait_for):
    first = post(client)
    second = post(client, times={"until": "365.25 d", "output": ["0 d", "30 d"]})
    post(client, "another")
    assert first["digest"] == second["digest"]
    query = {"digest": first["digest"]}
    found = client.get("/v1/campaigns", params=query).json()["items"]
    assert [item["id"] for item in found] == [second["id"], first["id"]]


def test_pages_give_every_campaign_once_newest_first(client, worker):
    worker.gate.clear()
    made = [post(client, f"c{index}")["id"] for index in range(7)]
    listed, cursor = [], None
    while True:
        query = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = client.get("/v1/campaigns", params=query).json()
        listed += [item["id"] for item in page["items"]]
        if not listed[3:]:
            post(client, "made while somebody turns pages")
        cursor = page["next"]
        if cursor is None:
            break
    assert listed == made[::-1]


def test_groups_are_paged_by_number(client, worker, wait_for):
    worker.n_sources = 30
    campaign = wait_for(post(client)["id"], "complete")
    listed, cursor = [], None
    while True:
        query = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = client.get(campaign["links"]["groups"], params=query).json()
        listed += [item["index"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert listed == list(range(8))


def test_list_can_be_limited_to_a_state(client, wait_for):
    done = post(client)["id"]
    wait_for(done, "complete")
    for state, expected in (("complete", [done]), ("failed", [])):
        found = client.get("/v1/campaigns", params={"state": state}).json()["items"]
        assert [item["id"] for item in found] == expected


def test_cancel_over_http(client, worker, wait_for):
    worker.gate.clear()
    made = post(client)
    wait_for(made["id"], "building")
    answer = client.post(f"/v1/campaigns/{made['id']}/cancel").json()
    assert answer["cancelling"]
    shown = wait_for(made["id"], "cancelled", seconds=10)
    assert shown["progress"]["accepted"] == 0
    again = client.post(f"/v1/campaigns/{made['id']}/resume")
    assert again.status_code == 409
    assert again.headers["content-type"] == PROBLEM


def test_failed_campaign_tells_why_and_can_be_retried(client, worker, wait_for):
    worker.fail["group", 1] = ["bad_input"]
    made = post(client)
    failed = wait_for(made["id"], "failed")
    assert failed["error"] == {
        "class": "bad_input",
        "message": "group 1: a planned bad_input",
    }
    client.post(f"/v1/campaigns/{made['id']}/retry")
    done = wait_for(made["id"], "complete")
    assert done["error"] is None
    attempts = client.get(f"{done['links']['groups']}/1").json()["attempts"]
    assert [a["state"] for a in attempts] == ["failed", "accepted"]


def test_retry_where_nothing_failed_is_a_conflict(client, worker):
    worker.gate.clear()
    made = post(client)
    assert client.post(f"/v1/campaigns/{made['id']}/retry").status_code == 409


def test_pause_and_resume(client, worker, wait_for):
    worker.gate.clear()
    made = post(client)
    wait_for(made["id"], "building")
    shown = client.post(f"/v1/campaigns/{made['id']}/pause").json()
    assert shown["state"] == "paused"
    worker.gate.set()
    wait_for(made["id"], "paused")
    client.post(f"/v1/campaigns/{made['id']}/resume")
    wait_for(made["id"], "complete")


def test_deleted_campaign_is_hidden_but_its_greens_stay(client, settings, wait_for):
    made = wait_for(post(client)["id"], "complete")
    assert client.delete(f"/v1/campaigns/{made['id']}").status_code == 204
    assert client.get(f"/v1/campaigns/{made['id']}").status_code == 404
    assert client.get("/v1/campaigns").json()["items"] == []
    assert tiny_worker.stored(settings.store, made["id"]).shape[0] == 10


def test_wrong_spec_names_path_value_and_hint_and_leaves_nothing(client, settings):
    spec = tiny_worker.spec()
    spec["model"]["layers"][1]["vs"] = 7.9
    spec["sources"]["alongstrike"] = 3
    answer = client.post("/v1/campaigns", json=spec)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == PROBLEM
    found = {error["path"]: error for error in answer.json()["errors"]}
    assert "vp/1.155" in found["model.layers[1].vs"]["message"]
    assert found["model.layers[1].vs"]["value"] in (7.9, "7.9")
    assert "along_strike" in found["sources.alongstrike"]["hint"]
    assert all(error["mend"] == error["hint"] for error in found.values())
    assert client.get("/v1/campaigns").json()["items"] == []
    assert not any((settings.store / "campaigns").iterdir())


def test_spec_with_a_file_that_was_not_uploaded(client):
    spec = tiny_worker.spec(stations={"file": "sha256:" + "0" * 64})
    answer = client.post("/v1/campaigns", json=spec)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["path"] == "stations.file"
    assert "upload" in error["hint"]


def test_spec_with_a_path_is_advised_to_upload(client):
    answer = client.post("/v1/campaigns", json=tiny_worker.spec(
        stations={"file": "stations.csv"}
    ))  # fmt: skip
    assert answer.status_code == 422
    assert "upload" in answer.json()["errors"][0]["hint"]


def test_uploaded_stations_are_checked_against_the_domain(client):
    csv = b"station,x_km,y_km\nA,0,0\nB,5000,0\n"
    ref = client.post("/v1/files", content=csv).json()["ref"]
    spec = tiny_worker.spec(stations={"file": ref})
    answer = client.post("/v1/campaigns", json=spec)
    assert answer.status_code == 422
    assert "outside" in answer.json()["detail"]


def test_body_that_is_no_spec_is_a_problem(client):
    headers = {"content-type": "application/json"}
    for body in (b"{", b"\xff\xfe", b"[1, 2]", b'"x"', b"null", b""):
        answer = client.post("/v1/campaigns", content=body, headers=headers)
        assert answer.status_code in (400, 422), body
        assert answer.headers["content-type"] == PROBLEM
        assert answer.json()["detail"]


def test_idempotency_key_makes_one_campaign_of_two_posts(client, worker):
    worker.gate.clear()
    headers = {"Idempotency-Key": "k1"}
    spec = tiny_worker.spec()
    first = client.post("/v1/campaigns", json=spec, headers=headers)
    second = client.post("/v1/campaigns", json=spec, headers=headers)
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert second.headers["idempotent-replayed"] == "true"
    assert len(client.get("/v1/campaigns").json()["items"]) == 1


def test_idempotency_key_with_another_request_is_refused(client, worker):
    worker.gate.clear()
    headers = {"Idempotency-Key": "k1"}
    client.post("/v1/campaigns", json=tiny_worker.spec(), headers=headers)
    other = client.post("/v1/campaigns", json=tiny_worker.spec("b"), headers=headers)
    assert other.status_code == 422
    assert "Idempotency-Key" in other.json()["detail"]


def test_two_posts_with_one_key_at_the_same_moment(client, worker):
    worker.gate.clear()
    spec, answers = tiny_worker.spec(), []
    barrier = threading.Barrier(6)

    def send():
        barrier.wait()
        headers = {"Idempotency-Key": "same"}
        answers.append(client.post("/v1/campaigns", json=spec, headers=headers))

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_failed_post_does_not_use_up_its_key(client, worker):
    worker.gate.clear()
    headers = {"Idempotency-Key": "k1"}
    assert client.post("/v1/campaigns", json={}, headers=headers).status_code == 422
    made = client.post("/v1/campaigns", json=tiny_worker.spec(), headers=headers)
    assert made.status_code == 201
