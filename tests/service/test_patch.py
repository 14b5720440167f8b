"""Changes to a campaign: ETag and If-Match."""

from __future__ import annotations

import pytest
import tiny_worker

# one is enough: nothing here depends on it
pytestmark = pytest.mark.databases("sqlite")


def test_change_needs_the_version_that_was_read(client, worker):
    worker.gate.clear()
    made = client.post("/v1/campaigns", json=tiny_worker.spec("old")).json()
    path = made["links"]["self"]
    first = client.get(path).headers["etag"]
    change = {"name": "new", "priority": 7, "paused": True}
    blind = client.patch(path, json=change)
    assert blind.status_code == 428
    assert blind.headers["content-type"] == "application/problem+json"
    done = client.patch(path, json=change, headers={"If-Match": first})
    assert done.status_code == 200
    assert {key: done.json()[key] for key in change} == change
    assert done.json()["state"] == "paused"
    # somebody who saw the old one would undo that unseen
    for stale in (first, f"W/{done.headers['etag']}"):
        late = client.patch(path, json={"name": "x"}, headers={"If-Match": stale})
        assert late.status_code == 412
        assert late.headers["etag"] == done.headers["etag"]
    assert client.get(path).json()["name"] == "new"
    several = f'"other", {done.headers["etag"]}'
    again = client.patch(path, json={"paused": False}, headers={"If-Match": several})
    assert again.status_code == 200
    assert again.headers["etag"] != done.headers["etag"]
    assert not again.json()["paused"]
    whatever = client.patch(path, json={"priority": 0}, headers={"If-Match": "*"})
    assert whatever.json()["priority"] == 0
    assert client.get(path).headers["etag"] == whatever.headers["etag"]


def test_campaigns_are_found_by_their_tags(client, worker):
    worker.gate.clear()
    paths = []
    for name, tags in (("a", ["b_1", "a.2"]), ("b", ["b_1"]), ("c", ["bx1"])):
        made = client.post("/v1/campaigns", json=tiny_worker.spec(name)).json()
        assert made["tags"] == []
        paths.append(made["links"]["self"])
        known = client.get(paths[-1]).headers["etag"]
        change = {"tags": [*tags, tags[0]]}
        done = client.patch(paths[-1], json=change, headers={"If-Match": known})
        assert done.json()["tags"] == sorted(tags)
        assert done.headers["etag"] != known

    def named(tag):
        found = client.get("/v1/campaigns", params={"tag": tag}).json()["items"]
        return sorted(campaign["name"] for campaign in found)

    # no part of a tag, and _ stands for itself alone
    assert [named(tag) for tag in ("b_1", "a.2", "b", "1")] == [
        ["a", "b"],
        ["a"],
        [],
        [],
    ]
    assert client.get("/v1/campaigns", params={"tag": "%"}).status_code == 422
    client.patch(paths[0], json={"name": "new"}, headers={"If-Match": "*"})
    assert client.get(paths[0]).json()["tags"] == ["a.2", "b_1"]
    client.patch(paths[0], json={"tags": []}, headers={"If-Match": "*"})
    assert named("b_1") == ["b"]


@pytest.mark.parametrize(
    "change",
    [{}, {"nmae": "x"}, {"name": " "}, {"priority": 1.5}, {"priority": 10**9},
     {"paused": "no"}, {"state": "complete"}, [], "x", {"tags": ["A"]},
     {"tags": ["a,b"]}, {"tags": ["a"] * 21}, {"tags": "a"}],
)  # fmt: skip
def test_change_of_anything_else_is_refused(client, worker, change):
    worker.gate.clear()
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    path = made["links"]["self"]
    answer = client.patch(path, json=change, headers={"If-Match": "*"})
    assert answer.status_code == 422
    assert client.get(path).json()["name"] == made["name"]


def test_version_does_not_change_with_progress(client, wait_for):
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    path = made["links"]["self"]
    before = client.get(path).headers["etag"]
    wait_for(made["id"], "complete")
    assert client.get(path).headers["etag"] == before


def test_cancelled_campaign_may_be_renamed_but_not_paused(client, worker, wait_for):
    worker.gate.clear()
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    path = made["links"]["self"]
    client.post(f"{path}/cancel")
    wait_for(made["id"], "cancelled")
    match = {"If-Match": "*"}
    paused = client.patch(path, json={"paused": True}, headers=match)
    assert paused.status_code == 409
    named = client.patch(path, json={"name": "old one"}, headers=match)
    assert named.json()["name"] == "old one"
