"""``afterslip show --group`` says what was resumed, and what went wrong."""

import json

from afterslip.cli.attempts import print_group

GROUP = {
    "index": 3,
    "state": "accepted",
    "attempts": [
        {
            "number": 1,
            "state": "failed",
            "worker": "w1",
            "stats": None,
            "error": {"class": "killed", "message": "was killed by SIGKILL\nlog"},
        },
        {
            "number": 2,
            "state": "accepted",
            "worker": "w2",
            "stats": {"solves": 16, "resumed_from": 11, "solves_repeated": 1},
            "error": None,
        },
    ],
}


def test_resumption_and_failure_are_shown(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    print_group(GROUP, as_json=False)
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert "killed: was killed by SIGKILL" in first
    assert second.split() == ["2", "accepted", "w2", "16", "11", "1"]


def test_machines_get_everything(capsys):
    print_group(GROUP, as_json=True)
    assert json.loads(capsys.readouterr().out) == GROUP


def test_an_attempt_in_a_pipe_is_one_whole_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    attempts = [
        {"number": 1, "error": {"class": "killed", "message": "word " * 40}},
        {"number": 2, "error": None},
    ]
    print_group({**GROUP, "attempts": attempts}, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(attempts)
    assert lines[2].count("word") == 40
