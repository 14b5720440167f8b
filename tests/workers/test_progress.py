"""Progress of an attempt: what is written when, and who reads it."""

from __future__ import annotations

import json
import os
import time

import pytest

from afterslip_workers import entry
from afterslip_workers.store import progress
from afterslip_workers.store.local import LocalBackend
from afterslip_workers.store.progress import ProgressFile


class Clock:
    now = 100.0


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: found.now)
    return found


@pytest.fixture
def store(tmp_path):
    entry.prepare(tmp_path)
    (tmp_path / "attempts" / "t1").mkdir()
    return LocalBackend(tmp_path)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def written(folder):
    path = folder / "progress.json"
    return json.loads(path.read_text()) if path.exists() else None


def test_news_is_written_at_the_next_beat_and_not_before(folder, clock):
    said = ProgressFile(folder, "t1", beat_s=1.0)
    said.beat()
    assert written(folder)["token"] == "t1"
    assert written(folder)["solves_done"] == 0
    said.update({"phase": "solving", "solves_done": 3, "solves_expected": 9})
    clock.now += 0.9
    said.beat()
    assert written(folder)["phase"] == "starting"
    clock.now += 0.1
    said.beat()
    found = written(folder)
    assert (found["phase"], found["solves_done"]) == ("solving", 3)
    assert found["solves_expected"] == 9


def test_a_forced_beat_is_written_at_once(folder, clock):
    said = ProgressFile(folder, "t1")
    said.beat()
    said.update({"phase": "writing"})
    said.beat(force=True)
    assert written(folder)["phase"] == "writing"


def test_every_beat_is_a_sign_of_life(folder, clock, monkeypatch):
    said, wall = ProgressFile(folder, "t1"), [1000.0]
    monkeypatch.setattr(time, "time", lambda: wall[0])
    said.beat()
    assert written(folder)["updated"] == 1000.0
    wall[0], clock.now = 1002.0, clock.now + 2.0
    said.beat()
    assert written(folder)["updated"] == 1002.0


def test_what_the_record_does_not_know_is_left_out(folder):
    said = ProgressFile(folder, "t1")
    said.update({"phase": "solving", "residual": 1e-3, "colour": "red"})
    said.update({"solves_done": 4})
    said.beat(force=True)
    found = written(folder)
    assert (found["phase"], found["residual"], found["solves_done"]) == (
        "solving",
        1e-3,
        4,
    )
    assert "colour" not in found


def test_a_shared_store_hears_of_it_less_often(folder, store, clock):
    said = ProgressFile(folder, "t1", shared=store)

    def heard():
        found = progress.read(store, "t1")
        return found and found.solves_done

    said.beat()
    assert heard() == 0
    for solves, later, expected in ((1, 2.9, 0), (2, 0.2, 0), (3, 1.0, 3)):
        said.update({"solves_done": solves})
        clock.now += later
        said.beat()
        assert heard() == expected, solves
    said.update({"solves_done": 4})
    said.beat(force=True)
    assert heard() == 4
    assert written(folder)["solves_done"] == 4


def test_a_disk_that_is_full_keeps_the_sign_of_life(folder, clock, monkeypatch):
    said = ProgressFile(folder, "t1")
    said.beat()
    path = folder / "progress.json"
    before = path.read_text()
    os.utime(path, (1.0, 1.0))
    monkeypatch.setattr("pathlib.Path.write_text", _full)
    said.update({"solves_done": 9})
    clock.now += 5.0
    said.beat()
    monkeypatch.undo()
    assert path.read_text() == before
    assert path.stat().st_mtime > 1.0


def _full(*_):
    raise OSError(28, "No space left on device")


def test_a_shared_store_that_is_away_does_not_end_the_watch(folder, store, clock):
    said = ProgressFile(folder, "t1", shared=store)
    store.root.joinpath("campaigns").rmdir()
    said.update({"solves_done": 2})
    said.beat(force=True)
    assert written(folder)["solves_done"] == 2
    assert progress.read(store, "t1") is None


def test_a_cancel_reaches_its_attempt_alone(store):
    (store.root / "attempts" / "t2").mkdir()
    assert not progress.cancel_requested(store, "t1")
    progress.request_cancel(store, "t1")
    assert progress.cancel_requested(store, "t1")
    assert not progress.cancel_requested(store, "t2")


def test_the_last_lines_of_a_log_are_the_last(store):
    folder = store.root / "attempts" / "t1"
    assert progress.log_tail(folder) == ""
    assert progress.stored_log(store, "t1", 3) == ""
    lines = [f"line {k}" for k in range(40)]
    (folder / "log.txt").write_text("\n".join(lines) + "\n")
    assert progress.log_tail(folder).split("\n") == lines[-15:]
    assert progress.log_tail(folder, 2) == "line 38\nline 39"
    assert progress.stored_log(store, "t1", 3).split("\n") == lines[-3:]
    assert entry.read_log(store.root, "t1", 1) == "line 39"


def test_of_a_long_log_only_the_end_is_read(store):
    folder = store.root / "attempts" / "t1"
    (folder / "log.txt").write_bytes(b"x" * 100_000 + b"\nlast \xff one\n")
    for found in (progress.log_tail(folder), progress.stored_log(store, "t1", 9)):
        first, last = found.split("\n")
        assert last == "last \N{REPLACEMENT CHARACTER} one"
        assert 0 < len(first) < 1 << 14
