"""The client of an event loop does what the blocking one does, beside the loop."""

import asyncio
import inspect
import itertools
import time

import httpx
import pytest

from afterslip import ApiError, AsyncClient, Client, NoServerError
from afterslip.client.async_client import AsyncCampaign, AsyncInversion
from afterslip.client.campaign import CampaignHandle
from afterslip.client.inversion import Inversion

CAMPAIGN = {"id": "c1", "name": "small", "state": "running"}


def client(handler):
    return AsyncClient("http://server", transport=httpx.MockTransport(handler))


@pytest.mark.parametrize(
    ("awaited", "blocking"),
    [
        (AsyncClient, Client),
        (AsyncCampaign, CampaignHandle),
        (AsyncInversion, Inversion),
    ],
)
def test_it_has_all_that_the_blocking_one_has_with_the_same_arguments(
    awaited, blocking
):
    names = {n for n in dir(blocking) if n[0] != "_"} - {"embedded"}
    # "data" is an attribute of blocking handles
    assert names == {n for n in dir(awaited) if n[0] != "_"} - {"data"}
    for name in names:
        theirs, own = getattr(blocking, name), getattr(awaited, name)
        if not inspect.isfunction(theirs):
            continue
        arguments = [inspect.signature(f).parameters for f in (theirs, own)]
        assert arguments[0] == arguments[1], name
        assert inspect.iscoroutinefunction(own) or inspect.isasyncgenfunction(own)


def test_many_campaigns_are_waited_for_at_once_while_the_loop_goes_on():
    async def answer(request):
        await asyncio.sleep(0.3)
        name = request.url.path.rpartition("/")[2]
        data = {"id": name, "name": name, "state": "complete"}
        if request.url.path == "/v1/inversions":
            data = {"items": [], "next": None}
        return httpx.Response(200, json=data)

    async def program():
        async with client(answer) as c:
            ticks = asyncio.create_task(tick())
            begun = time.monotonic()
            made = await asyncio.gather(*(c.campaign(f"c{i}") for i in range(20)))
            await asyncio.gather(*(campaign.wait() for campaign in made))
            took = time.monotonic() - begun
            ticks.cancel()
            assert [m.id for m in made] == [f"c{i}" for i in range(20)]
            # one after another they would take 60 requests of 0.3 s
            assert took < 9.0
            assert len(beats) > 20

    beats = []

    async def tick():
        while True:
            beats.append(time.monotonic())
            await asyncio.sleep(0.01)

    asyncio.run(program())


def test_a_busy_server_is_asked_again_and_a_refusal_is_the_same_error():
    answers = itertools.chain([503, 429], itertools.repeat(404))

    def answer(_request):
        return httpx.Response(next(answers), json={"title": "no", "detail": "none"})

    async def program():
        async with client(answer) as c:
            with pytest.raises(ApiError, match="none"):
                await c.inversion("i1")

    asyncio.run(program())


def test_no_server_is_the_same_error():
    def answer(request):
        raise httpx.ConnectError("refused", request=request)

    async def program():
        line = httpx.MockTransport(answer)
        async with AsyncClient("http://server", transport=line, tries=1) as c:
            with pytest.raises(NoServerError, match="refused"):
                await c.campaigns()

    asyncio.run(program())


@pytest.mark.timeout(30)
def test_a_cancelled_wait_ends_at_once_and_leaves_no_thread():
    def answer(_request):
        return httpx.Response(200, json=CAMPAIGN)

    async def program():
        async with client(answer) as c:
            campaign = await c.campaign("c1")
            begun = time.monotonic()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await campaign.wait()
            assert time.monotonic() - begun < 1.5
            assert (await campaign.refresh()).state == "running"

    asyncio.run(program())


@pytest.mark.timeout(30)
def test_events_come_as_they_happen_and_the_stream_is_closed_when_nobody_listens():
    closed = asyncio.Event()

    class Stream(httpx.AsyncByteStream):
        async def __aiter__(self):
            for number in itertools.count(1):
                data = f'{{"kind": "group.state", "data": {{"index": {number}}}}}'
                yield f"id: {number}\ndata: {data}\n\n".encode()
                await asyncio.sleep(0.01)

        async def aclose(self):
            closed.set()

    def answer(request):
        if request.url.path.endswith("/events"):
            return httpx.Response(200, stream=Stream())
        return httpx.Response(200, json=CAMPAIGN)

    async def program():
        async with client(answer) as c:
            campaign = await c.campaign("c1")
            events = campaign.events()
            found = [(await anext(events)).data["index"] for _ in range(3)]
            assert found == [1, 2, 3]
            assert not closed.is_set()
            await events.aclose()
            assert closed.is_set()

    asyncio.run(program())
