"""Webhooks are sent to no address inside, and no receiver holds them up."""

from __future__ import annotations

import socket
import threading
import time
from datetime import timedelta

import pytest
from receiver import HERE

from afterslip_service.engine import webhooks as rules
from afterslip_service.reconcile import outbound
from afterslip_service.reconcile.outbound import OutboundError

# what is recorded of webhooks is in test_webhooks, on both
pytestmark = pytest.mark.databases("sqlite")


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
     "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "240.0.0.1",
     "192.0.2.1", "::1", "::", "fe80::1%eth0", "fc00::1", "ff02::1",
     "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
     "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:db8::1"],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(address):
    assert "not a public address" in rules.refusal(address, [], tls=True)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "8.8.8.8"])
def test_public_addresses_are_allowed_with_tls_only(address):
    assert rules.refusal(address, [], tls=True) == ""
    assert "https://" in rules.refusal(address, [], tls=False)


def test_the_operators_networks_are_allowed_and_no_others():
    networks = ["10.1.0.0/16", "fd00::/8"]
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::1"):
        assert rules.refusal(address, networks, tls=False) == ""
    for address in ("10.2.0.1", "127.0.0.1", "fe80::1"):
        assert rules.refusal(address, networks, tls=True)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://host/", "https://"),
        ("file:///etc/passwd", "https://"),
        ("https:///path", "https://"),
        ("https://user:secret@host/", "user or password"),
        ("https://host/#part", "fragment"),
        ("https://host:99999/", "no address"),
        ("https://ho st/", "spaces"),
        ("https://host\\@inner/", "spaces"),
        ("https://hóst/", "spaces"),
        ("https://host/\r\nx: y", "spaces"),
        ("https://" + "a" * 2000, "2000"),
    ],
)
def test_what_is_no_address_of_a_webhook_is_refused(url, words):
    with pytest.raises(ValueError, match=words):
        rules.target(url)


def test_an_address_without_a_port_has_the_usual_one_of_its_scheme():
    assert rules.target("https://host/x") == rules.Target(True, "host", 443)
    assert rules.target("http://host/x") == rules.Target(False, "host", 80)
    assert rules.target("https://host:8443/").port == 8443


def test_a_signature_is_that_of_the_published_example():
    """The example of the Standard Webhooks reference libraries."""
    found = rules.signature(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_it_is_sent_again_ever_later_and_then_given_up():
    waits = [rules.wait(n, 10.0) or timedelta() for n in range(1, rules.ATTEMPTS)]
    assert [w.total_seconds() for w in waits[:4]] == [10, 40, 160, 640]
    assert max(waits) == timedelta(hours=6)
    assert timedelta(days=1) < sum(waits, timedelta()) < timedelta(days=2)
    assert rules.wait(rules.ATTEMPTS, 10.0) is None


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1/", "not a public address"),
        ("https://localhost/", "not a public address"),
        ("https://[::1]/", "not a public address"),
        ("https://2130706433/", "not a public address"),
        ("http://93.184.216.34/", "https://"),
        ("https://no-such-host.invalid/", "no address"),
        ("gopher://host/", "must begin with https://"),
    ],
)
def test_an_address_inside_is_refused_when_it_is_added(client, url, words):
    answer = client.post("/v1/webhooks", json={"url": url})
    assert answer.status_code == 422
    (problem,) = answer.json()["errors"]
    assert problem["path"] == "url"
    assert words in problem["message"]
    assert client.get("/v1/webhooks").json()["items"] == []


def test_a_name_that_leads_inside_later_is_refused_when_it_is_sent(
    client, database, monkeypatch, quick_sender
):
    """The name is judged again whenever it is looked up."""
    real = socket.getaddrinfo
    places = ["93.184.216.34"]

    def lookup(host, port, *args, **kwargs):
        if host != "rebound.example":
            return real(host, port, *args, **kwargs)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (p, port)) for p in places]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    url = "https://rebound.example/hook"
    made = client.post("/v1/webhooks", json={"url": url}).json()
    # one address that may be reached does not help another that may not
    places.append("169.254.169.254")
    client.post(f"/v1/webhooks/{made['id']}/test")
    deadline = time.monotonic() + 20
    path = f"/v1/webhooks/{made['id']}/deliveries"
    while not (found := client.get(path).json()["items"][0])["attempts"]:
        assert time.monotonic() < deadline
    assert "169.254.169.254 is not a public address" in found["error"]


def test_the_connection_goes_to_the_address_that_was_judged(receiver, monkeypatch):
    """A second look-up would lead elsewhere: there is none."""
    port = int(receiver.url.split(":")[2].split("/")[0])
    asked = []

    def lookup(host, *args, **kwargs):
        asked.append(host)
        where = "127.0.0.1" if len(asked) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (where, port))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    made = []

    def watched(address, *args, **kwargs):
        made.append(address[0])
        found = socket.socket(socket.AF_INET)
        found.settimeout(5)
        found.connect(address)
        return found

    monkeypatch.setattr(socket, "create_connection", watched)
    url = f"http://rebound.example:{port}/hook"
    assert outbound.post(url, b"{}", {}, HERE) == 204
    assert made == ["127.0.0.1"]
    assert asked == ["rebound.example"]
    ((_, headers, _),) = receiver.requests
    assert headers["host"] == f"rebound.example:{port}"


def test_proxies_of_the_environment_are_not_asked(receiver, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert outbound.post(receiver.url, b"{}", {}, HERE) == 204


def test_an_answer_that_drips_for_ever_ends_in_time(monkeypatch):
    monkeypatch.setattr(outbound, "WITHIN_S", 1.0)
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def drip():
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
            while not stop.wait(0.1):
                try:
                    connection.sendall(b"y")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    began = time.monotonic()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    try:
        with pytest.raises(OutboundError, match="no answer within 1 s"):
            outbound.post(url, b"{}", {}, HERE)
        assert time.monotonic() - began < 5.0
    finally:
        stop.set()
        thread.join()
        listener.close()


def test_an_answer_without_end_is_not_read(receiver, monkeypatch):
    """The head is enough: a body of 10 GB that never comes costs nothing."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer():
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            head = b"HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n"
            connection.sendall(head)
            connection.recv(1)

    thread = threading.Thread(target=answer)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    began = time.monotonic()
    assert outbound.post(url, b"{}", {}, HERE) == 200
    assert time.monotonic() - began < 5.0
    thread.join()
    listener.close()
