"""The process that started this one."""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent ends.

    Parameters
    ----------
    parent : its number; it may have ended already.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
