"""The line between client and server may break, stall or answer nonsense."""

import base64
import hashlib
from functools import partial

import httpx
import pytest

from afterslip import ApiError, NoServerError
from afterslip.client.transport import Transport
from afterslip.client.wire import BlockingWire
from afterslip.errors import DamagedError


def make(handler, **options):
    pauses = []
    transport = Transport(
        "http://server",
        transport=httpx.MockTransport(handler),
        wire=partial(BlockingWire, pauses.append),
        **options,
    )
    return transport, pauses


def test_a_busy_server_is_asked_again_until_it_answers():
    answers = iter([503, 502, 200])
    transport, pauses = make(lambda _: httpx.Response(next(answers), json={"a": 1}))
    assert transport.get("/v1/x") == {"a": 1}
    assert len(pauses) == 2
    assert pauses[1] > pauses[0]


def test_a_repeated_post_keeps_its_key_so_that_it_has_one_effect():
    keys = []

    def handler(request):
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) < 3:
            raise httpx.ReadError("connection reset", request=request)
        return httpx.Response(201, json={"id": "c1"})

    transport, _ = make(handler)
    assert transport.post("/v1/campaigns", {}) == {"id": "c1"}
    assert len(set(keys)) == 1
    transport.post("/v1/campaigns", {})
    assert len(set(keys)) == 2


def test_the_servers_wish_to_wait_is_respected_within_reason():
    waits = iter(["3", "9999"])

    def handler(_request):
        wait = next(waits, None)
        if wait is None:
            return httpx.Response(200, json={})
        return httpx.Response(503, headers={"Retry-After": wait})

    transport, pauses = make(handler)
    transport.get("/v1/x")
    assert pauses == [3.0, 30.0]


def test_a_refusal_is_not_repeated_and_reads_like_a_sentence():
    count = 0

    def handler(_request):
        nonlocal count
        count += 1
        problem = {
            "title": "Unprocessable",
            "status": 422,
            "detail": "2 problems",
            "errors": [
                {"path": "model.layers[1].vs", "value": 9.9,
                 "message": "must be below vp/1.155", "hint": "at most 6.9"},
                {"path": "name", "message": "is missing"},
            ],
        }  # fmt: skip
        return httpx.Response(422, json=problem)

    transport, pauses = make(handler)
    with pytest.raises(ApiError) as caught:
        transport.post("/v1/campaigns", {})
    assert count == 1
    assert pauses == []
    text = str(caught.value)
    assert "model.layers[1].vs = 9.9: must be below vp/1.155 (at most 6.9)" in text
    assert "name: is missing" in text
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("key", ["hint", "mend"])
def test_hint_is_read_from_a_server_of_either_age(key):
    error = {"path": "name", "value": "", "message": "is empty", key: "write a name"}
    (found,) = ApiError.of(422, {"errors": [error]}).problems
    assert found.hint == "write a name"
    both = {**error, "hint": "write a name", "mend": "an old text"}
    assert ApiError.of(422, {"errors": [both]}).problems[0].hint == "write a name"


def test_no_server_says_how_to_start_one():
    def handler(request):
        raise httpx.ConnectError("refused", request=request)

    transport, pauses = make(handler, tries=3)
    with pytest.raises(NoServerError, match="afterslip serve"):
        transport.get("/v1/x")
    assert len(pauses) == 2


def test_an_answer_that_is_not_json_is_named_as_such():
    transport, _ = make(lambda _: httpx.Response(200, text="<html>"))
    with pytest.raises(NoServerError, match="not in JSON"):
        transport.get("/v1/x")


def test_a_failure_without_a_problem_document_still_has_its_status():
    transport, _ = make(lambda _: httpx.Response(418, text="teapot"))
    with pytest.raises(ApiError, match="418") as caught:
        transport.get("/v1/x")
    assert caught.value.exit_code == 1


def test_the_token_is_sent_with_every_request():
    sent = []

    def handler(request):
        sent.append(request.headers.get("Authorization"))
        return httpx.Response(200, json={})

    transport, _ = make(handler, token="secret")
    transport.get("/v1/x")
    assert sent == ["Bearer secret"]


def test_an_address_without_scheme_is_refused_at_once():
    with pytest.raises(NoServerError, match="http://"):
        Transport("localhost:8000")


def test_a_body_that_arrives_damaged_is_asked_for_again_and_then_an_error():
    digest = base64.b64encode(hashlib.sha256(b"meant").digest()).decode()
    bodies = iter([b"mea", b"meant", *[b"meent"] * 9])

    def handler(_request):
        headers = {"Repr-Digest": f"sha-512=:AAAA:, sha-256=:{digest}:"}
        return httpx.Response(200, content=next(bodies), headers=headers)

    transport, pauses = make(handler)
    assert transport.read("/v1/x") == b"meant"
    assert len(pauses) == 1
    with pytest.raises(DamagedError, match="arrives damaged"):
        transport.read("/v1/x")


def test_what_is_damaged_on_the_server_is_not_asked_for_again():
    answer = httpx.Response(503, headers={"X-Problem": "damaged"}, json={"detail": "x"})
    transport, pauses = make(lambda _: answer)
    with pytest.raises(ApiError, match="x"):
        transport.read("/v1/x")
    assert pauses == []
