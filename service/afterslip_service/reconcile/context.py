"""What every part of the dispatcher shares."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from afterslip_service.db import leases
from afterslip_service.db.leases import Lease
from afterslip_service.db.session import Connection, Database
from afterslip_service.placement.base import Placement
from afterslip_service.settings import Settings


@dataclass(slots=True)
class Watched:
    """What this dispatcher last read of a live attempt.

    Attributes
    ----------
    updated : time stamp that the worker wrote into its progress file, s.
    changed_at : our monotonic clock when that stamp last changed, s. Two machines'
        clocks are never compared.
    recorded_at : our monotonic clock when progress was last recorded, s.
    """

    updated: float = -1.0
    changed_at: float = 0.0
    recorded_at: float = float("-inf")


@dataclass(slots=True)
class Context:
    """Database, placement and lease of a dispatcher."""

    database: Database
    placement: Placement
    settings: Settings
    holder: str
    lease: Lease | None = None
    watched: dict[str, Watched] = field(default_factory=dict)
    # attempts that were claimed and that the placement did not take, and why
    unplaced: dict[str, str] = field(default_factory=dict)
    # results that are still on their worker's disk: when to ask again, by token
    postponed: dict[str, float] = field(default_factory=dict)
    # called after every commit: the event hub reads at once
    after_commit: Callable[[], None] = lambda: None
    # s, of a clock that only goes forward
    ticks: Callable[[], float] = time.monotonic

    @property
    def store(self) -> Path | str:
        """Root of the store."""
        return self.settings.store

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a writing transaction in which we are sure to be the leader.

        Raises
        ------
        LeaseLostError
            If another dispatcher has taken the lease.
        """
        with self.database.write() as connection:
            if self.lease is not None:
                leases.hold(connection, self.lease)
            yield connection
        self.after_commit()
