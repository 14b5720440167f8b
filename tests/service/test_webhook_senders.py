"""Who has webhooks, and who sends: one process, whose death loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import tiny_worker
from receiver import HERE, add, deliveries, signed, until_settled

from afterslip import Client
from afterslip_service.db import leases, webhooks
from afterslip_service.engine.access import Role
from afterslip_service.engine.webhooks import DeliveryState
from afterslip_service.errors import LeaseLostError


@pytest.fixture
def sign(serve, new_token, receiver):
    server = serve(auth=True, webhook_networks=HERE)
    made = []

    def client(user, role=Role.SUBMITTER):
        _, secret = new_token(user, role)
        headers = {"Authorization": f"Bearer {secret}"}
        found = httpx.Client(base_url=server.url, headers=headers, timeout=20)
        made.append(found)
        return found

    yield client
    for found in made:
        found.close()


def test_users_have_their_own_webhooks_and_hear_of_their_own_campaigns(sign, receiver):
    ada, bob, root = sign("ada"), sign("bob"), sign("root", Role.ADMIN)
    hers = ada.post("/v1/webhooks", json={"url": receiver.url}).json()
    assert bob.get("/v1/webhooks").json()["items"] == []
    for answer in (
        bob.delete(f"/v1/webhooks/{hers['id']}"),
        bob.post(f"/v1/webhooks/{hers['id']}/test"),
        bob.get(f"/v1/webhooks/{hers['id']}/deliveries"),
    ):
        assert answer.status_code == 404
    assert [w["id"] for w in root.get("/v1/webhooks").json()["items"]] == [hers["id"]]
    viewer = sign("eve", Role.VIEWER)
    assert viewer.post("/v1/webhooks", json={"url": receiver.url}).status_code == 403
    his = bob.post("/v1/campaigns", json=tiny_worker.spec("his")).json()
    only = {"url": receiver.url, "campaign": his["id"]}
    assert ada.post("/v1/webhooks", json=only).status_code == 404
    ada.post("/v1/campaigns", json=tiny_worker.spec("hers"))
    ((_, _, body),) = receiver.wait(1)
    assert json.loads(body)["data"]["campaign"]["name"] == "hers"
    time.sleep(1.5)
    assert len(receiver.requests) == 1, "bob's campaign is not her business"


def test_nobody_has_webhooks_without_number(sign, receiver):
    ada = sign("ada")
    made = [ada.post("/v1/webhooks", json={"url": receiver.url}) for _ in range(21)]
    assert [answer.status_code for answer in made] == [201] * 20 + [409]


def test_a_standby_sends_nothing(serve, receiver, quick_sender, database):
    leader = serve(webhook_networks=HERE)
    deadline = time.monotonic() + 20
    while not leader.app.state.service.dispatcher.leads:
        assert time.monotonic() < deadline
    standby = serve(webhook_networks=HERE)
    with Client(standby.url) as client:
        webhook = client.add_webhook(receiver.url)["id"]
        client.test_webhook(webhook)
        until_settled(client, webhook, 1)
    assert len(receiver.requests) == 1
    assert standby.app.state.service.dispatcher.sender.turn() == 0


def test_who_has_lost_the_lease_settles_nothing(
    new_dispatcher, database, settings, receiver
):
    """It may have sent: the next leader sends it again, under the same id."""
    dispatcher = new_dispatcher(webhook_networks=HERE)
    dispatcher.tick()
    webhook = add(database, receiver.url)
    with database.write() as connection:
        webhooks.queue_test(connection, webhook)
        lease = dispatcher.context.lease
        leases.release(connection, lease)
        assert leases.acquire(connection, lease.name, "another", 60)
    with pytest.raises(LeaseLostError):
        dispatcher.sender.turn()
    (found,) = deliveries(database, webhook)
    assert (found.state, found.attempts) == (DeliveryState.WAITING, 0)


PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[2])
import tiny_worker
from afterslip_service.main import create_app
from afterslip_service.placement.inprocess import InProcess
from afterslip_service.reconcile import sender
from afterslip_service.server import Server
from afterslip_service.settings import Settings

sender.LOOK_S = 0.05
worker = tiny_worker.TinyWorker()
app = create_app(Settings(**json.loads(sys.argv[1])), lambda _: InProcess(worker, 2))
server = Server(app, "127.0.0.1", 0)
print(server.port, flush=True)
server.serve_here()
"""


class Service:
    """A service in a process of its own, that can be killed."""

    def __init__(self, **settings):
        self.settings = json.dumps(settings, default=str)
        self.process: Any = None

    def start(self):
        here = str(Path(__file__).parent)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, self.settings, here],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return Client(f"http://127.0.0.1:{int(self.process.stdout.readline())}")

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(20)
        self.process.stdout.close()


@pytest.mark.slow
def test_killed_while_a_message_is_under_way_and_while_one_waits(
    tmp_path, database_url, receiver
):
    """SIGKILL in between: what was not settled arrives again, with the same id."""
    service = Service(
        database=database_url,
        store=tmp_path / "store",
        tick=0.05,
        lease=2.0,
        webhook_networks=HERE,
        webhook_retry=0.5,
    )
    try:
        with service.start() as client:
            made = client.add_webhook(receiver.url, ["campaign.complete"])
            receiver.hold.clear()
            campaign = client.submit(tiny_worker.spec())
            # the receiver has it, and the service has heard no answer
            (first,) = receiver.wait(1)
            service.kill()
        receiver.answers = [204, 503]
        receiver.hold.set()
        with service.start() as client:
            receiver.wait(2)
            service.kill()
        with service.start() as client:
            (found,) = until_settled(client, made["id"], 1)
            assert found["state"] == "delivered"
            assert client.campaign(campaign.id).state == "complete"
            service.kill()
    finally:
        if service.process.poll() is None:
            service.kill()
    assert set(receiver.ids()) == {found["id"]}
    assert 2 <= len(receiver.requests) <= 4
    for _, headers, body in receiver.requests:
        assert signed(made["secret"], headers, body)
        assert body == first[2]
