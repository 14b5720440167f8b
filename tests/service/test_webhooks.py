"""Webhooks: queued with what they tell, signed, sent again until they are taken."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import stat
import textwrap
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import tiny_worker
from receiver import HERE, add, deliveries, receiving, signed, until_settled
from typer.testing import CliRunner

from afterslip.cli.main import app as command
from afterslip_service import clock
from afterslip_service.db import events, migrate, webhooks
from afterslip_service.engine import webhooks as rules
from afterslip_service.engine.webhooks import DeliveryState, Event
from afterslip_service.reconcile import outbound


def test_an_end_queues_messages_in_the_transaction_that_makes_it_true(
    database, new_dispatcher, new_campaign, turn
):
    mine = add(database, "https://a.example/")
    failures = add(database, "https://b.example/", events=[Event.CAMPAIGN_FAILED])
    foreign = add(database, "https://c.example/", owner="bob")
    campaign = new_campaign()
    other = add(database, "https://d.example/", campaign="another")
    only = add(database, "https://e.example/", campaign=campaign)
    turn(new_dispatcher(), campaign, "complete")
    for webhook in (mine, only):
        (found,) = deliveries(database, webhook)
        assert found.event == Event.CAMPAIGN_COMPLETE
        assert found.payload["data"]["campaign"] == {
            "id": campaign,
            "name": "tiny",
            "state": "complete",
        }
        assert (found.state, found.attempts) == (DeliveryState.WAITING, 0)
    for webhook in (failures, foreign, other):
        assert deliveries(database, webhook) == []


def test_a_failure_says_why(database, new_dispatcher, new_campaign, turn, worker):
    webhook = add(database, "https://a.example/")
    worker.fail["model", 0] = ["bad_input"]
    campaign = new_campaign()
    found = turn(new_dispatcher(), campaign, "failed")
    (sent,) = deliveries(database, webhook)
    assert sent.event == Event.CAMPAIGN_FAILED
    assert sent.payload["data"]["error"]["class"] == found.error_class == "bad_input"


def test_an_inversion_is_named_by_what_it_is_and_not_by_its_result(
    database, new_campaign
):
    webhook, campaign = add(database, "https://a.example/"), new_campaign()
    about = {"id": "i1", "name": "slip", "state": "accepted"}
    with database.write() as connection:
        data = {**about, "was": "running", "summary": {"magnitude": 6.1}}
        events.append(connection, campaign, events.INVERSION_STATE, data)
    (sent,) = deliveries(database, webhook)
    assert sent.event == Event.INVERSION_COMPLETE
    assert sent.payload["data"]["inversion"] == about


def fail_after(database, change):
    with database.write() as connection:
        change(connection)
        raise ZeroDivisionError


def test_what_is_rolled_back_was_never_queued(database, new_campaign):
    webhook = add(database, "https://a.example/")
    campaign = new_campaign()

    def end(connection):
        data = {"state": "complete", "was": "running", "name": "tiny"}
        events.append(connection, campaign, events.CAMPAIGN_STATE, data)

    with pytest.raises(ZeroDivisionError):
        fail_after(database, end)
    assert deliveries(database, webhook) == []
    with database.write() as connection:
        end(connection)
    assert len(deliveries(database, webhook)) == 1


def test_one_message_of_each_webhook_is_due_at_a_time_and_late_ones_wait(database):
    first, second = (add(database, f"https://{n}.example/") for n in "ab")
    with database.write() as connection:
        for webhook in (first, first, second):
            webhooks.queue_test(connection, webhook)
    with database.read() as connection:
        due = webhooks.due(connection, 10)
    assert [hook.id for _, hook in due] == [first, second]
    with database.write() as connection:
        for sent, _ in due:
            webhooks.settle(
                connection, sent, DeliveryState.WAITING, status=None, error="away",
                again=timedelta(hours=1),
            )  # fmt: skip
        (left,) = webhooks.due(connection, 10)
        assert left[1].id == first
        webhooks.delete(connection, first)
        assert webhooks.due(connection, 10) == []
        webhooks.prune(connection, clock.now() + timedelta(days=1))
    assert len(deliveries(database, second)) == 1, "what waits is not pruned"


def test_tables_go_down_and_up_again_while_messages_wait(database):
    webhook = add(database, "https://a.example/")
    with database.write() as connection:
        webhooks.queue_test(connection, webhook)
    migrate.downgrade(database, "0005")
    migrate.upgrade(database)
    with database.read() as connection:
        assert webhooks.page(connection, before=None, limit=9, owner=None) == []


def test_a_campaign_is_reported_signed_and_once(hooked, receiver):
    made = hooked.add_webhook(receiver.url, ["campaign.complete"])
    campaign = hooked.submit(tiny_worker.spec()).wait(timeout=30)
    (found,) = until_settled(hooked, made["id"], 1)
    ((path, headers, body),) = receiver.wait(1)
    assert path == "/hook"
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"] == found["id"]
    assert signed(made["secret"], headers, body)
    assert not signed(made["secret"], headers, body + b" ")
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    sent = json.loads(body)
    assert sent["type"] == "campaign.complete"
    assert sent["data"]["campaign"]["id"] == campaign.id
    assert (found["status"], found["attempts"], found["again_at"]) == (204, 1, None)


def test_it_is_sent_again_under_its_id_until_it_is_taken(hooked, receiver):
    receiver.answers = [500, 404, 302]
    made = hooked.add_webhook(receiver.url)
    hooked.test_webhook(made["id"])
    (found,) = until_settled(hooked, made["id"], 1)
    assert (found["state"], found["attempts"]) == ("delivered", 4)
    assert len(set(receiver.ids())) == 1
    # the redirect was not followed
    assert {path for path, _, _ in receiver.requests} == {"/hook"}


def test_what_is_never_taken_is_given_up_with_its_reason(hooked, receiver, monkeypatch):
    monkeypatch.setattr(rules, "ATTEMPTS", 3)
    receiver.answers = [500] * 9
    made = hooked.add_webhook(receiver.url)
    hooked.test_webhook(made["id"])
    (found,) = until_settled(hooked, made["id"], 1)
    assert (found["state"], found["attempts"]) == ("failed", 3)
    assert (found["status"], found["error"]) == (500, "answered 500")
    time.sleep(0.3)
    assert len(receiver.requests) == 3


def test_a_deleted_webhook_is_sent_nothing_more(hooked, receiver):
    made = hooked.add_webhook(receiver.url)
    hooked.delete_webhook(made["id"])
    hooked.submit(tiny_worker.spec()).wait(timeout=30)
    assert hooked.webhooks() == []
    assert receiver.requests == []


def test_its_secret_is_shown_once_and_stored_nowhere(hooked, receiver, settings):
    url = f"{hooked.url}/v1/webhooks"
    key = {"Idempotency-Key": "k1"}
    made = httpx.post(url, json={"url": receiver.url}, headers=key)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    secret = made.json()["secret"]
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    again = httpx.post(url, json={"url": receiver.url}, headers=key)
    assert again.json() == {**made.json(), "secret": None}
    assert secret not in httpx.get(url).text
    file = settings.store.parent / "afterslip-webhooks.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(file.read_bytes()) == 32
    assert [*file.parent.glob(".afterslip-webhooks*")] == []


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot be read or made"), (b"short", "has 5 bytes and needs 32")],
)
def test_a_key_that_is_none_is_refused_with_what_to_do(
    serve, receiver, tmp_path, content, words
):
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    server = serve(webhook_networks=HERE, webhook_key=file)
    answer = httpx.post(f"{server.url}/v1/webhooks", json={"url": receiver.url})
    assert answer.status_code == 409
    assert words in answer.json()["detail"]


def test_a_key_that_was_changed_is_found_out_before_anything_is_sent(
    hooked, receiver, settings
):
    made = hooked.add_webhook(receiver.url)
    (settings.store.parent / "afterslip-webhooks.key").write_bytes(b"x" * 32)
    hooked.test_webhook(made["id"])
    deadline = time.monotonic() + 20
    while not (found := next(hooked.deliveries(made["id"])))["attempts"]:
        assert time.monotonic() < deadline
    assert "the key was changed" in found["error"]
    assert receiver.requests == []


def test_a_slow_receiver_holds_nobody_else_up_for_long(hooked, receiver, monkeypatch):
    monkeypatch.setattr(outbound, "WITHIN_S", 0.5)
    with receiving() as slow:
        slow.hold.clear()
        stuck = hooked.add_webhook(slow.url)
        good = hooked.add_webhook(receiver.url)
        for webhook in (stuck, good):
            hooked.test_webhook(webhook["id"])
        (found,) = until_settled(hooked, good["id"], 1, seconds=10)
        assert found["state"] == "delivered"
        slow.hold.set()


def test_the_verification_of_the_page_takes_our_messages_and_no_others(
    hooked, receiver
):
    page = Path(__file__).parents[2] / "docs/how-to/use-webhooks.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(textwrap.dedent(code), page.name, "exec"), names)
    verified = names["verified"]
    made = hooked.add_webhook(receiver.url)
    hooked.test_webhook(made["id"])
    ((_, headers, body),) = receiver.wait(1)
    assert verified(made["secret"], headers, body)
    assert not verified(made["secret"], headers, body + b" ")
    assert not verified(made["secret"], {**headers, "webhook-id": "other"}, body)
    old = {**headers, "webhook-timestamp": str(int(time.time()) - 3600)}
    assert not verified(made["secret"], old, body)


def test_the_command_adds_tests_lists_and_deletes(hooked, receiver, tmp_path):
    run = CliRunner().invoke

    def afterslip(*words, code=0):
        done = run(command, ["webhook", *words, "--server", hooked.url])
        assert done.exit_code == code, done.output
        return done

    out = tmp_path / "secret"
    only = ("--event", "campaign.failed")
    afterslip("add", receiver.url, *only, "--out", str(out))
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    (shown,) = json.loads(afterslip("list", "--json").stdout)
    assert shown["events"] == ["campaign.failed"]
    assert "answered 204" in afterslip("test", shown["id"]).stdout
    ((_, headers, body),) = receiver.requests
    assert signed(out.read_text().strip(), headers, body)
    assert json.loads(body)["type"] == "test"
    _, row = afterslip("log", shown["id"], "--tsv").stdout.splitlines()
    assert row.split("\t")[1:4] == ["test", "delivered", "1"]
    receiver.answers = [500] * 9
    assert "answered 500" in afterslip("test", shown["id"], code=1).stdout
    afterslip("delete", shown["id"])
    assert afterslip("list", "--tsv").stdout.splitlines() == [
        "id\turl\tevents\tcampaign"
    ]


def test_a_digest_is_all_that_the_database_has_of_a_secret(hooked, receiver, database):
    made = hooked.add_webhook(receiver.url)
    with database.read() as connection:
        stored = webhooks.get(connection, made["id"])
    assert stored.hash == hashlib.sha256(made["secret"].encode()).hexdigest()
