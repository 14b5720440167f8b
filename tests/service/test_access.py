"""Tokens, roles and owners over HTTP."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx
import pytest
import tiny_worker

from afterslip_service.db import campaigns, jobs, migrate, tokens
from afterslip_service.db.session import Database
from afterslip_service.db.tables import idempotency
from afterslip_service.engine.access import Role
from afterslip_service.engine.states import JobKind
from afterslip_service.routes import events

# one is enough; the last tests of this file use both
pytestmark = pytest.mark.databases("sqlite")

PROBLEM = "application/problem+json"


@pytest.fixture
def server(serve):
    return serve(auth=True)


@pytest.fixture
def sign(server, new_token):
    """Return clients of users, each with a token."""
    made = []

    def client(user="ada", role=Role.SUBMITTER, **options):
        _, secret = new_token(user, role)
        headers = {"Authorization": f"Bearer {secret}"}
        found: Any = httpx.Client(base_url=server.url, headers=headers, timeout=20)
        found.secret = secret
        made.append(found)
        return found

    yield client
    for found in made:
        found.close()


def submit(client, name="tiny"):
    answer = client.post("/v1/campaigns", json=tiny_worker.spec(name))
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_nothing_but_the_page_and_health_is_open(server):
    operations = httpx.get(server.url + "/openapi.json").json()["paths"]
    opened = set()
    for path, item in operations.items():
        for method in item:
            url = server.url + path.replace("{", "").replace("}", "")
            answer = httpx.request(method, url, json={} if method == "post" else None)
            if answer.status_code != 401:
                opened.add((method, path))
                continue
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.headers["content-type"] == PROBLEM
            assert "error" not in answer.headers["www-authenticate"]
    assert opened == {
        ("get", "/healthz"),
        ("get", "/readyz"),
        ("get", "/v1/session"),
        # 422 and 204: they take a token of their own, and end what is not there
        ("post", "/v1/session"),
        ("delete", "/v1/session"),
    }


def test_unknown_expired_and_revoked_tokens_look_the_same(server, database, new_token):
    revoked, first = new_token()
    _, expired = new_token(days=-1)
    with database.write() as connection:
        tokens.revoke(connection, revoked.id)
    answers = [
        httpx.get(
            server.url + "/v1/campaigns",
            headers={b"Authorization": f"Bearer {secret}".encode()},
        )
        for secret in (first, expired, "afs_" + "x" * 43, "short", "é")
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert 'error="invalid_token"' in answers[0].headers["www-authenticate"]


def test_token_is_shown_once_and_only_its_hash_is_stored(sign, database, tmp_path):
    admin = sign("root", Role.ADMIN)
    body = {"name": "laptop", "user": "ada", "role": "submitter", "days": 30}
    key = {"Idempotency-Key": "k1"}
    made = admin.post("/v1/tokens", json=body, headers=key)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    secret = made.json()["token"]
    # 256 bits in base 64
    assert len(secret.removeprefix("afs_")) == 43
    again = admin.post("/v1/tokens", json=body, headers=key)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json() == {**made.json(), "token": None}
    listed = admin.get("/v1/tokens").json()["items"]
    assert listed[0]["id"] == made.json()["id"]
    assert secret not in json.dumps(listed)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    stored = b"".join(p.read_bytes() for p in tmp_path.glob("db.sqlite*"))
    assert secret.encode() not in stored
    assert tokens.digest(secret).encode() in stored
    answer = httpx.get(
        str(admin.base_url) + "/v1/campaigns",
        headers={"Authorization": f"Bearer {secret}"},
    )
    assert answer.status_code == 200


def test_each_role_may_what_the_table_says(sign):
    owner = sign("ada")
    mine = submit(owner)["links"]["self"]
    upload = {"content": b"x,y\n1,2\n"}
    asks = {
        "read": lambda c: c.get(mine),
        "upload": lambda c: c.post("/v1/files", **upload),
        "submit": lambda c: c.post("/v1/campaigns", json=tiny_worker.spec()),
        "pause another's": lambda c: c.post(f"{mine}/pause"),
        "make tokens": lambda c: c.post(
            "/v1/tokens", json={"name": "n", "user": "u", "role": "viewer"}
        ),
    }
    allowed = {
        Role.VIEWER: ["read"],
        Role.SUBMITTER: ["read", "upload", "submit"],
        Role.OPERATOR: ["read", "upload", "submit", "pause another's"],
        Role.ADMIN: list(asks),
    }
    for role, may in allowed.items():
        client = sign("bob", role)
        done = [name for name, ask in asks.items() if ask(client).is_success]
        assert done == may
        refused = [ask(client) for name, ask in asks.items() if name not in may]
        assert {answer.status_code for answer in refused} <= {403}


def test_submitters_change_their_own_campaigns_only(sign):
    ada, bob = sign("ada"), sign("bob")
    made = submit(ada)
    assert made["owner"] == "ada"
    path = made["links"]["self"]
    assert bob.get(path).json()["owner"] == "ada"
    ask = {"campaign": made["id"], "name": "n", "datasets": ["d"]}
    for answer in (
        bob.post(f"{path}/pause"),
        bob.post(f"{path}/cancel"),
        bob.delete(path),
        bob.post("/v1/inversions", json=ask),
    ):
        assert answer.status_code == 403
        assert answer.headers["content-type"] == PROBLEM
        assert "belongs to ada" in answer.json()["detail"]
    # what is missing is reported before who would own it
    assert bob.post("/v1/campaigns/none/pause").status_code == 404
    assert ada.post(f"{path}/pause").status_code == 200


def test_users_list_and_revoke_their_own_tokens(sign):
    ada, bob = sign("ada"), sign("bob", Role.VIEWER)
    (hers,) = ada.get("/v1/tokens").json()["items"]
    (his,) = bob.get("/v1/tokens").json()["items"]
    assert (hers["user"], his["user"]) == ("ada", "bob")
    assert ada.get("/v1/tokens", params={"user": "bob"}).json()["items"] == [hers]
    # a token of somebody else is as good as none
    foreign = bob.delete(f"/v1/tokens/{hers['id']}")
    none = bob.delete("/v1/tokens/none")
    assert foreign.status_code == none.status_code == 404
    assert foreign.json()["detail"].replace(hers["id"], "none") == none.json()["detail"]
    assert bob.delete(f"/v1/tokens/{his['id']}").status_code == 204
    assert bob.get("/v1/tokens").status_code == 401


def test_one_users_idempotency_key_is_not_anothers(sign):
    ada, bob = sign("ada"), sign("bob")
    key = {"Idempotency-Key": "same"}
    hers = ada.post("/v1/campaigns", json=tiny_worker.spec(), headers=key).json()
    his = bob.post("/v1/campaigns", json=tiny_worker.spec(), headers=key).json()
    assert hers["id"] != his["id"]
    assert (hers["owner"], his["owner"]) == ("ada", "bob")


def test_own_dataset_comes_before_anothers_newer_one(sign):
    ada, bob = sign("ada"), sign("bob")
    csv = "station,x_km,y_km,east,north,up\nA,0,0,1,1,1\n"
    body = {"name": "gnss", "csv": csv, "sigma": {"horizontal": 0.1, "vertical": 0.1}}
    hers = ada.post("/v1/datasets", json=body).json()
    his = bob.post("/v1/datasets", json=body).json()
    assert ada.get("/v1/datasets/gnss").json()["id"] == hers["id"]
    assert bob.get("/v1/datasets/gnss").json()["id"] == his["id"]


def test_anothers_upload_does_not_make_a_name_of_the_campaign_ambiguous(sign):
    ada, bob = sign("ada"), sign("bob")
    csv = "station,x_km,y_km,east,north,up\nA,0,0,1,1,1\nB,9,3,1,1,1\n"
    sigma = {"horizontal": 0.1, "vertical": 0.1}
    ref = ada.post("/v1/files", content=csv.encode()).json()["ref"]
    spec = tiny_worker.spec(datasets=[{"name": "gnss", "file": ref, "sigma": sigma}])
    made = ada.post("/v1/campaigns", json=spec).json()
    body = {"name": "gnss", "csv": csv.replace("1,1,1", "2,2,2"), "sigma": sigma}
    ask = {"campaign": made["id"], "name": "i", "datasets": ["gnss"]}
    assert bob.post("/v1/datasets", json=body).status_code == 201
    assert ada.post("/v1/inversions", json=ask).status_code == 201
    assert ada.post("/v1/datasets", json=body).status_code == 201
    assert ada.post("/v1/inversions", json=ask).status_code == 422


def test_greens_can_be_read_by_range_and_opened_with_a_token(sign, server):
    from afterslip.client import Client

    ada = sign("ada")
    made = submit(ada)
    viewer = sign("eve", Role.VIEWER)
    with Client(server.url, token=viewer.secret) as client:
        client.campaign(made["id"]).wait(timeout=20, inversions=False)
        opened = client.campaign(made["id"]).greens()
        assert opened["response"].isel(source=0, mode=0).values.shape
    url = f"{server.url}{made['links']['greens']}/zarr.json"
    assert httpx.get(url).status_code == 401
    part = viewer.get(url, headers={"Range": "bytes=0-9"})
    assert part.status_code == 206
    assert len(part.content) == 10
    assert "private" in part.headers["cache-control"]


def test_stream_needs_a_token_and_ends_when_it_is_revoked(
    sign, server, database, new_token, monkeypatch
):
    monkeypatch.setattr(events, "LOOK_EVERY_S", 0.1)
    ada = sign("ada")
    made = submit(ada)
    url = server.url + made["links"]["events"]
    assert httpx.get(url).status_code == 401
    token, secret = new_token("eve", Role.VIEWER)
    headers = {"Authorization": f"Bearer {secret}", "Last-Event-ID": "0"}
    lines = []
    heard, ended = threading.Event(), threading.Event()

    def listen():
        with httpx.stream("GET", url, headers=headers, timeout=20) as answer:
            for line in answer.iter_lines():
                lines.append(line)
                if line.startswith("data:"):
                    heard.set()
        ended.set()

    listener = threading.Thread(target=listen)
    listener.start()
    assert heard.wait(17)
    with database.write() as connection:
        tokens.revoke(connection, token.id)
    ada.post(f"{made['links']['self']}/cancel")
    submit(ada, "more news")
    # the stream looks before it passes the next event or heartbeat on
    ada.post(f"{made['links']['self']}/cancel")
    assert ended.wait(17)
    listener.join()
    assert any(line.startswith("data:") for line in lines)


def test_answer_written_down_for_a_key_holds_no_secret(sign, database):
    admin = sign("root", Role.ADMIN)
    body = {"name": "n", "user": "ada", "role": "viewer"}
    made = admin.post("/v1/tokens", json=body, headers={"Idempotency-Key": "k"})
    with database.read() as connection:
        (row,) = connection.execute(idempotency.select()).all()
    assert row.body["token"] is None
    assert made.json()["token"] not in json.dumps(row.body)


def test_service_without_authentication_trusts_everybody(client):
    assert client.get("/v1/campaigns").status_code == 200
    whole = client.get("/v1/session").json()
    assert whole["auth"] is False
    assert whole["role"] == "admin"
    assert client.post("/v1/session", json={"token": "x"}).status_code == 409
    assert submit(client)["owner"] is None


@pytest.mark.databases("sqlite", "postgresql")
class TestOnBothDatabases:
    def test_token_lives_until_it_expires_or_is_revoked(self, database_url):
        database = Database(database_url)
        with database.write() as connection:
            made, secret = tokens.create(
                connection, name="n", user="u", role=Role.VIEWER, expires_at=None
            )
            cookie, _ = tokens.begin_session(connection, made, 60)
            gone, _ = tokens.begin_session(connection, made, -1)
        with database.write() as connection:
            assert tokens.of_secret(connection, secret) == made
            assert tokens.of_session(connection, cookie) == made
            assert tokens.of_session(connection, gone) is None
            assert tokens.of_secret(connection, cookie) is None
            assert tokens.stale(made)
            tokens.touch(connection, made.id)
            assert not tokens.stale(tokens.get(connection, made.id))
            tokens.revoke(connection, made.id)
            assert tokens.of_secret(connection, secret) is None
            assert tokens.of_session(connection, cookie) is None
        database.close()

    def test_campaigns_survive_the_way_down_to_the_first_schema(
        self, database_url, database, new_campaign
    ):
        campaign = new_campaign()
        migrate.downgrade(database, "0001")
        migrate.upgrade(database)
        with database.read() as connection:
            assert campaigns.get(connection, campaign).owner is None
            assert len(jobs.of_campaign(connection, campaign, JobKind.MODEL)) == 1
