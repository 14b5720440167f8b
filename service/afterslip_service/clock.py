"""Time and identifiers: the only place where the service reads the clock."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime

from afterslip_service.engine.ids import RANDOM_BITS, sortable


def now() -> datetime:
    """Return the present time, aware of its zone."""
    return datetime.now(UTC)


def new_id() -> str:
    """Return a fresh identifier that sorts by time."""
    return sortable(time.time_ns() // 1_000_000, secrets.randbits(RANDOM_BITS))
