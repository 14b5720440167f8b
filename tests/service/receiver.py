"""An HTTP receiver of webhooks, as a user would write it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from afterslip_service import clock
from afterslip_service.db import webhooks
from afterslip_service.engine.webhooks import Event

HERE = ["127.0.0.0/8"]


def signed(secret, headers, body):
    """Whether a message is ours, as the Standard Webhooks specification says."""
    key = base64.b64decode(secret.split("_", 1)[1])
    what = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body.decode()}"
    own = base64.b64encode(hmac.new(key, what.encode(), hashlib.sha256).digest())
    return hmac.compare_digest(headers["webhook-signature"], "v1," + own.decode())


class Receiver:
    """What has arrived, and what is answered: one status a request, then 204."""

    url = ""

    def __init__(self):
        self.requests = []
        self.answers = []
        self.hold = threading.Event()
        self.hold.set()

    def wait(self, count, seconds=30):
        deadline = time.monotonic() + seconds
        while len(self.requests) < count:
            assert time.monotonic() < deadline, f"{len(self.requests)} of {count}"
            time.sleep(0.02)
        return self.requests

    def ids(self):
        return [headers["webhook-id"] for _, headers, _ in self.requests]


@contextmanager
def receiving():
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {key.lower(): value for key, value in self.headers.items()}
            receiver.requests.append((self.path, headers, body))
            receiver.hold.wait(30)
            status = receiver.answers.pop(0) if receiver.answers else 204
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", "/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
    try:
        yield receiver
    finally:
        receiver.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()


def add(database, url, owner=None, events=tuple(Event), campaign=None):
    with database.write() as connection:
        return webhooks.create(
            connection,
            identity=clock.new_id(),
            url=url,
            owner=owner,
            events=events,
            campaign=campaign,
            hash="0" * 64,
        ).id


def deliveries(database, webhook):
    with database.read() as connection:
        return webhooks.log_page(connection, webhook, before=None, limit=100)


def until_settled(client, webhook, count, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = list(client.deliveries(webhook))
        if len(found) == count and all(d["state"] != "waiting" for d in found):
            return found
        time.sleep(0.05)
    raise AssertionError(found)
