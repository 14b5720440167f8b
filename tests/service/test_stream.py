"""Events over a real socket: order, resumption, shutdown."""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path

import httpx
import tiny_worker

import afterslip_service
from afterslip_service.db import events
from afterslip_service.http import stream


def follow(url, last=None, until=lambda event: False, seconds=15):
    """Return the events of a stream up to the one that ``until`` accepts."""
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    found = []
    with httpx.stream("GET", url, headers=headers, timeout=seconds) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields = {}
        for line in answer.iter_lines():
            if line.startswith(":"):
                continue
            if line:
                key, _, value = line.partition(": ")
                fields[key] = value
            elif "data" in fields:
                event = json.loads(fields["data"])
                assert fields["id"] == str(event["id"])
                assert fields["event"] == event["kind"]
                found.append(event)
                if until(event):
                    return found
                fields = {}
    return found


def complete(event):
    return event["kind"] == "campaign.state" and event["data"]["state"] == "complete"


def test_campaign_can_be_followed_to_its_end(client, worker):
    worker.delay_s = 0.1
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    url = client.server.url + made["links"]["events"]
    found = follow(url, 0, complete)
    kinds = [event["kind"] for event in found]
    assert kinds[0] == "campaign.state"
    assert kinds.index("model.built") < kinds.index("group.state")
    assert "group.progress" in kinds
    states = [e["data"]["state"] for e in found if e["kind"] == "campaign.state"]
    assert states == ["waiting", "building", "running", "complete"]
    assert all(event["campaign"] == made["id"] for event in found)
    ids = [event["id"] for event in found]
    assert ids == sorted(set(ids))


def test_stream_goes_on_behind_the_last_event_received(client):
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    url = client.server.url + made["links"]["events"]
    whole = follow(url, 0, complete)
    for cut in (0, 3, len(whole) - 2):
        rest = follow(url, whole[cut]["id"], complete)
        assert rest == whole[cut + 1 :]


def test_stream_survives_a_restart_of_the_service(serve, worker):
    first = serve()
    made = httpx.post(first.url + "/v1/campaigns", json=tiny_worker.spec()).json()
    received = follow(first.url + "/v1/events", 0, complete)
    first.stop()
    second = serve()
    httpx.post(second.url + "/v1/campaigns", json=tiny_worker.spec("next"))
    rest = follow(second.url + "/v1/events", received[2]["id"], complete)
    assert rest[: len(received) - 3] == received[3:]
    assert rest[0]["campaign"] == made["id"]


def test_without_a_last_event_only_news_are_sent(client, wait_for):
    old = client.post("/v1/campaigns", json=tiny_worker.spec("old")).json()
    wait_for(old["id"], "complete")
    found = []
    url = client.server.url + "/v1/events"
    thread = threading.Thread(target=lambda: found.extend(follow(url, None, complete)))
    thread.start()
    time.sleep(0.5)
    new = client.post("/v1/campaigns", json=tiny_worker.spec("new")).json()
    thread.join(15)
    assert {event["campaign"] for event in found} == {new["id"]}


def test_events_of_long_ago_are_read_from_the_database(client, database, monkeypatch):
    """Far more events than a page, and than the hub keeps in memory."""
    monkeypatch.setattr(stream, "PAGE", 20)
    with database.write() as connection:
        for number in range(90):
            name = "a" if number % 3 else "b"
            events.append(connection, name, "group.state", {"number": number})
        events.append(connection, "a", "group.state", {"number": "end"})
    url = client.server.url + "/v1/events"
    found = follow(url, 0, lambda event: event["data"].get("number") == "end")
    numbers = [event["data"].get("number") for event in found]
    assert numbers == [*range(90), "end"]


def test_heartbeat_keeps_a_quiet_stream_open(client, monkeypatch):
    monkeypatch.setattr(stream, "HEARTBEAT_S", 0.2)
    with httpx.stream("GET", client.server.url + "/v1/events", timeout=5) as answer:
        beats = 0
        for line in answer.iter_lines():
            beats += line.startswith(":")
            if beats == 2:
                break
    assert beats == 2


def test_what_happens_once_a_stream_is_open_is_in_it(client, database, monkeypatch):
    newest = stream.Hub._newest

    def slowly(hub):
        number = newest(hub)
        time.sleep(0.3)
        return max(number, newest(hub))

    monkeypatch.setattr(stream.Hub, "_newest", slowly)
    url = client.server.url + "/v1/events"
    with httpx.stream("GET", url, timeout=5) as answer:
        with database.write() as connection:
            events.append(connection, "a", "group.state", {"index": 1})
        lines = answer.iter_lines()
        assert next(line for line in lines if line.startswith("event: "))


def test_a_stream_says_first_where_it_stands(client, database):
    with database.write() as connection:
        events.append(connection, "a", "group.state", {"index": 1})
    with httpx.stream("GET", client.server.url + "/v1/events", timeout=5) as answer:
        lines = answer.iter_lines()
        number = int(next(x for x in lines if x.startswith("id: "))[4:])
    with database.read() as connection:
        assert number == events.newest(connection)


def test_unknown_campaign_and_malformed_id_are_problems(client):
    assert client.get("/v1/campaigns/none/events").status_code == 404
    headers = {"Last-Event-ID": "yesterday"}
    assert client.get("/v1/events", headers=headers).status_code == 422


def test_server_stops_in_seconds_while_somebody_listens(serve):
    server = serve()
    listening, ended = threading.Event(), threading.Event()

    def listen():
        with httpx.stream("GET", server.url + "/v1/events", timeout=30) as answer:
            listening.set()
            answer.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    assert listening.wait(30)
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 4
    assert ended.wait(2)


def test_many_listeners_hear_everything(client):
    listeners = 20
    url = client.server.url + "/v1/events"
    heard = []
    threads = [
        threading.Thread(target=lambda: heard.append(follow(url, 0, complete)))
        for _ in range(listeners)
    ]
    for thread in threads:
        thread.start()
    client.post("/v1/campaigns", json=tiny_worker.spec())
    for thread in threads:
        thread.join(20)
    assert len(heard) == listeners
    assert all(found == heard[0] for found in heard)


def test_listeners_that_leave_at_once_do_not_hold_the_service(client):
    url = client.server.url + "/v1/events"

    def listen_and_leave():
        with httpx.stream("GET", url, timeout=10) as response:
            next(response.iter_lines())

    for _ in range(3):
        threads = [threading.Thread(target=listen_and_leave) for _ in range(20)]
        for thread in threads:
            thread.start()
        client.post("/v1/campaigns", json=tiny_worker.spec())
        for thread in threads:
            thread.join(20)
    begin = time.monotonic()
    client.server.stop()
    assert time.monotonic() - begin < 10


def test_page_listens_to_every_kind_of_event():
    page = Path(afterslip_service.__file__).parent / "dashboard/api.js"
    listed = re.search(r"const KINDS = \[(.*?)\];", page.read_text(), re.S)
    kinds = {
        value
        for value in vars(events).values()
        if isinstance(value, str) and re.fullmatch(r"[a-z]+\.[a-z]+", value)
    }
    assert {"group.state", "store.damaged"} <= kinds
    assert listed is not None
    assert set(re.findall(r'"([^"]+)"', listed[1])) == kinds
