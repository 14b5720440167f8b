"""Who is hurt in a fault test belongs to it."""

from __future__ import annotations

import contextlib

import arena
import psutil
import pytest

# a process of three generations: each prints its pid, the last one sleeps
FAMILY = "echo $$; sh -c 'echo $$; sleep 60 & echo $!; wait'; true"


@pytest.fixture
def family(tmp_path):
    log = tmp_path / "log"
    leader = arena.start(log, "sh", "-c", FAMILY)
    arena.until(lambda: len(log.read_text().split()) == 3, 10)
    pids = [int(pid) for pid in log.read_text().split()]
    yield [psutil.Process(pid) for pid in pids]
    arena.end(leader.pid)
    leader.wait(10)


def test_process_with_the_number_of_a_dead_leader_is_left_alone(tmp_path):
    """Numbers come again: a session that others lead by now is not ended."""
    theirs = arena.start(tmp_path / "log", "sleep", "60", RUN="theirs")
    try:
        assert arena.session(theirs.pid, ("RUN", "ours")) == []
        arena.end(theirs.pid, ("RUN", "ours"))
        assert theirs.poll() is None
        assert arena.session(theirs.pid, ("RUN", "theirs"))
    finally:
        arena.end(theirs.pid, ("RUN", "theirs"))
        assert theirs.wait(10) != 0


def test_ancestors_are_found(family):
    oldest, parent, youngest = family
    assert arena.ancestor(youngest, 0) == youngest
    assert arena.ancestor(youngest, 1) == parent
    assert arena.ancestor(youngest, 2) == oldest


def test_who_adopted_an_orphan_is_not_its_parent(family):
    _, parent, youngest = family
    parent.kill()
    with contextlib.suppress(psutil.NoSuchProcess):
        parent.wait(10)
    assert youngest.is_running()
    for generations in (1, 2):
        with pytest.raises(psutil.NoSuchProcess, match="parent has died"):
            arena.ancestor(youngest, generations)
