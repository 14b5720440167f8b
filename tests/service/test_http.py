"""What the server answers whatever was asked."""

from __future__ import annotations

import errno
import os
import socket
import time

import lone_service
import pytest
import structlog
import tiny_worker
from sqlalchemy.exc import OperationalError

from afterslip_service.db import campaigns
from afterslip_service.errors import BindRefusedError
from afterslip_service.http.deps import encode_cursor
from afterslip_service.http.meanings import EXAMPLES
from afterslip_service.routes import health
from afterslip_service.settings import check_bind
from afterslip_workers import entry

# one is enough: nothing here depends on it
pytestmark = pytest.mark.databases("sqlite")

PROBLEM = "application/problem+json"
# the cursor of a group beyond what a database counts
HUGE = encode_cursor("9" * 40)


def test_unknown_path_and_method_are_problems(client):
    for answer, status in (
        (client.get("/v1/nothing"), 404),
        (client.get("/v1/campaigns/none"), 404),
        (client.put("/v1/campaigns"), 405),
        (client.get("/v1/campaigns", params={"limit": 0}), 422),
        (client.get("/v1/campaigns", params={"state": "asleep"}), 422),
        (client.get("/v1/campaigns", params={"cursor": "%%%"}), 422),
        (client.get("/v1/campaigns/none/groups", params={"cursor": HUGE}), 422),
    ):
        assert answer.status_code == status
        assert answer.headers["content-type"] == PROBLEM
        problem = answer.json()
        assert problem["status"] == status
        assert problem["title"]
        assert problem["detail"]
        assert problem["instance"].startswith("/v1/")


def test_body_that_is_too_large_is_refused_before_it_is_read(serve):
    import httpx

    server = serve(max_body=2000, max_upload=3000)
    with httpx.Client(base_url=server.url) as client:
        declared = client.post("/v1/campaigns", content=b"x" * 4000)
        streamed = client.post("/v1/files", content=iter([b"x" * 2000] * 3))
        fine = client.post("/v1/files", content=b"x" * 2500)
    for answer in (declared, streamed):
        assert answer.status_code == 413
        assert answer.headers["content-type"] == PROBLEM
    assert fine.status_code == 201


def test_error_that_nobody_foresaw_is_a_problem_without_particulars(
    client, monkeypatch
):
    def break_down(*_args, **_kwargs):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(campaigns, "page", break_down)
    answer = client.get("/v1/campaigns")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == PROBLEM
    assert "secret" not in answer.text


def test_database_that_is_away_is_said_so(client, monkeypatch):
    def away(*_args, **_kwargs):
        raise OperationalError("SELECT", {}, Exception("gone"))

    monkeypatch.setattr(campaigns, "page", away)
    answer = client.get("/v1/campaigns")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"


def test_foreign_host_names_and_origins_are_turned_away(client):
    rebound = client.get("/v1/campaigns", headers={"Host": "evil.example"})
    assert rebound.status_code == 421
    foreign = client.post(
        "/v1/campaigns",
        json=tiny_worker.spec(),
        headers={"Origin": "https://evil.example"},
    )
    assert foreign.status_code == 403
    own = client.post(
        "/v1/campaigns",
        json=tiny_worker.spec(),
        headers={"Origin": client.server.url},
    )
    assert own.status_code == 201


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org", ""])
def test_listening_on_the_network_is_refused(host):
    with pytest.raises(BindRefusedError, match="no authentication"):
        check_bind(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_listening_on_loopback_is_fine(host):
    check_bind(host)


def test_health_and_readiness_name_each_part(client, settings, monkeypatch):
    assert client.get("/healthz").json() == {"status": "alive"}
    for _ in range(100):
        answer = client.get("/readyz")
        if answer.status_code == 200:
            break
    parts = answer.json()["parts"]
    assert set(parts) == {"database", "store", "dispatcher", "placement"}
    assert all(part["ok"] for part in parts.values())
    settings.store.rename(settings.store.with_name("gone"))
    log = structlog.testing.CapturingLogger()
    monkeypatch.setattr(health, "log", log)
    for _ in range(3):
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert not answer.json()["parts"]["store"]["ok"]
    settings.store.with_name("gone").rename(settings.store)
    assert client.get("/readyz").status_code == 200
    # why it was not ready is in the log, once
    assert [call.args for call in log.calls] == [("not ready",), ("ready again",)]
    assert "cannot be written" in log.calls[0].kwargs["store"]


def test_workers_are_listed(client):
    (worker,) = client.get("/v1/workers").json()["items"]
    assert worker["slots"] == 2


def test_openapi_describes_the_spec_and_the_problems(client):
    api = client.get("/openapi.json").json()
    schemas = api["components"]["schemas"]
    assert "viscosity" in str(schemas)
    post = api["paths"]["/v1/campaigns"]["post"]
    body = post["requestBody"]["content"]["application/json"]["schema"]
    assert body["$ref"] == "#/components/schemas/CampaignSpec"
    assert PROBLEM in post["responses"]["422"]["content"]
    text = str(api)
    for name in (
        part.split("'")[0] for part in text.split("#/components/schemas/")[1:]
    ):
        assert name in schemas, name


def test_openapi_says_what_every_answer_is(client):
    """A generator makes nothing of an answer that is left open."""
    api = client.get("/openapi.json").json()
    schemas = api["components"]["schemas"]
    for path, item in api["paths"].items():
        for method, operation in item.items():
            for status, answer in operation["responses"].items():
                if status[0] == "2" and status != "204":
                    assert answer["content"], (method, path, status)
                    assert all(c["schema"] for c in answer["content"].values()), path
            for content in operation.get("requestBody", {}).get("content", {}).values():
                assert "$ref" not in content["schema"] or len(content["schema"]) == 1
    for name in ("ProgressResponse", "Problem", "Finding", "GroupResponse"):
        assert set(schemas[name]["required"]) == set(schemas[name]["properties"])
    # what is sent to the service has defaults
    assert "solver" not in schemas["ViscoelasticCampaign"]["required"]
    assert "HTTPValidationError" not in schemas


def test_every_field_of_openapi_says_what_it_means(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    silent = [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, value in schema.get("properties", {}).items()
        if not value.get("description")
    ]
    assert silent == []
    # generators of clients make one class of each title
    titles = [schema["title"] for schema in schemas.values() if "title" in schema]
    assert sorted(titles) == sorted(set(titles))


def test_examples_of_openapi_are_taken_as_they_are(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    examples = {n: s["examples"][0] for n, s in schemas.items() if "examples" in s}
    assert set(examples) == set(EXAMPLES)
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()["id"]
    (spec,) = (value for value in examples.values() if "model" in value)
    assert client.post("/v1/plan", json=spec).status_code == 200
    data = examples["DatasetRequest"]
    assert client.post("/v1/datasets", json=data).status_code == 201
    request = examples["InversionRequest"] | {"campaign": made}
    answer = client.post("/v1/inversions", json=request)
    assert answer.status_code in (201, 202), answer.text


def test_page_is_served_with_a_policy(client):
    answer = client.get("/")
    assert answer.status_code == 200
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("header", ["Host", "Origin"])
def test_malformed_host_or_origin_is_refused(client, header):
    for value in ("[::1", "http://[::1", "[zz]"):
        answer = client.post("/v1/campaigns", headers={header: value}, json={})
        assert answer.status_code in (400, 403, 421), (value, answer.text)
        assert answer.headers["content-type"] == PROBLEM


def test_control_characters_in_a_path_are_refused(client):
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    for path in ("/v1/campaigns%0a", f"/v1/campaigns/{made['id']}%0A", "/healthz%0d",
                 "/v1/campaigns/%7f", "/dashboard/app.js%0a"):  # fmt: skip
        answer = client.get(path)
        assert answer.status_code == 400, (path, answer.text)
        assert "control character" in answer.json()["detail"]


def test_upload_into_a_full_or_missing_store_says_so(client, settings, monkeypatch):
    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "files")

    with monkeypatch.context() as patch:
        patch.setattr(entry, "keep_file", full)
        answer = client.post("/v1/files", content=b"x,y\n1,2\n")
    assert answer.status_code == 507, answer.text
    assert answer.headers["content-type"] == PROBLEM
    assert "space" in answer.json()["detail"]
    away = settings.store.with_name("away")
    settings.store.rename(away)
    try:
        answer = client.post("/v1/files", content=b"x,y\n1,2\n")
    finally:
        away.rename(settings.store)
    assert answer.status_code == 503, answer.text
    assert answer.headers["retry-after"] == "5"
    assert client.post("/v1/files", content=b"x,y\n1,2\n").status_code == 201


def test_client_that_leaves_is_no_fault_of_the_service(
    tmp_path, database_url, settings
):
    options = {"database": database_url, "store": settings.store}
    with lone_service.running(tmp_path, **options) as lone:
        host, port = lone.url.removeprefix("http://").split(":")
        for path in ("/v1/files", "/v1/campaigns"):
            head = (
                f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100000\r\n"
                "Content-Type: application/json\r\n\r\n"
            )
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(head.encode() + b"x" * 1000)
                time.sleep(0.3)
        deadline = time.monotonic() + 10
        while lone.log.count("path='/v1/") < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        lines = [line for line in lone.log.splitlines() if "path='/v1/" in line]
    assert len(lines) == 2, lone.log
    assert all("status=499" in line for line in lines), lines
    assert "Traceback" not in lone.log


def test_a_form_is_no_file(client):
    answer = client.post("/v1/files", files={"file": ("offsets.csv", b"station,lon\n")})
    assert answer.status_code == 415
    detail = answer.json()["detail"]
    assert "multipart/form-data is a form" in detail
    assert "curl --data-binary @FILE" in detail
    # what curl calls a body that it was given as it is
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/v1/files", content=b"x", headers=kind).status_code == 201


def test_a_wrong_query_or_body_is_refused_in_plain_words(client):
    for path, words in (
        ("/v1/campaigns?state=nonsense", "query.state: must be 'waiting', "),
        ("/v1/campaigns?limit=many", "query.limit: must be a whole number"),
    ):
        detail = client.get(path).json()["detail"]
        assert detail.startswith(words)
        assert "Input" not in detail
    body = {"priority": "high", "foo": 1}
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()["id"]
    answer = client.patch(f"/v1/campaigns/{made}", json=body)
    assert answer.status_code == 422
    said = {item["path"]: item["message"] for item in answer.json()["errors"]}
    assert said == {"priority": "must be a whole number", "foo": "is not a known key"}


def test_a_data_set_without_places_names_both_kinds(client):
    content = b"station,x,y,east,north,up\nA,0,0,1,1,1\n"
    ref = client.post("/v1/files", content=content).json()["ref"]
    answer = client.post("/v1/datasets", json={"name": "gnss", "file": ref})
    assert answer.status_code == 422
    assert "neither the columns lon and lat nor x_km" in answer.json()["detail"]
