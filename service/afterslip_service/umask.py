"""What other accounts may do with the files that the service makes: nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from afterslip_service.errors import ServiceError

ENV = "AFTERSLIP_UMASK"
DEFAULT = "077"
_MOST, _OWNER = 0o777, 0o700


@contextmanager
def private_files() -> Iterator[None]:
    """Make files and folders with the umask that ``AFTERSLIP_UMASK`` names.

    Without it only this account may use them; 007 shares a store with the group that
    owns its folder. Workers that are started within inherit it. What is there already
    keeps its mode.

    Raises
    ------
    ServiceError
        If the value is no umask.
    """
    before = os.umask(_chosen(os.environ.get(ENV) or DEFAULT))
    try:
        yield
    finally:
        os.umask(before)


def _chosen(text: str) -> int:
    try:
        value = int(text, 8)
    except ValueError:
        value = -1
    if not 0 <= value <= _MOST or value & _OWNER:
        raise ServiceError(
            f"{ENV} is {text!r}, which is no umask that leaves us our own files: "
            "write 077 (nobody else), 027 (the group reads) or 007 (the group writes)"
        )
    return value
