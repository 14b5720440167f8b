"""Logs of the service; their form is that of the workers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from afterslip_common.observe.logs import about, choose, configure, ids, redact

__all__ = ["about", "choose", "configure", "ids", "redact", "to"]


@contextmanager
def to(stream: TextIO, level: int) -> Iterator[None]:
    """Send all logs, also those of libraries, to a stream for a while.

    A command that shows progress keeps its terminal for itself.
    """
    configure(stream=stream, level=level)
    root = logging.getLogger()
    handler = logging.StreamHandler(stream)
    handler.setLevel(max(level, logging.WARNING))
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        configure()
