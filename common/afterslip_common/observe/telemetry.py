"""OpenTelemetry traces, where ``AFTERSLIP_TRACES=on``; else nothing is imported.

All that happens to a group (claim, attempts, solves, in whatever process) has one
trace. Its identifier is a digest of the group's name, so that nobody has to remember
it: a claim after a restart continues the trace of the claim before. Within an attempt
the context travels in the envelope. Where spans go is said by the variables of
OpenTelemetry (``OTEL_TRACES_EXPORTER``, ``OTEL_EXPORTER_OTLP_ENDPOINT``, ...).
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

SWITCH = "AFTERSLIP_TRACES"
EXPORTERS = "opentelemetry_traces_exporter"
_FLUSH_MS = 5000

_provider: TracerProvider | None = None
# identifiers that the next root span takes: of the trace, and of the span or None
_next: ContextVar[tuple[int, int | None] | None] = ContextVar("next", default=None)


class TracesError(RuntimeError):
    """Traces are wanted, but cannot be had."""


def wanted() -> bool:
    """Tell whether the environment asks for traces."""
    return os.environ.get(SWITCH, "").lower() in {"on", "1", "true", "yes"}


def start(part: str, stream: TextIO | None = None) -> None:
    """Begin to trace in this process, if that is wanted; may be repeated.

    Parameters
    ----------
    part : of afterslip, in the service's name unless OTEL_SERVICE_NAME says another.
    stream : for the exporter ``console``; the standard error if None.

    Raises
    ------
    TracesError
        If OpenTelemetry, or the exporter that is asked for, is not installed.
    """
    if not wanted() or _provider is not None:
        return
    try:
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise TracesError(
            f"{SWITCH} is on, but OpenTelemetry is not installed ({error}): "
            "pip install 'afterslip[otel]'"
        ) from error
    exporter = _exporter(stream or sys.stderr)
    if exporter is not None:
        use(part, BatchSpanProcessor(exporter))


def use(part: str, processor: Any) -> None:
    """Trace in this process, spans going to a processor."""
    global _provider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Named(RandomIdGenerator):
        """Random identifiers, unless the root that begins has some of its own."""

        def generate_trace_id(self) -> int:
            given = _next.get()
            return given[0] if given else super().generate_trace_id()

        def generate_span_id(self) -> int:
            given = _next.get()
            return given[1] if given and given[1] else super().generate_span_id()

    name = os.environ.get("OTEL_SERVICE_NAME", f"afterslip-{part}")
    _provider = TracerProvider(
        resource=Resource.create({"service.name": name}), id_generator=Named()
    )
    _provider.add_span_processor(processor)


def stop() -> None:
    """Send what is left, and trace no more."""
    global _provider
    if _provider is not None:
        _provider.shutdown()
        _provider = None


def flush() -> None:
    """Send what has ended: this process may be killed at any time."""
    if _provider is not None:
        _provider.force_flush(_FLUSH_MS)


def _exporter(stream: TextIO) -> SpanExporter | None:
    asked = os.environ.get("OTEL_TRACES_EXPORTER", "otlp")
    if asked == "none":
        return None
    if asked == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        def line(span: Any) -> str:
            return f"{span.to_json(indent=None)}\n"

        return ConsoleSpanExporter(out=stream, formatter=line)
    # otlp is the package of both protocols, otlp_proto_http that of our extra
    for name in dict.fromkeys((asked, f"{asked}_proto_http")):
        for point in entry_points(group=EXPORTERS, name=name):
            made: SpanExporter = point.load()()
            return made
    raise TracesError(
        f"no exporter {asked!r} is installed (OTEL_TRACES_EXPORTER): "
        "pip install 'afterslip[otel]', or name another, such as console"
    )


@contextmanager
def span(name: str, **facts: Any) -> Iterator[None]:
    """Span what is done inside, below the span that is open in this thread."""
    if _provider is None:
        yield
        return
    tracer = _provider.get_tracer("afterslip")
    with tracer.start_as_current_span(name, attributes=_attributes(facts)):
        yield


def submitted(campaign: str) -> None:
    """Mark that a campaign was written, with identifiers that its groups know."""
    if _provider is None:
        return
    from opentelemetry import trace
    from opentelemetry.context import Context

    asked = trace.get_current_span().get_span_context()
    links = [trace.Link(asked)] if asked.is_valid else []
    mark = _next.set(_of_campaign(campaign))
    try:
        _provider.get_tracer("afterslip").start_span(
            "submit",
            Context(),
            attributes={"afterslip.campaign": campaign},
            links=links,
        ).end()
    finally:
        _next.reset(mark)


@contextmanager
def claim(content: Mapping[str, Any]) -> Iterator[dict[str, str] | None]:
    """Span the placing of an attempt; yields the context that its envelope carries.

    It is a root of the group's trace, linked to the submission of the campaign.
    """
    if _provider is None:
        yield None
        return
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import (
        TraceContextTextMapPropagator,
    )

    group = content.get("group") or content.get("inversion") or {}
    number = group.get("index", group.get("id", ""))
    campaign = str(content["campaign"])
    own = _digest("group", campaign, content["kind"], number)
    link = trace.SpanContext(
        *_of_campaign(campaign), is_remote=True,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    )  # fmt: skip
    mark = _next.set((int.from_bytes(own[:16]), None))
    try:
        begun = _provider.get_tracer("afterslip").start_span(
            "claim", Context(), attributes=_ids(content), links=[trace.Link(link)]
        )
    finally:
        _next.reset(mark)
    carried: dict[str, str] = {}
    with trace.use_span(begun, end_on_exit=True):
        TraceContextTextMapPropagator().inject(carried)
        yield carried


@contextmanager
def continued(
    name: str, content: Mapping[str, Any], carried: Mapping[str, str] | None
) -> Iterator[dict[str, str] | None]:
    """Span an attempt below what its envelope carries; yields what goes on below it."""
    if _provider is None:
        yield None
        return
    from opentelemetry.trace.propagation.tracecontext import (
        TraceContextTextMapPropagator,
    )

    propagator = TraceContextTextMapPropagator()
    below: dict[str, str] = {}
    with _provider.get_tracer("afterslip").start_as_current_span(
        name, propagator.extract(dict(carried or {})), attributes=_ids(content)
    ):
        propagator.inject(below)
        yield below
    flush()


class Solves:
    """Spans of the solves of an attempt, made from what it reports."""

    def __init__(self) -> None:
        self._done, self._since = 0, time.time_ns()

    def take(self, news: Mapping[str, Any]) -> None:
        """Close a span whenever another solve is done."""
        if _provider is None:
            return
        now, done = time.time_ns(), news.get("solves_done")
        if "phase" in news:
            self._since = now
        if not isinstance(done, int) or done <= self._done:
            return
        facts = {"number": done, "residual": news.get("residual")}
        made = _provider.get_tracer("afterslip").start_span(
            "solve", attributes=_attributes(facts), start_time=self._since
        )
        made.end(now)
        self._done, self._since = done, now


def _digest(*parts: object) -> bytes:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).digest()


def _of_campaign(campaign: str) -> tuple[int, int]:
    """Return the identifiers of trace and span of a campaign's submission."""
    digest = _digest("campaign", campaign)
    return int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])


def _ids(content: Mapping[str, Any]) -> dict[str, Any]:
    from afterslip_common.observe.logs import ids

    return _attributes(ids(content))


def _attributes(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"afterslip.{name}": value for name, value in facts.items() if value is not None
    }
