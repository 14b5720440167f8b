"""Requests that no client library sends are answered, never with a fault or a hang."""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import socket
import time

import pytest
import tiny_worker
from anyio import open_file  # noqa: F401 in a request's thread its import may fail
from hypothesis import given
from hypothesis import strategies as st
from mutation import examples

from afterslip_service.http import problems, request_id

# one is enough: nothing here depends on it
pytestmark = pytest.mark.databases("sqlite")

# longer than any answer takes on a busy machine; then it is a hang
PATIENCE_S = 30


class Record:
    """Takes the place of a module's log."""

    def __init__(self):
        self.requests, self.errors = [], []

    def info(self, event, **values):
        self.requests.append(values)

    def error(self, event, **values):
        self.errors.append((event, values))

    warning = debug = info


@pytest.fixture
def record(monkeypatch):
    made = Record()
    monkeypatch.setattr(request_id, "log", made)
    monkeypatch.setattr(problems, "log", made)
    return made


@pytest.fixture
def service(record, client, wait_for):
    """A service with one complete campaign: its port, and the campaign's path."""
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    shown = wait_for(made["id"], "complete")
    return client.server.port, shown["links"]


def exchange(port, sent, hang_up):
    """Send bytes, and return the status; None where nobody waits for an answer."""
    address = ("127.0.0.1", port)
    with socket.create_connection(address, timeout=PATIENCE_S) as connection:
        # a service that refuses early may close before everything is sent
        with contextlib.suppress(ConnectionError):
            connection.sendall(sent)
        if hang_up:
            return None
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while b"\r\n" not in answer:
                more = connection.recv(4096)
                if not more:
                    break
                answer += more
        # the rest of a streamed answer is left unread
        return int(answer.split()[1]) if answer else 0


def check(service, record, sent, hang_up=False):
    port, _ = service
    status = exchange(port, sent, hang_up)
    assert not record.errors, (record.errors, sent[:500])
    if hang_up:
        time.sleep(0.02)
    else:
        assert status is not None
        # 505: a version of HTTP that the server does not speak
        assert status < 500 or status == 505, (status, sent[:500])
    faults = [r for r in record.requests if r.get("status", 0) >= 500]
    assert not faults, (faults, sent[:500])
    assert not record.errors, (record.errors, sent[:500])
    return status


def request(method, path, headers, body=b""):
    lines = [f"{method} ".encode() + path + b" HTTP/1.1"]
    names = {name.lower() for name, _ in headers}
    if "host" not in names:
        lines.append(b"Host: 127.0.0.1")
    if body and "content-length" not in names:
        lines.append(b"Content-Length: %d" % len(body))
    lines += [name.encode() + b": " + value for name, value in headers]
    return b"\r\n".join([*lines, b"Connection: close", b"", body])


word = st.text(
    st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=12
)
latin = word.map(lambda text: text.encode("latin-1"))
VALUES = {
    "Host": (b"[::1", b"[zz]", b"", b"127.0.0.1:99999", b"127.0.0.1:x", b"a@127.0.0.1",
             b"http://[::1", b"[::1]:80", b"\xff", b"localhost,localhost", b"%5b", b":",
             b"127.0.0.1#", b"[fe80::1%25eth0]", b"x" * 5000),
    "Origin": (b"null", b"http://[::1", b"http://", b"://", b"http://a:b", b"\xff"),
    "Content-Type": (b"", b"application/json; charset=utf-99", b";", b"a/b/c",
                     b"multipart/form-data", b"application/json;" + b"a=b;" * 500),
    "Content-Encoding": (b"gzip", b"identity", b"br, gzip", b"\xff"),
    "Transfer-Encoding": (b"gzip", b"identity"),
    "Range": (b"bytes=0-", b"bytes=-0", b"bytes=-99999999999999999999", b"bytes=5-1",
              b"bytes=0-0,1-1", b"bytes=" + b"9" * 5000 + b"-", b"lines=1-2",
              b"bytes=a-b", b"bytes=0-18446744073709551616", b"bytes=--1",
              b"bytes=\xb2-"),
    "If-Match": (b"*", b'"', b'""', b'W/"1"', b'"' + b"9" * 5000 + b'"', b'"-1"', b"1"),
    "If-None-Match": (b"*", b'"', b'W/"', b'"a", "b"'),
    "If-Modified-Since": (b"yesterday", b"Thu, 01 Jan 99999 00:00:00 GMT"),
    "Idempotency-Key": (b"", b"a" * 5000, b"\xff", b"a b", b"%00"),
    "Last-Event-ID": (b"-1", b"nan", b"9" * 40, b"9223372036854775808", b"1e9",
                      b"\xb2", b""),
    "Accept-Encoding": (b"gzip;q=nan", b"*;q=0", b"identity;q=0", b",,,", b"\xff"),
    "Accept": (b"*", b"text/html;q=x", b"/", b"\xff"),
    "Authorization": (b"", b"Bearer", b"Bearer \xff", b"Basic ==",
                      b"Bearer " + b"a" * 5000),
    "Cookie": (b"=", b"a", b"session=\xff", b";" * 5000),
    "X-Forwarded-For": (b"x", b"::1", b"\xff", b"1.2.3.4, 5.6.7.8"),
    "X-Request-ID": (b"\xff", b"a" * 5000, b""),
    "Content-Length": (b"-1", b"abc", b"1_0", b"+5", b"99999999999999999999", b"\xb2"),
}  # fmt: skip
header = st.sampled_from(sorted(VALUES)).flatmap(
    lambda name: st.tuples(st.just(name), st.sampled_from(VALUES[name]) | latin)
)


def paths(links):
    here, greens = links["self"].encode(), links["greens"].encode()
    return [
        ("GET", b"/healthz"), ("GET", b"/readyz"), ("GET", b"/v1/campaigns"),
        ("GET", here), ("GET", here + b"/events"), ("GET", here + b"/groups"),
        ("GET", b"/v1/events"), ("GET", greens + b"/zarr.json"), ("GET", b"/"),
        ("GET", greens + b"/response/zarr.json"), ("PATCH", here),
        ("POST", b"/v1/files"), ("POST", b"/v1/campaigns"), ("POST",
        here + b"/sample"), ("POST", b"/v1/session"),
        ("GET", b"/openapi.json"), ("OPTIONS", b"*"), ("GET", b"/metrics"),
    ]  # fmt: skip


def test_odd_headers(service, record):
    _, links = service

    @examples(25)
    @given(st.sampled_from(paths(links)), st.lists(header, min_size=1, max_size=3))
    def fuzz(operation, headers):
        method, path = operation
        body = b"{}" if method in {"POST", "PATCH"} else b""
        # a body that never comes, or never ends, is awaited: that is no hang
        waits = {"content-length", "transfer-encoding"}
        left = any(name.lower() in waits for name, _ in headers)
        check(service, record, request(method, path, headers, body), left)

    fuzz()


def encoded(text):
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=")


CURSORS = (
    *map(encoded, ("9" * 40, "9" * 4400, "-1", "9223372036854775808", "1e9", "²", "\0",
                   "", "nan")),
    b"%00", b"=", b"====", b"%ff", b"A" * 9000, b"a", b"+/+/",
)  # fmt: skip
cursors = (
    st.integers().map(lambda n: encoded(str(n)))
    | st.text(max_size=8).map(encoded)
    | st.binary(max_size=12).map(base64.urlsafe_b64encode)
)


def test_odd_cursors(service, record):
    here = service[1]["self"].encode()
    lists = [here + b"/groups", here + b"/inversions", b"/v1/campaigns",
        b"/v1/datasets",
             b"/v1/tokens", b"/v1/usage"]  # fmt: skip

    for path in lists:
        for cursor in CURSORS:
            target = path + b"?cursor=" + cursor
            check(service, record, request("GET", target, []))

    @examples(15)
    @given(st.sampled_from(lists), cursors, st.sampled_from((b"", b"0", b"2")))
    def fuzz(path, cursor, limit):
        query = b"?cursor=" + cursor + (b"&limit=" + limit if limit else b"")
        check(service, record, request("GET", path + query, []))

    fuzz()


NUMBERS = (
     "1e154", "1e308", "1e400", "-1e308", "-0", "-0.0", "9223372036854775807",
     "9223372036854775808", "18446744073709551616", "5e-324", "1e-310", "0.1e-9999",
     "1E+5", "99999999999999999999999999", "0", "-1", "180", "1e5",
)  # fmt: skip


FAR = [number for number in NUMBERS if abs(float(number)) > 1e6]


def placed(data, path=()):
    items = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    return [path, *(p for key, value in items for p in placed(value, (*path, key)))]


@st.composite
def numbered(draw, body):
    """Draw a body's text with one to three of its values replaced by odd numbers."""
    changed = copy.deepcopy(body)
    marks = {}
    for n in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([p for p in placed(changed) if p]))
        here = changed
        for key in path[:-1]:
            here = here[key]
        here[path[-1]] = f"mark {n}"
        marks[f'"mark {n}"'] = draw(st.sampled_from(NUMBERS))
    text = json.dumps(changed)
    for mark, number in marks.items():
        text = text.replace(mark, number)
    return text.encode()


def test_odd_numbers(service, record):
    here = service[1]["self"].encode()
    sample = {"stations": [{"name": "A", "x_km": 1.0, "y_km": 2.0}], "times": ["0 d"]}
    kind = [("Content-Type", b"application/json")]

    def send(method, path, body):
        return check(service, record, request(method, path, kind, body))

    text = json.dumps(sample)
    # what the tiny worker stores has no surface: only places that are refused unread
    for value in ("1.0", "2.0", '"0 d"', text):
        for number in FAR:
            body = text.replace(value, number).encode()
            assert send("POST", here + b"/sample", body) in {400, 422}
    bodies = [
        ("POST", b"/v1/campaigns", tiny_worker.spec()),
        ("PATCH", here, {"priority": 1, "name": "a"}),
        ("POST", here + b"/inversions", {"smoothing": 1.0, "datasets": ["a"]}),
    ]  # fmt: skip

    @examples(30)
    @given(st.sampled_from(bodies).flatmap(
        lambda b: st.tuples(st.just(b[0]), st.just(b[1]), numbered(b[2]))))  # fmt: skip
    def fuzz(made):
        send(*made)

    fuzz()


parts = st.sampled_from(
    (b"%0a", b"%00", b"%0d%0a", b"..", b".", b"%2e%2e", b"%2f", b"//", b"\\", b"%",
    b"%zz",
     b"%ff", b"%ed%a0%80", b"a" * 20_000, b";", b"?", b"#", b"*", b"%25", b"%7f",
     b"\xff",
     b"9" * 400, b"-1", b"campaigns", b"v1", b"c", b"zarr.json")
)  # fmt: skip


def test_odd_paths(service, record):
    known = [path for _, path in paths(service[1])]

    @examples(20)
    @given(
        st.sampled_from(known),
        st.lists(parts, min_size=1, max_size=3),
        st.sampled_from(("GET", "HEAD", "POST", "DELETE", "TRACE", "CONNECT", "get")),
        st.booleans(),
    )
    def fuzz(path, odd, method, joined):
        target = path + (b"/" if joined else b"") + b"/".join(odd)
        check(service, record, request(method, target, []))

    fuzz()


def test_clients_that_hang_up(service, record):
    spec = json.dumps(tiny_worker.spec()).encode()
    kind = [("Content-Type", b"application/json")]
    _, links = service
    whole = [
        request(method, path, kind if body else [], body)
        for method, path in paths(links)
        for body in [{"/v1/campaigns": spec}.get(path.decode(), b"x" * 5000)
                     if method in {"POST", "PATCH"} else b""]
    ]  # fmt: skip

    @examples(15)
    @given(st.sampled_from(whole), st.floats(0.0, 1.0))
    def fuzz(sent, part):
        check(service, record, sent[: int(len(sent) * part)], hang_up=True)

    fuzz()
    # what was under way has ended: none of it was a fault
    time.sleep(1.0)
    check(service, record, request("GET", b"/healthz", []))
