"""One thing that ``afterslip doctor`` has looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GIB = 1024**3
SMALL_DISK = 5 * GIB


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; ``wrong`` means that nothing will run."""

    name: str
    state: Literal["ok", "note", "wrong"]
    detail: str
    mend: str = ""


def gib(size: float) -> str:
    """Return bytes as people read them."""
    return f"{size / GIB:.1f} GiB"
