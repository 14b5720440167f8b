"""A worker that is to end finishes what it has and takes no more."""

import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from supervised import FAKE, envelope, wait_for_phase

from afterslip_workers import entry
from afterslip_workers.process import drain as draining
from afterslip_workers.process import supervisor
from afterslip_workers.process.children import Pool
from afterslip_workers.process.drain import Drain


@pytest.fixture
def drain(monkeypatch, tmp_path):
    entry.prepare(tmp_path)
    drain = Drain()
    monkeypatch.setattr(supervisor, "drain", drain)
    pool = Pool((FAKE,))
    monkeypatch.setattr(supervisor, "pool", pool)
    yield drain
    pool.close()


def running(store, seconds):
    answers = []
    content = envelope(store, do="sleep", seconds=seconds)
    thread = threading.Thread(target=lambda: answers.append(entry.execute(content)))
    thread.start()
    wait_for_phase(store, "solving")
    return thread, answers


def test_attempt_that_runs_is_finished_and_none_is_begun(drain, tmp_path):
    thread, answers = running(tmp_path, 1.5)
    drain.ask(60.0)
    assert drain.busy == 1
    refused = entry.execute(envelope(tmp_path, "a2", do="nothing"))
    assert refused["outcome"] == "cancelled"
    thread.join(20)
    assert answers[0]["outcome"] == "stored"
    assert drain.busy == 0


def test_attempt_that_takes_too_long_is_stopped(drain, tmp_path):
    thread, answers = running(tmp_path, 60.0)
    began = time.monotonic()
    drain.ask(0.5)
    thread.join(20)
    assert answers[0]["outcome"] == "cancelled"
    assert time.monotonic() - began < 10


def test_limit_is_only_shortened(drain):
    drain.ask(0.0)
    drain.ask(100.0)
    assert drain.over


def test_end_is_asked_for_by_a_file(monkeypatch, tmp_path):
    assert draining.requested() is None
    monkeypatch.setenv("AFTERSLIP_DRAIN", str(tmp_path / "drain"))
    monkeypatch.setenv("AFTERSLIP_DRAIN_S", "7")
    assert draining.requested() is None
    (tmp_path / "drain").touch()
    assert draining.requested() == 7.0
