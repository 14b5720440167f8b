"""Sends the messages of webhooks, in the process that leads.

A message is in the database before it is sent and settled after it was: a process that
dies in between leaves it to its successor, which sends it again under the same id.
"""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import structlog

from afterslip_service import webhook_key
from afterslip_service.db import leases, webhooks
from afterslip_service.db.leases import Lease
from afterslip_service.db.webhooks import Delivery, Webhook
from afterslip_service.engine.webhooks import (
    DeliveryState,
    digest,
    secret_of,
    signature,
    wait,
)
from afterslip_service.errors import ConflictError, LeaseLostError
from afterslip_service.reconcile import outbound
from afterslip_service.reconcile.context import Context
from afterslip_service.reconcile.outbound import OutboundError

log = structlog.get_logger()

LOOK_S = 1.0
RETRY_S = 5.0
# receivers that are asked at a time; each has one message at a time
MOST = 8


class Sender:
    """Sends what is due while this process leads.

    Parameters
    ----------
    context : the dispatcher's, whose lease says who leads.
    """

    def __init__(self, context: Context) -> None:
        self._context, self._settings = context, context.settings
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._pool = ThreadPoolExecutor(MOST, thread_name_prefix="webhook")
        self.trouble: str | None = None

    def start(self) -> None:
        """Start sending."""
        self._thread = threading.Thread(target=self._run, name="sender")
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Stop; what is under way is sent again by the next leader."""
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stop.is_set():
            pause = LOOK_S
            try:
                if self.turn():
                    pause = 0.0
                self.trouble = None
            except LeaseLostError:
                pass  # the next leader sends it again
            except Exception as error:  # noqa: BLE001 - it outlives everything
                trouble = f"{type(error).__name__}: {error}"
                if trouble != self.trouble and not self._stop.is_set():
                    log.warning("the sender of webhooks waits", reason=trouble)
                self.trouble, pause = trouble, RETRY_S
            self._stop.wait(pause)

    def turn(self) -> int:
        """Send one message that is due to each webhook; return how many.

        Raises
        ------
        LeaseLostError
            Another process leads by now: what was not settled is sent again.
        """
        lease = self._context.lease
        if lease is None:
            return 0
        with self._context.database.read() as connection:
            found = webhooks.due(connection, MOST)
        if not found:
            return 0
        for done in as_completed([self._pool.submit(self._send, *f) for f in found]):
            self._settle(lease, *done.result())
        return len(found)

    def _send(
        self, delivery: Delivery, webhook: Webhook
    ) -> tuple[Delivery, int | None, str | None]:
        """Send a message; return it with the status, or what went wrong."""
        try:
            secret = secret_of(webhook_key.read(self._settings), webhook.id)
        except ConflictError as error:
            return delivery, None, str(error)
        if digest(secret) != webhook.hash:
            return (
                delivery,
                None,
                "its secret is lost: the key was changed; add it anew",
            )
        body = json.dumps(delivery.payload, separators=(",", ":")).encode()
        now = int(time.time())
        headers = {
            "webhook-id": delivery.id,
            "webhook-timestamp": str(now),
            "webhook-signature": signature(secret, delivery.id, now, body),
        }
        networks = self._settings.webhook_networks
        try:
            status = outbound.post(webhook.url, body, headers, networks)
        except OutboundError as error:
            return delivery, None, str(error)
        if 200 <= status < 300:
            return delivery, status, None
        moved = " (redirects are not followed)" if 300 <= status < 400 else ""
        return delivery, status, f"answered {status}{moved}"

    def _settle(
        self, lease: Lease, sent: Delivery, status: int | None, error: str | None
    ) -> None:
        """Write down how it ended, while we are sure to lead."""
        state, again = DeliveryState.DELIVERED, None
        if error is not None:
            again = wait(sent.attempts + 1, self._settings.webhook_retry)
            state = DeliveryState.FAILED if again is None else DeliveryState.WAITING
            log.warning("webhook failed", webhook=sent.webhook, delivery=sent.id,
                        reason=error, again=str(again))  # fmt: skip
        with self._context.database.write() as connection:
            leases.hold(connection, lease)
            webhooks.settle(
                connection, sent, state, status=status, error=error, again=again
            )
