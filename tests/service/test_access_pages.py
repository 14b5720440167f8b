"""Sessions, headers, the first token, and what the logs keep to themselves."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import httpx
import pytest
import structlog
import tiny_worker

from afterslip.cli.main import main
from afterslip.client import Client
from afterslip.client.credentials import resolve
from afterslip.client.errors import ApiError, CredentialError
from afterslip_service import logs
from afterslip_service.db import tokens
from afterslip_service.engine.access import Role
from afterslip_service.settings import Settings, check_bind

# one is enough: nothing here depends on it
pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
def secret(database):
    with database.write() as connection:
        return tokens.create(
            connection, name="t", user="ada", role=Role.ADMIN, expires_at=None
        )[1]


def test_cookie_changes_something_only_with_the_proof_of_the_page(serve, secret):
    server = serve(auth=True)
    with httpx.Client(base_url=server.url) as page:
        assert page.get("/v1/session").json()["user"] is None
        wrong = page.post("/v1/session", json={"token": "afs_wrong"})
        assert wrong.status_code == 401
        assert "set-cookie" not in wrong.headers
        signed = page.post("/v1/session", json={"token": secret})
        cookie = signed.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert signed.json()["csrf"] not in cookie
        assert page.get("/v1/session").json()["user"] == "ada"
        assert page.get("/v1/campaigns").status_code == 200
        proof = {"X-CSRF-Token": signed.json()["csrf"]}
        for headers in ({}, {"X-CSRF-Token": "guess"}):
            forged = page.post(
                "/v1/campaigns", json=tiny_worker.spec(), headers=headers
            )
            assert forged.status_code == 403
        done = page.post("/v1/campaigns", json=tiny_worker.spec(), headers=proof)
        assert done.status_code == 201
        assert page.delete("/v1/session").status_code == 403
        cookies_of_page = dict(page.cookies)
        assert page.delete("/v1/session", headers=proof).status_code == 204
        assert not page.cookies
        # the cookie itself is worthless now, not only forgotten
        stolen = httpx.get(server.url + "/v1/campaigns", cookies=cookies_of_page)
        assert stolen.status_code == 401


def test_cookie_over_tls_is_for_tls_only(serve, secret, monkeypatch):
    # as a TLS proxy on this machine would have it
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "127.0.0.1")
    server = serve(auth=True)
    answer = httpx.post(
        server.url + "/v1/session",
        json={"token": secret},
        headers={"X-Forwarded-Proto": "https"},
    )
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-afterslip_session=")
    assert "Secure" in cookie
    assert "max-age=" in answer.headers["strict-transport-security"]


def test_every_answer_has_the_headers_of_a_careful_server(client, monkeypatch):
    answers = [
        client.get(path)
        for path in ("/", "/docs", "/v1/campaigns", "/v1/nothing", "/dashboard/app.js")
    ]
    answers.append(client.get("/v1/campaigns", headers={"Host": "evil.example"}))
    for answer in answers:
        headers = answer.headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert "server" not in headers
    assert "frame-ancestors 'none'" in answers[0].headers["content-security-policy"]
    assert "script-src" not in answers[1].headers["content-security-policy"]
    assert "default-src 'none'" in answers[1].headers["content-security-policy"]


def test_reference_lists_every_operation_and_no_script(client):
    text = client.get("/docs").text
    assert "<script" not in text
    for path, item in client.get("/openapi.json").json()["paths"].items():
        for method in item:
            assert f"{method.upper()} {path}<" in text


def test_readiness_says_only_whether_without_a_token(serve, secret):
    server = serve(auth=True)
    url = server.url + "/readyz"
    report = httpx.get(url, headers={"Authorization": f"Bearer {secret}"}).json()
    assert report["parts"]["database"]["detail"]
    for headers in ({}, {"Authorization": "Bearer afs_wrong"}):
        parts = httpx.get(url, headers=headers).json()["parts"]
        assert {part["detail"] for part in parts.values()} == {""}


def test_authentication_opens_other_addresses():
    check_bind("0.0.0.0", auth=True)


def test_certificate_without_its_key_is_refused(tmp_path):
    with pytest.raises(ValueError, match="belong together"):
        Settings(tls_certificate=tmp_path / "cert.pem")


def test_logs_keep_tokens_to_themselves(secret):
    stream = io.StringIO()
    logs.configure(stream=stream)
    try:
        log = structlog.get_logger()
        log.info(f"a request with {secret}", header=f"Bearer {secret[:9]}", n=1)
        try:
            raise ValueError(secret)
        except ValueError:
            log.exception("failed")
    finally:
        logs.configure(level=40)
    assert secret not in stream.getvalue()
    assert secret[:9] not in stream.getvalue()
    assert "n=1" in stream.getvalue()


def command(capsys, *args):
    with pytest.raises(SystemExit) as ended:
        main(list(args))
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def test_first_admin_token_comes_from_the_database(
    serve, database_url, tmp_path, capsys
):
    path = tmp_path / "token"
    code, _, err = command(
        capsys, "token", "create", "first", "--user", "root", "--role", "admin",
        "--database", database_url, "--out", str(path),
    )  # fmt: skip
    assert code == 0, err
    assert path.stat().st_mode & 0o777 == 0o600
    server = serve(auth=True)
    there = ["--server", server.url, "--token", f"@{path}"]
    code, out, err = command(
        capsys, "token", "create", "hers", "--user", "ada", "--role", "viewer", *there
    )
    assert code == 0, err
    hers = out.strip()
    with Client(server.url, token=hers) as client:
        assert client.campaigns() == []
        with pytest.raises(ApiError) as refused:
            client.submit(tiny_worker.spec())
        assert refused.value.status == 403
        assert refused.value.exit_code == 2
    identity = err.partition(":")[0]
    assert command(capsys, "token", "revoke", identity, *there)[0] == 0
    code, out, _ = command(capsys, "token", "list", "--json", *there)
    assert [item["user"] for item in json.loads(out)] == ["ada", "root"]
    with Client(server.url, token=hers) as client, pytest.raises(ApiError):
        client.campaigns()


def test_token_file_that_others_may_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "token"
    path.write_text("afs_x\n")
    path.chmod(0o644)
    with pytest.raises(CredentialError, match="chmod 600"):
        resolve(f"@{path}")
    path.chmod(0o600)
    assert resolve(f"@{path}") == "afs_x"
    monkeypatch.setenv("AFTERSLIP_TOKEN_FILE", str(path))
    assert resolve(None) == "afs_x"
    assert resolve("afs_y") == "afs_y"
    path.write_text("two words\n")
    with pytest.raises(CredentialError, match="one word"):
        resolve(None)


def test_key_of_an_upload_is_not_another_uploads(client):
    key = {"Idempotency-Key": "k"}
    first = client.post("/v1/files", content=b"one", headers=key)
    again = client.post("/v1/files", content=b"one", headers=key)
    other = client.post("/v1/files", content=b"two", headers=key)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert other.status_code == 422


def test_workers_are_paged(client):
    first = client.get("/v1/workers", params={"limit": 1}).json()
    assert len(first["items"]) == 1
    rest = client.get("/v1/workers", params={"cursor": first["next"]}).json()
    assert rest == {"items": [], "next": None}


def test_serve_refuses_the_network_without_authentication():
    done = subprocess.run(
        [sys.executable, "-m", "afterslip.cli.main", "serve", "--host", "0.0.0.0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "AFTERSLIP_AUTH=on" in done.stderr
