"""Who leads: a lease in the database, and no trust in anybody's wall clock."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afterslip_service import clock
from afterslip_service.db import leases
from afterslip_service.db.leases import Lease, LeaseRow
from afterslip_service.db.session import Database

LEASE = "dispatcher"
# a leader renews three times while its lease lasts
RENEWALS = 3


def holder_name() -> str:
    """Return who we are: machine, process and, as numbers come again, a mark."""
    return f"{_machine()}:{os.getpid()}:{clock.new_id()[-6:]}"


def _machine() -> str:
    """Name what process numbers belong to: a container has its own."""
    try:
        space = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        space = "0"
    return f"{platform.node()}/{space}"


def is_dead(holder: str) -> bool:
    """Tell whether a holder was a process here that no longer is."""
    machine, _, rest = holder.partition(":")
    number = rest.partition(":")[0]
    if machine != _machine() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


@dataclass(slots=True)
class Leadership:
    """Takes the lease when nobody renews it.

    A living leader changes the lease's row three times while it lasts. A standby
    therefore takes over when the lease has run out by the database's clock and the
    row has not changed for half its length by our monotonic clock; or, should the
    database's clock have been set back, for its whole length. A clock that jumps
    forward so deposes nobody. A holder that was a process of this machine and is
    gone is replaced at once.
    """

    database: Database
    holder: str
    seconds: float
    ticks: Callable[[], float] = time.monotonic
    _last: LeaseRow | None = None
    _unchanged_since: float = 0.0

    def seek(self, facts: dict[str, Any] | None = None) -> Lease | None:
        """Take or renew the lease; None while another holds it."""
        with self.database.write() as connection:
            row = leases.look(connection, LEASE)
            if row is None:
                return leases.acquire(
                    connection, LEASE, self.holder, self.seconds, facts
                )
            mine = row.holder == self.holder
            if not (mine or row.released or self._abandoned(row)):
                return None
            return leases.take(connection, row, self.holder, self.seconds, facts)

    def _abandoned(self, row: LeaseRow) -> bool:
        now = self.ticks()
        if self._last is None or row.mark != self._last.mark:
            self._unchanged_since = now
        self._last = row
        still = now - self._unchanged_since
        return (
            is_dead(row.holder)
            or (row.expired and still >= self.seconds / 2)
            or still >= self.seconds
        )
