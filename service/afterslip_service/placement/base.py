"""What the dispatcher needs to know of a placement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from afterslip_workers.messages import Envelope


@dataclass(frozen=True, slots=True)
class Ended:
    """A task that has ended: with a receipt, or with the death of its worker.

    Attributes
    ----------
    receipt : the worker's answer as it came; None if there is none.
    error_class, message : why there is none.
    """

    token: str
    receipt: Mapping[str, Any] | None
    error_class: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """A worker as the placement sees it."""

    name: str
    address: str
    state: str
    slots: int
    facts: dict[str, Any] = field(default_factory=dict)


class Placement(Protocol):
    """Places attempts on workers and forgets them; keeps no record of truth."""

    # True where the tasks die with this process, so that a successor may take
    # every attempt of its predecessor for lost at once
    dies_with_us: bool
    # called, from any thread, when something has ended
    wake: Callable[[], None]

    def slots(self) -> int:
        """Return the number of attempts that can run at the same time."""

    def submit(self, envelope: Envelope) -> None:
        """Start an attempt; its end is returned by ``ended``."""

    def forget(self, token: str) -> None:
        """Drop an attempt that waits; one that runs is stopped by its worker."""

    def ended(self) -> list[Ended]:
        """Return what has ended since the last call."""

    def holds(self) -> frozenset[str]:
        """Return the tokens that were submitted here and not yet returned as ended."""

    def workers(self) -> list[WorkerFacts]:
        """Return the workers."""

    def trouble(self) -> str | None:
        """Say what is wrong, None if tasks can be placed."""

    def close(self) -> None:
        """Stop everything that was started here."""
