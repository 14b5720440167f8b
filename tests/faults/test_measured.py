"""The page tells what was measured."""

from __future__ import annotations

import json

import measured


def test_table_of_the_page_is_the_record():
    text = measured.PAGE.read_text()
    assert measured.page(text) == text, "run tests/faults/measured.py"


def test_nothing_recorded_was_lost_or_done_twice():
    rows = json.loads(measured.RECORD.read_text())["rows"]
    assert rows
    assert {(row["lost"], row["twice"]) for row in rows} == {(0, 0)}


def test_new_rows_replace_those_of_the_same_fault(tmp_path):
    path = tmp_path / "record.json"
    measured.keep(path, [{"fault": "a", "seconds": 1}, {"fault": "b", "seconds": 2}])
    measured.keep(path, [{"fault": "b", "seconds": 3}])
    rows = json.loads(path.read_text())["rows"]
    assert [(row["fault"], row["seconds"]) for row in rows] == [("a", 1), ("b", 3)]
