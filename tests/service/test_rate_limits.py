"""How often a token and an address may ask."""

from __future__ import annotations

from types import SimpleNamespace

import httpx
import pytest

from afterslip_service.engine.buckets import Buckets
from afterslip_service.http import access

# one is enough: nothing here depends on it
pytestmark = pytest.mark.databases("sqlite")

PROBLEM = "application/problem+json"


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still: however slow the machine is, no bucket fills."""
    stopped = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(access, "time", SimpleNamespace(monotonic=lambda: stopped.now))
    return stopped


def ask(server, secret):
    headers = {"Authorization": f"Bearer {secret}"}
    return httpx.get(server.url + "/v1/workers", headers=headers)


def test_flood_of_one_token_is_slowed_with_a_time_to_come_back(serve, new_token, clock):
    server = serve(auth=True, rate=0.01, rate_burst=5)
    _, loud = new_token("loud")
    _, calm = new_token("calm")

    answers = [ask(server, loud) for _ in range(7)]
    assert [a.status_code for a in answers[:5]] == [200] * 5
    assert answers[0].headers["ratelimit"].startswith('"default";r=4;')
    assert answers[-1].status_code == 429
    assert answers[-1].headers["content-type"] == PROBLEM
    # one request in 100 s
    assert answers[-1].headers["retry-after"] == "100"
    assert ask(server, calm).status_code == 200
    clock.now += 99
    assert ask(server, loud).status_code == 429
    clock.now += 1
    assert ask(server, loud).status_code == 200
    assert ask(server, loud).status_code == 429


def test_address_that_tries_many_tokens_is_stopped_but_shuts_nobody_out(
    serve, new_token, clock
):
    server = serve(auth=True)
    _, ada = new_token("ada")
    assert ask(server, ada).status_code == 200
    with httpx.Client(base_url=server.url) as anonymous:
        statuses = [
            anonymous.get(
                "/v1/workers", headers={"Authorization": f"Bearer afs_{n:043}"}
            ).status_code
            for n in range(45)
        ]
    assert statuses == [401] * 30 + [429] * 15
    assert ask(server, ada).status_code == 200
    # also who was never here before, and signs in
    _, bob = new_token("bob")
    assert ask(server, bob).status_code == 200
    answer = httpx.post(server.url + "/v1/session", json={"token": bob})
    assert answer.status_code == 200
    wrong = {"token": f"afs_{0:043}"}
    answer = httpx.post(server.url + "/v1/session", json=wrong)
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "1"
    clock.now += 1
    answer = httpx.post(server.url + "/v1/session", json=wrong)
    assert answer.status_code != 429


@pytest.mark.parametrize("trusted", [None, "127.0.0.1"])
def test_only_a_proxy_that_is_named_says_who_the_sender_is(
    serve, monkeypatch, clock, trusted
):
    if trusted is None:
        monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    else:
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    server = serve(auth=True)
    with httpx.Client(base_url=server.url) as anonymous:
        statuses = [
            anonymous.get(
                "/v1/workers",
                headers={
                    "Authorization": f"Bearer afs_{n:043}",
                    "X-Forwarded-For": f"192.0.2.{n}",
                },
            ).status_code
            for n in range(45)
        ]
    assert (429 in statuses) == (trusted is None)


def test_bucket_fills_at_its_rate_and_forgets_the_oldest():
    buckets = Buckets(rate=2.0, burst=4, most=2)
    assert [buckets.take("a", 0.0).allowed for _ in range(5)] == [True] * 4 + [False]
    assert buckets.take("a", 0.0).wait == 1
    # half a second later one more request has leaked in, and only one
    assert buckets.take("a", 0.5).allowed
    assert not buckets.take("a", 0.5).allowed
    buckets.take("b", 1.0)
    buckets.take("c", 1.0)
    # the oldest is forgotten, and begins anew
    assert buckets.take("b", 1.0, cost=0).left == 3
    assert buckets.take("a", 1.0).left == 3
