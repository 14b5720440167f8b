"""Changes to a campaign: ETag and If-Match."""

from __future__ import annotations

import shutil

import pytest
import tiny_worker


@pytest.fixture
def database_url(tmp_path, sqlite_template):
    """One database is enough: nothing here depends on it."""
    shutil.copy(sqlite_template, tmp_path / "db.sqlite")
    return str(tmp_path / "db.sqlite")


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


@pytest.mark.parametrize(
    "change",
    [{}, {"nmae": "x"}, {"name": " "}, {"priority": 1.5}, {"priority": 10**9},
     {"paused": "no"}, {"state": "complete"}, [], "x"],
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
