"""Logs: one line an event, key=value for people or JSON for machines."""

from __future__ import annotations

import logging
import sys

import structlog


def configure(json: bool = False, level: int = logging.INFO) -> None:
    """Send structured logs to the standard error stream.

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
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
