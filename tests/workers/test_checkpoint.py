"""A checkpoint costs little, comes back whole or not at all, and goes in the end."""

import numpy as np
import pytest

from afterslip_workers import entry
from afterslip_workers.store import checkpoint
from afterslip_workers.store.backend import read_json
from afterslip_workers.store.checkpoint import Checkpoints, digest_of

KEY = digest_of("model", [1, 2])


@pytest.fixture
def backend(tmp_path, monkeypatch):
    monkeypatch.setenv("AFTERSLIP_SPOOL", str(tmp_path / "spool"))
    entry.prepare(tmp_path / "store")
    return entry.open_store(tmp_path / "store")


def state(solves):
    values = np.random.default_rng(solves).normal(size=(4, 30))
    return {"solves": np.array(solves), "basis.0": values, "digest": np.arange(32)}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_newest_state_comes_back_bit_for_bit(backend):
    keeper = Checkpoints(backend, KEY, limit_s=0.0)
    for solves in (1, 2, 3):
        assert keeper.due()
        keeper.save(state(solves))
    assert len(backend.keys(f"checkpoints/{KEY}")) == 2, "older states are removed"
    successor = Checkpoints(backend, KEY, limit_s=0.0)
    found = successor.load()
    assert found is not None
    assert all(np.array_equal(found[k], v) for k, v in state(3).items())
    assert successor.stats()["resumed_from"] == 3
    assert successor.stats()["solves_repeated"] == 1, "the one that was under way"


def test_damaged_state_is_ignored_and_said(backend):
    Checkpoints(backend, KEY, limit_s=0.0).save(state(5))
    (file,) = [k for k in backend.keys(f"checkpoints/{KEY}") if k.endswith(".npz")]
    content = bytearray(backend.read(file))
    content[len(content) // 2] ^= 1
    backend.write(file, bytes(content))
    successor = Checkpoints(backend, KEY, limit_s=0.0)
    assert successor.load() is None
    assert "damaged" in successor.stats()["notes"][0]
    assert "resumed_from" not in successor.stats()
    assert backend.keys("checkpoints") == []


def test_short_groups_are_not_stored(backend):
    clock = Clock()
    keeper = Checkpoints(backend, KEY, limit_s=60.0, clock=clock)
    keeper.note_progress({"solves_expected": 10})
    clock.now = 5.0
    assert not keeper.due(), "ten solves of five seconds"
    keeper.note_progress({"solves_expected": 30})
    clock.now = 10.0
    assert keeper.due(), "thirty take two and a half minutes"


def test_saving_takes_a_small_part_of_the_time(backend, monkeypatch):
    clock = Clock()
    keeper = Checkpoints(backend, KEY, limit_s=1.0, clock=clock)
    real = keeper._write

    def slow(state):
        real(state)
        clock.now += 2.0

    monkeypatch.setattr(keeper, "_write", slow)
    keeper.note_progress({"solves_expected": 1000})
    saves = 0
    for solves in range(1, 201):
        clock.now += 1.0
        if keeper.due():
            keeper.save(state(solves))
            saves += 1
    assert 3 <= saves <= 7
    successor = Checkpoints(backend, KEY)
    successor.load()
    missing = 200 - successor.resumed_from
    assert successor.repeated == missing + 1, "what was solved in vain is counted"


def test_state_that_is_too_large_is_not_written(backend):
    keeper = Checkpoints(backend, KEY, limit_s=0.0, most=100.0)
    keeper.save(state(1))
    assert "too large" in keeper.stats()["notes"][0]
    assert backend.keys("checkpoints") == []


def test_store_that_refuses_does_not_end_the_run(backend):
    keeper = Checkpoints(backend, KEY, limit_s=0.0)
    backend.root.rename(backend.root.with_name("away"))
    keeper.save(state(1))
    assert "could not be written" in keeper.stats()["notes"][0]


def test_only_what_nobody_came_back_for_is_swept(backend):
    Checkpoints(backend, KEY, limit_s=0.0).save(state(1))
    written = (read_json(backend, f"checkpoints/{KEY}/latest.json") or {})["time"]
    assert checkpoint.sweep(backend, written + 86400.0) == 0
    assert checkpoint.sweep(backend, written + 7 * 86400.0) == 0
    assert checkpoint.sweep(backend, written + 7 * 86400.0 + 1.0) == 1
    assert backend.keys("checkpoints") == []


def test_other_numerics_have_other_checkpoints():
    keys = {digest_of("model", [1, 2]), digest_of("model", [2, 1]), digest_of("m")}
    assert len(keys) == 3


def test_key_of_the_same_numerics_is_the_same_in_any_order_of_names():
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    assert len(digest_of("m")) == 40


def test_limits_come_from_the_environment(backend, monkeypatch):
    clock = Clock()
    monkeypatch.setenv(checkpoint.LIMIT_ENV, "100")
    monkeypatch.setenv(checkpoint.BYTES_ENV, "1000")
    keeper = Checkpoints(backend, KEY, clock=clock)
    keeper.note_progress({"solves_expected": 10})
    clock.now = 9.9
    assert not keeper.due(), "ten solves of 9.9 s"
    clock.now = 20.0
    assert keeper.due(), "ten solves of 10 s: the limit counts as reached"
    keeper.save(state(2))
    assert "too large" in keeper.stats()["notes"][0]
    monkeypatch.delenv(checkpoint.LIMIT_ENV)
    keeper = Checkpoints(backend, KEY, clock=clock)
    keeper.note_progress({"solves_expected": 10})
    clock.now += 5.9
    assert not keeper.due(), "a minute without a setting"
    clock.now += 6.1
    assert keeper.due()


def test_the_first_solve_tells_how_long_the_others_take(backend):
    clock = Clock()
    keeper = Checkpoints(backend, KEY, limit_s=60.0, clock=clock)
    keeper.note_progress({"solves_expected": 10})
    clock.now = 6.0
    assert keeper.due(), "ten solves of 6 s"


def test_state_of_just_the_size_that_is_allowed_is_written(backend):
    size = sum(array.nbytes for array in state(1).values())
    keeper = Checkpoints(backend, KEY, limit_s=0.0, most=float(size))
    keeper.save(state(1))
    assert "notes" not in keeper.stats()
    keeper = Checkpoints(backend, KEY, limit_s=0.0, most=size - 1.0)
    for _ in range(2):
        keeper.save(state(1))
    assert keeper.stats()["notes"] == ["a state of 0.0 GB is too large to be stored"]


def test_repeated_solves_are_those_beyond_the_state_and_the_one_under_way(
    backend, monkeypatch
):
    clock = Clock()
    keeper = Checkpoints(backend, KEY, limit_s=1.0, clock=clock)
    keeper.note_progress({"solves_expected": 100})
    clock.now = 1.0
    assert keeper.due()
    real = keeper._write

    def slow(state):
        real(state)
        clock.now += 10.0

    monkeypatch.setattr(keeper, "_write", slow)
    keeper.save(state(1))
    for solves in (2, 3, 4):
        clock.now += 1.0
        assert not keeper.due(), solves
    successor = Checkpoints(backend, KEY, limit_s=1.0, clock=clock)
    assert successor.load() is not None
    assert successor.stats() == {
        "checkpoint": KEY,
        "resumed_from": 1,
        "solves_repeated": 4,
    }
    # a run that begins behind others measures its own solves alone
    clock.now += 1.0
    successor.note_progress({"solves_expected": 4})
    assert successor.due(), "four solves of 1 s take more than a second"


def test_states_that_are_dropped_are_forgotten(backend):
    Checkpoints(backend, KEY, limit_s=0.0).save(state(5))
    successor = Checkpoints(backend, KEY, limit_s=0.0)
    assert successor.load() is not None
    successor.drop()
    assert successor.stats() == {"checkpoint": KEY}
    assert backend.keys("checkpoints") == []
    assert Checkpoints(backend, KEY).load() is None


def test_nothing_stored_is_nothing_to_say(backend):
    fresh = Checkpoints(backend, KEY, limit_s=0.0)
    assert fresh.load() is None
    assert fresh.stats() == {"checkpoint": KEY}


def test_the_same_state_twice_is_one_file(backend):
    keeper = Checkpoints(backend, KEY, limit_s=0.0)
    keeper.save(state(1))
    keeper.save(state(1))
    assert len(backend.keys(f"checkpoints/{KEY}")) == 2
    assert Checkpoints(backend, KEY).load() is not None
