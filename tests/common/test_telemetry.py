"""Traces cost nothing when they are off, and continue each other when they are on."""

import subprocess
import sys

import pytest

from afterslip_common.observe import telemetry

GROUP = {"campaign": "c1", "kind": "group", "token": "t1", "group": {"index": 3}}


@pytest.fixture
def spans():
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
        InMemorySpanExporter,
    )

    exporter = InMemorySpanExporter()
    telemetry.use("test", SimpleSpanProcessor(exporter))
    yield exporter.get_finished_spans
    telemetry.stop()


def test_nothing_of_opentelemetry_is_imported_while_traces_are_off():
    code = (
        "import sys\nfrom afterslip_workers import child\n"
        "from afterslip_common.observe import telemetry as t\n"
        "from afterslip_workers.process import supervisor\n"
        "t.start('x')\n"
        "with t.claim({}) as carried, t.span('x'), t.continued('x', {}, None):\n"
        "    assert carried is None\n"
        "print([m for m in sys.modules if m.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_a_missing_package_is_named_with_a_hint(monkeypatch):
    monkeypatch.setenv("AFTERSLIP_TRACES", "on")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.export", None)
    with pytest.raises(telemetry.TracesError, match=r"pip install 'afterslip\[otel\]'"):
        telemetry.start("test")


def test_an_exporter_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("AFTERSLIP_TRACES", "on")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "pigeon")
    with pytest.raises(telemetry.TracesError, match="'pigeon'"):
        telemetry.start("test")


def test_a_second_attempt_continues_the_trace_of_the_first(spans):
    for token in ("t1", "t2"):
        content = {**GROUP, "token": token}
        with telemetry.claim(content) as carried:
            pass
        with telemetry.continued("attempt", content, carried):
            pass
    other = {**GROUP, "group": {"index": 4}}
    with telemetry.claim(other):
        pass
    found = spans()
    traces = [span.context.trace_id for span in found]
    assert len(set(traces[:4])) == 1
    assert traces[4] not in traces[:4]
    assert len({span.context.span_id for span in found}) == 5
    assert [span.attributes["afterslip.attempt"] for span in found[:4]] == [
        "t1", "t1", "t2", "t2",
    ]  # fmt: skip
    assert found[1].parent.span_id == found[0].context.span_id


def test_a_solve_lasts_from_the_one_before_to_its_report(spans):
    solves = telemetry.Solves()
    solves.take({"phase": "solving"})
    for done in (0, 1, 1, 2):
        solves.take({"solves_done": done, "residual": 1e-9})
    first, second = spans()
    assert second.start_time == first.end_time
    assert [s.attributes["afterslip.number"] for s in (first, second)] == [1, 2]
