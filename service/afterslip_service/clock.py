"""Time and identifiers: the only place where the service reads the clock."""

from __future__ import annotations

import secrets
import threading
import time
from datetime import UTC, datetime

from afterslip_service.engine.ids import RANDOM_BITS, sortable


def now() -> datetime:
    """Return the present time, aware of its zone."""
    return datetime.now(UTC)


_lock, _last = threading.Lock(), [0, 0]


def new_id() -> str:
    """Return a fresh identifier that sorts by time, and after all others of here.

    Several within a millisecond, such as those of a campaign's inversions, would
    otherwise be in any order.
    """
    moment = time.time_ns() // 1_000_000
    with _lock:
        before, bits = _last
        if moment > before:
            # as many as anybody makes in a millisecond have room behind it
            _last[:] = moment, secrets.randbits(RANDOM_BITS - 1)
        else:
            _last[:] = before, bits + 1
        return sortable(*_last)
