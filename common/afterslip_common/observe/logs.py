"""Logs of every process: one line an event, key=value for people or JSON for machines.

Lines about an attempt carry ``campaign``, ``kind``, ``group`` and ``attempt``, whatever
process writes them. ``AFTERSLIP_LOGS`` hands the form on to the processes that are
started by one that has it.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor

FORM = "AFTERSLIP_LOGS"
JSON, TEXT = "json", "text"
# libraries that keep a handler of their own
_PROUD = ("", "distributed", "uvicorn", "uvicorn.error", "alembic")


def configure(
    json: bool = False, level: int = logging.INFO, stream: TextIO | None = None
) -> None:
    """Send structured logs to a stream, the standard error if None.

    Tracebacks are written without the values of variables, which may be a
    user's data or a password.
    """
    structlog.configure(
        processors=[*_shared(), structlog.processors.format_exc_info, redact,
                    _renderer(json)],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # looked up at every line: a stream that is redirected later is followed; a line
        # and its end are one write, as other threads write spans to the same stream
        logger_factory=lambda *_: structlog.WriteLogger(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )  # fmt: skip


def choose(json: bool) -> None:
    """Configure this process and all that it starts from now on."""
    os.environ[FORM] = JSON if json else TEXT
    inherit()


def inherit(stream: TextIO | None = None) -> None:
    """Configure this process as the one that started it; warnings only if unsaid."""
    form = os.environ.get(FORM)
    configure(
        json=form == JSON,
        level=logging.INFO if form else logging.WARNING,
        stream=stream,
    )
    if form == JSON:
        _adopt()


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _renderer(json: bool) -> Processor:
    if json:
        return structlog.processors.JSONRenderer()
    return structlog.processors.KeyValueRenderer(
        key_order=["timestamp", "level", "event"]
    )


def _adopt() -> None:
    """Write what libraries log as JSON as well, with the ids that are bound."""
    form = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *_shared()],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            redact,
            _renderer(json=True),
        ],
    )
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.StreamHandler())
    for name in _PROUD:
        for handler in logging.getLogger(name).handlers:
            handler.setFormatter(form)


@contextmanager
def about(content: Mapping[str, Any]) -> Iterator[None]:
    """Bind the ids of an envelope to every line of this thread."""
    with structlog.contextvars.bound_contextvars(**ids(content)):
        yield


def ids(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what names an attempt in a line of the log."""
    group = content.get("group")
    named = {
        "campaign": content.get("campaign"),
        "kind": content.get("kind"),
        "group": group.get("index") if isinstance(group, dict) else None,
        "attempt": content.get("token"),
    }
    return {name: value for name, value in named.items() if value is not None}


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


def dask_setup(_server: object) -> None:
    """Preload hook of Dask's nannies: ``--preload-nanny`` and this module."""
    inherit()
