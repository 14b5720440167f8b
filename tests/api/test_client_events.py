"""Events arrive once each and in order, whatever happens to the line."""

import itertools
from functools import partial

import httpx
import pytest

from afterslip import ApiError, NoServerError
from afterslip.client.events import follow, parse
from afterslip.client.handle import pause_after
from afterslip.client.transport import Transport
from afterslip.client.wire import BlockingWire


def sse(number, kind="group.state", data="{}"):
    return (
        f'id: {number}\nevent: {kind}\ndata: {{"kind": "{kind}", "campaign": "c", '
        f'"time": "t", "data": {data}}}\n\n'
    )


def transport(handler, sleep=lambda _: None):
    return Transport(
        "http://server",
        transport=httpx.MockTransport(handler),
        wire=partial(BlockingWire, sleep),
    )


def test_comments_and_half_an_event_are_passed_over():
    text = "retry: 2000\n\n: still here\n\n" + sse(3, data='{"index": 4}') + "id: 5\n"
    (event,) = parse(text.splitlines())
    assert (event.id, event.kind, event.data) == (3, "group.state", {"index": 4})


def test_a_number_without_data_is_where_the_stream_stands_and_nothing_else():
    (event,) = parse(["id: 4", "event: group.state", ""])
    assert (event.id, event.kind) == (4, "")


def test_data_over_several_lines_is_joined():
    (event,) = parse(["id: 1", 'data: {"kind": "x",', 'data: "data": {"a": 1}}', ""])
    assert event.data == {"a": 1}


def test_a_broken_line_goes_on_after_the_last_event():
    asked = []

    def handler(request):
        last = int(request.headers["Last-Event-ID"])
        asked.append(last)
        if len(asked) == 2:
            raise httpx.ReadError("reset", request=request)
        # the server repeats one event, as it may after a restart
        events = "".join(sse(n) for n in range(max(last, 1), last + 3))
        return httpx.Response(200, text=events)

    stream = follow(transport(handler), "/v1/events", 0)
    numbers = [event.id for event in itertools.islice(stream, 6)]
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert asked == [0, 2, 2, 4]


def test_only_news_are_asked_for_without_a_number():
    def handler(request):
        assert "Last-Event-ID" not in request.headers
        return httpx.Response(200, text=sse(70))

    stream = follow(transport(handler), "/v1/events", None)
    assert next(stream).id == 70


def test_a_refusal_ends_the_stream():
    def handler(_request):
        return httpx.Response(404, json={"title": "Not Found", "detail": "no such"})

    with pytest.raises(ApiError, match="no such"):
        next(follow(transport(handler), "/v1/events"))


def test_a_server_out_of_reach_is_given_up_in_the_end():
    pauses = []

    def handler(request):
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(NoServerError, match="out of reach"):
        next(follow(transport(handler, pauses.append), "/v1/events"))
    assert 20.0 < sum(pauses) < 120.0


def test_a_stream_that_breaks_before_its_first_event_goes_on_where_it_stood():
    asked = []

    def handler(request):
        asked.append(request.headers.get("Last-Event-ID"))
        text = "retry: 2000\nid: 7\n\n" if len(asked) == 1 else sse(8)
        return httpx.Response(200, text=text)

    stream = follow(transport(handler), "/v1/events", None)
    assert next(stream).id == 8
    assert asked == [None, "7"]


@pytest.mark.parametrize(
    ("waited", "pause"), [(0.0, 0.2), (3.0, 0.2), (10.0, 0.5), (1000.0, 2.0)]
)
def test_an_end_is_noticed_within_a_twentieth_of_the_time_that_it_took(waited, pause):
    assert pause_after(waited) == pytest.approx(pause)
