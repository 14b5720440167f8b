"""A placement that logs and traces what is placed and what ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog

from afterslip_common.observe import telemetry
from afterslip_service.logs import ids
from afterslip_service.placement.base import Ended, Placement, WorkerFacts
from afterslip_workers.messages import Envelope

log = structlog.get_logger()


class LoggedPlacement:
    """Hands everything on to another placement.

    Parameters
    ----------
    placement : that does the work.
    """

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self.dies_with_us = placement.dies_with_us
        self._ids: dict[str, dict[str, Any]] = {}

    @property
    def wake(self) -> Callable[[], None]:
        """What is called when something has ended."""
        return self._placement.wake

    @wake.setter
    def wake(self, wake: Callable[[], None]) -> None:
        self._placement.wake = wake

    def submit(self, envelope: Envelope) -> None:
        """Start an attempt; its trace goes with it."""
        content = envelope.as_json()
        with telemetry.claim(content) as carried:
            update = {"trace": carried} if carried else {}
            self._placement.submit(envelope.model_copy(update=update))
        self._ids[envelope.token] = named = ids(content)
        log.info("attempt placed", **named)

    def ended(self) -> list[Ended]:
        """Return what has ended since the last call."""
        found = self._placement.ended()
        for item in found:
            outcome = (item.receipt or {}).get("outcome", item.error_class)
            named = self._ids.pop(item.token, {"attempt": item.token})
            log.info("attempt ended", outcome=outcome, **named)
        return found

    def forget(self, token: str) -> None:
        """Drop an attempt that waits."""
        self._ids.pop(token, None)
        self._placement.forget(token)

    def holds(self) -> frozenset[str]:
        """Return the tokens that were not yet returned as ended."""
        found = self._placement.holds()
        for token in self._ids.keys() - found:
            del self._ids[token]
        return found

    def slots(self) -> int:
        """Return the number of attempts that can run at the same time."""
        return self._placement.slots()

    def workers(self) -> list[WorkerFacts]:
        """Return the workers."""
        return self._placement.workers()

    def trouble(self) -> str | None:
        """Say what is wrong, None if tasks can be placed."""
        return self._placement.trouble()

    def close(self) -> None:
        """Stop everything that was started."""
        self._placement.close()
