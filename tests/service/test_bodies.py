"""What hostile JSON may cost: about what its bytes cost, with a token or without."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from datetime import timedelta

import httpx
import lone_service
import pytest
import tiny_worker

from afterslip_service import clock
from afterslip_service.db import tokens
from afterslip_service.engine.access import Role
from afterslip_service.http import body as bodies
from afterslip_service.http import json_reader
from afterslip_service.http.json_reader import BodyError, TooManyValuesError
from afterslip_service.http.paths import SIGN_IN, SMALL
from afterslip_service.routes import files
from afterslip_workers import entry

# one is enough: nothing here depends on it
pytestmark = pytest.mark.databases("sqlite")

SIZE = 15 * 1024**2
JSON = {"Content-Type": "application/json"}


def filled(unit, start=b"[", end=b"]"):
    return start + unit * ((SIZE - len(start) - len(end)) // len(unit)) + end


def keys(count):
    """Return an object whose last key is its first one, given again."""
    return (
        "{" + "".join(f'"key {n}":0,' for n in range(count)) + '"key 0":1}'
    ).encode()


HOSTILE = {
    "objects": filled(b"{},", end=b"{}]"),
    "lists": filled(b"[],", end=b"[]]"),
    "texts": filled(b'"",', end=b'""]'),
    "levels": b"[" * SIZE,
    "levels of objects": filled(b'{"":', b"", b""),
    "quotes": filled(b'"', b"", b""),
    "backslashes": filled(b"\\", b'"', b'"'),
    "escapes": filled(b"\\u0041", b'"', b'"'),
    "surrogates": filled(b"\\ud83d\\ude00", b'{"name": "', b'"}'),
    "emoji": filled("\U0001f600".encode(), b'{"name": "', b'"}'),
    "digits": filled(b"9", b'{"name": ', b"}"),
    "decimals": filled(b"3", b'{"name": 0.', b"}"),
    "exponent": filled(b"9", b'{"name": 1e', b"}"),
    "spaces": filled(b" ", b"[", b""),
    "keys given twice": keys(400_000),
    "keys nobody knows": keys(400_000).replace(b'"key 0":1', b'"last":1'),
    "groups that are none": b'{"groups":[' + b'"a",' * 90_000 + b'"a"]}',
    "as many objects as allowed": b"[" + b"{}," * 240_000 + b"{}]",
}


@pytest.fixture
def token(database):
    with database.write() as connection:
        return tokens.create(
            connection,
            name="test",
            user="ada",
            role=Role.SUBMITTER,
            expires_at=clock.now() + timedelta(days=1),
        )[1]


@pytest.fixture
def lone(tmp_path, database_url):
    entry.prepare(tmp_path / "store")
    options = {"database": database_url, "store": tmp_path / "store", "auth": True}
    with lone_service.running(tmp_path, **options) as process:
        yield process


def timed(client, body, path="/v1/campaigns"):
    begin = time.perf_counter()
    answer = client.post(path, content=body, headers=JSON)
    return answer, time.perf_counter() - begin


def test_hostile_bodies_cost_about_what_their_bytes_cost(lone, token):
    headers = {"Authorization": f"Bearer {token}"}
    plain = filled(b"x", b'{"name": "', b'"}')
    with httpx.Client(base_url=lone.url, headers=headers, timeout=120) as client:
        timed(client, plain)
        answer, fair = timed(client, plain)
        assert answer.status_code == 422, answer.text
        costs = {}
        for name, body in HOSTILE.items():
            before = lone.memory()
            lone.forget_peak()
            answer, seconds = timed(client, body)
            assert answer.status_code in (400, 413, 422), (name, answer.text[:200])
            assert len(answer.text) < 100_000, name
            costs[name] = (seconds, lone.memory("VmHWM") - before)
    for name, (seconds, grown) in costs.items():
        assert seconds < 10 * fair + 1.0, (name, seconds, fair)
        assert grown < 12 * SIZE, (name, grown >> 20)


def test_nothing_is_read_without_a_token(lone):
    with httpx.Client(base_url=lone.url, timeout=120) as client:
        before = lone.memory()
        lone.forget_peak()
        for path, status in (
            ("/v1/campaigns", 401),
            ("/v1/nothing", 401),
            ("/v1/session", 413),
            ("/healthz", 413),
            ("/dashboard/app.js", 413),
        ):
            for name, body in HOSTILE.items():
                answer, seconds = timed(client, body, path)
                expected = {413, status} if len(body) < 16 * 1024**2 else {413}
                assert answer.status_code in expected, (path, name, answer.text)
                assert seconds < 2.0, (path, name)
        assert lone.memory("VmHWM") - before < 2 * SIZE
        for path in ("/", "/docs", "/healthz", "/readyz", "/openapi.json",
                     "/dashboard/app.js"):  # fmt: skip
            answer, _ = timed(client, b"[" * 60_000, path)
            assert answer.status_code == 405, path
        answer, _ = timed(
            client, b'{"token":' + b" " * SIGN_IN + b'"a"}', "/v1/session"
        )
        assert answer.status_code == 413


def test_requests_without_a_token_do_not_slow_down_others(lone, token):
    """Forty-five hostile bodies at public paths, and a request with a token."""
    body = keys(12_000)
    stop = threading.Event()

    def attack():
        with httpx.Client(base_url=lone.url, timeout=60) as client:
            while not stop.is_set():
                for path in ("/healthz", "/docs", "/v1/session"):
                    answer = client.post(path, content=body, headers=JSON)
                    assert answer.status_code in (405, 413)

    attackers = [threading.Thread(target=attack) for _ in range(3)]
    for attacker in attackers:
        attacker.start()
    try:
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=lone.url, headers=headers, timeout=60) as client:
            for _ in range(5):
                begin = time.perf_counter()
                assert client.get("/v1/campaigns").status_code == 200
                assert time.perf_counter() - begin < 5.0
    finally:
        stop.set()
        for attacker in attackers:
            attacker.join()


def test_keys_of_an_object_are_compared_in_linear_time():
    with pytest.raises(BodyError, match="'key 0' twice"):
        json_reader.read(keys(json_reader.KEYS - 1), 10**6)
    for count in (json_reader.KEYS, 400_000):
        begin = time.process_time()
        with pytest.raises(BodyError, match="more than 1,000 keys"):
            json_reader.read(keys(count), 10**6)
        # every key against every other one would take hours
        assert time.process_time() - begin < 20


def test_values_and_levels_are_counted_outside_of_texts():
    body = json.dumps({"csv": '{"[,' * 1000, 'a\\"': ["\\", '\\"', "[", 1]}).encode()
    assert json_reader.read(body, 8) == json.loads(body)
    with pytest.raises(TooManyValuesError, match="more than the 5 values"):
        json_reader.read(body, 5)
    # beyond one piece of the count
    long = json.dumps(["[" * 300_000, [[1, 2], "]" * 300_000], [[3]]]).encode()
    assert json_reader.read(long, 10) == json.loads(long)
    deep = b"[" * 64 + b"]" * 64
    assert json_reader.read(b" " * 300_000 + deep, 100) == json.loads(deep)
    with pytest.raises(BodyError, match="deeper than 64"):
        json_reader.read(b" " * 300_000 + b"[" + deep + b"]", 100)


def test_number_that_no_double_holds_is_refused():
    for number in ("1e400", "-1e400", "9" * 401, "0." + "1" * 400):
        with pytest.raises(BodyError, match=r"double|digits"):
            json_reader.read(f"[{number}]".encode(), 10)
    assert json_reader.read(b"[1e308, 123456789012345678901]", 10) == [
        1e308, 123456789012345678901
    ]  # fmt: skip


def test_only_routes_that_take_lists_take_large_bodies(client):
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    campaign = f"/v1/campaigns/{made['id']}"
    body = b'{"name": "a"' + b" " * SMALL + b"}"
    for path, status in (
        ("/v1/campaigns", 422),
        ("/v1/datasets", 422),
        ("/v1/inversions", 422),
        (f"{campaign}/sample", 422),
        (f"{campaign}/groups/retry", 422),
        (f"{campaign}/cancel", 413),
        ("/v1/tokens", 413),
        ("/v1/session", 413),
    ):
        answer = client.post(path, content=body, headers=JSON)
        assert answer.status_code == status, (path, answer.text)


def test_body_is_decoded_once(client, monkeypatch):
    body = json.dumps(tiny_worker.spec())
    decoded, decode = [], json.loads

    def counted(text, **options):
        if len(text) == len(body):
            decoded.append(text)
        return decode(text, **options)

    monkeypatch.setattr(json, "loads", counted)
    answer = client.post("/v1/campaigns", content=body, headers=JSON)
    assert answer.status_code == 201, answer.text
    assert decoded == [body]


def send_slowly(url, token, size, path="/v1/campaigns"):
    """Begin to send a large body, and return the connection."""
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {size}\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    connection.sendall(head.encode() + b'{"name":')
    return connection


def test_one_token_cannot_take_all_the_room_for_large_bodies(
    serve, database, token, monkeypatch
):
    monkeypatch.setattr(bodies, "WAIT_S", 1.0)
    server = serve(auth=True, large_bodies=2)
    with database.write() as connection:
        end = clock.now() + timedelta(days=1)
        other = tokens.create(
            connection, name="b", user="bob", role=Role.SUBMITTER, expires_at=end
        )[1]
    large = b'{"name": "' + b"x" * (2 * SMALL) + b'"}'

    def submit(secret, body=large):
        headers = {**JSON, "Authorization": f"Bearer {secret}"}
        return httpx.post(server.url + "/v1/campaigns", content=body, headers=headers)

    with send_slowly(server.url, token, 10**6):
        time.sleep(0.3)
        answer = submit(token)
        assert answer.status_code == 503, answer.text
        assert answer.headers["retry-after"] == "1"
        assert "other large bodies" in answer.json()["detail"]
        # small ones pass, and so do others
        assert submit(token, b"{}").status_code == 422
        assert submit(other).status_code == 422
        with send_slowly(server.url, other, 10**6):
            time.sleep(0.3)
            answer = submit(other)
            assert answer.status_code == 503
    deadline = time.monotonic() + 10
    while submit(token).status_code == 503:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    for _ in range(5):
        assert submit(token).status_code == 422
        assert submit(other).status_code == 422


def test_body_that_does_not_arrive_is_not_waited_for(serve, token, monkeypatch):
    monkeypatch.setattr(bodies, "READ_S", 0.5)
    server = serve(auth=True)
    with send_slowly(server.url, token, 1000) as connection:
        connection.settimeout(10)
        assert b" 408 " in connection.recv(4096).split(b"\r\n")[0]


def rest(connection):
    """Return what comes until the server closes, or all of an answer is there."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while b"}" not in found and (more := connection.recv(4096)):
            found += more
    return found


def test_upload_that_stops_is_not_waited_for(serve, token, monkeypatch):
    monkeypatch.setattr(files, "IDLE_S", 0.5)
    server = serve(auth=True)
    with send_slowly(server.url, token, 1000, "/v1/files") as connection:
        connection.settimeout(20)
        answer = rest(connection)
    assert b" 408 " in answer.split(b"\r\n")[0]
    assert b"stopped arriving for 0.5 s" in answer


def test_upload_that_trickles_is_not_waited_for(serve, token, monkeypatch):
    monkeypatch.setattr(files, "IDLE_S", 2.0)
    server = serve(auth=True)
    with send_slowly(server.url, token, 1000, "/v1/files") as connection:
        connection.settimeout(0.1)
        answer, end = b"", time.monotonic() + 30
        while not answer and time.monotonic() < end:
            # never idle for long, but ten bytes a second
            with contextlib.suppress(TimeoutError):
                answer = connection.recv(4096)
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"x")
        connection.settimeout(20)
        if b"}" not in answer:
            answer += rest(connection)
    assert b" 408 " in answer.split(b"\r\n")[0]
    assert b"less than 10 kB/s" in answer


def test_slow_upload_above_the_least_rate_is_stored(serve, token, monkeypatch):
    """The whole takes longer than a pause may; each pause is far shorter.

    A busy machine may stretch a pause sixfold before the server gives up.
    """
    monkeypatch.setattr(files, "IDLE_S", 2.0)
    monkeypatch.setattr(files, "LEAST_RATE", 1.0)

    def parts():
        for _ in range(8):
            time.sleep(0.3)
            yield b"x,y\n"

    server = serve(auth=True)
    headers = {"Authorization": f"Bearer {token}"}
    url = server.url + "/v1/files"
    answer = httpx.post(url, content=parts(), headers=headers, timeout=20)
    assert answer.status_code == 201
    assert answer.json()["size"] == 32
