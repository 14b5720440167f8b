"""The page tells what was measured."""

from __future__ import annotations

import json

import measured
import pytest


def test_table_of_the_page_is_the_record():
    text = measured.PAGE.read_text()
    assert measured.page(text) == text, "run tests/faults/measured.py"


def test_tables_of_random_kills_are_the_record():
    text = measured.PAGE.read_text()
    assert measured.kills_page(text) == text, "run tests/faults/measured.py"


def test_no_random_kill_recorded_has_lost_anything():
    rows = json.loads(measured.KILLS.read_text())["rows"]
    assert rows
    assert {(row["lost"], row["duplicates"]) for row in rows} == {(0, 0)}


def test_nothing_recorded_was_lost_or_done_twice():
    rows = json.loads(measured.RECORD.read_text())["rows"]
    assert rows
    assert {(row["lost"], row["twice"]) for row in rows} == {(0, 0)}


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "record.json"
    none = dict.fromkeys(measured.COSTS, 0)

    def keep(at, /, failed=(), **seconds):
        rows = [{**none, "fault": f, "seconds": s} for f, s in seconds.items()]
        measured.keep(path, rows, [{"fault": fault} for fault in failed], at)
        found = json.loads(path.read_text())["rows"]
        return [(row["fault"], row["seconds"], row["runs"]) for row in found]

    return keep


def test_worst_of_the_runs_of_one_commit_stays(recorded):
    recorded("1", a=2, b=2)
    assert recorded("1", a=1, b=3) == [("a", 2, 2), ("b", 3, 2)]


def test_run_of_another_commit_begins_anew(recorded):
    recorded("1", a=2, b=2)
    assert recorded("2", b=1) == [("b", 1, 1)]


def test_failure_voids_what_was_measured(recorded):
    recorded("1", a=2, b=2)
    assert recorded("1", failed="b", a=1) == [("a", 2, 2)]
