"""Logs: one line an event, key=value for people or JSON for machines."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import structlog
from structlog.typing import EventDict


def configure(
    json: bool = False, level: int = logging.INFO, stream: TextIO | None = None
) -> None:
    """Send structured logs to a stream, the standard error if None.

    Tracebacks are written without the values of variables, which may be a
    user's data or a password.
    """
    renderer: structlog.typing.Processor
    if json:
        renderer = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.processors.KeyValueRenderer(
            key_order=["timestamp", "level", "event"]
        )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            redact,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # looked up at every line: whoever redirects the stream later is heeded
        logger_factory=lambda *_: structlog.PrintLogger(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )


# tokens as the service makes them, whatever they stand in
_TOKEN = re.compile(r"afs_[A-Za-z0-9_-]{8,}")
_BEARER = re.compile(r"(?i)(bearer\s+)[^\s'\",]+")


def redact(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Take tokens out of a line, also out of tracebacks and messages of others."""
    return {
        key: _BEARER.sub(r"\1...", _TOKEN.sub("afs_...", value))
        if isinstance(value, str)
        else value
        for key, value in event.items()
    }


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
