"""How much memory one computing process may hold."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil

ENV = "AFTERSLIP_CHILD_MEMORY"
SHARES_ENV = "AFTERSLIP_MEMORY_SHARES"
# the rest is for the workers themselves, and for the kernel's memory of files
_SHARE = 0.9
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_GROUPS = Path("/sys/fs/cgroup")


def of_child() -> int | None:
    """Return the bytes that a computing process may hold; None: any number.

    AFTERSLIP_CHILD_MEMORY gives them, as 8G or 8000000000, 0 for no limit. Without it
    every process gets an even share of nine tenths of the machine's memory, or of
    its control group's: one of AFTERSLIP_MEMORY_SHARES, which whatever starts the
    workers of a machine sets to their number.

    Raises
    ------
    ValueError
        If the variable is not a number of bytes.
    """
    given = os.environ.get(ENV, "").strip()
    if given:
        return parse(given) or None
    return int(_SHARE * of_machine() / shares())


def shares() -> int:
    """Return how many workers share this machine."""
    return max(int(os.environ.get(SHARES_ENV) or 1), 1)


def parse(text: str) -> int:
    """Return the bytes that a text such as 8G, 512 MiB or 1e9 gives.

    Raises
    ------
    ValueError
        If it gives none.
    """
    short = text.upper().removesuffix("B").removesuffix("I").strip()
    try:
        if short[-1:] in _UNITS:
            count = float(short[:-1]) * _UNITS[short[-1]]
        else:
            count = float(short)
        if 0 <= count < float("inf"):
            return int(count)
    except ValueError:
        pass
    raise ValueError(f"{ENV} is {text!r}: write bytes, as in 8G, or 0 for no limit")


def of_machine() -> int:
    """Bytes of the machine, or of the tightest control group around this process."""
    total = int(psutil.virtual_memory().total)
    folder = _GROUPS
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = next(line[3:] for line in lines if line.startswith("0::"))
        folder = _GROUPS / own.lstrip("/")
    while folder.is_relative_to(_GROUPS):
        with suppress(OSError, ValueError):
            total = min(total, int((folder / "memory.max").read_text()))
        folder = folder.parent
    return total
