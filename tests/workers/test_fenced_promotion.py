"""A leader that was suspended while it promoted, and wakes after its successor."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import test_commit
from test_commit import attempt, greens, store

from afterslip_workers import entry
from afterslip_workers.messages import read_manifest
from afterslip_workers.store import durable
from afterslip_workers.store.local import LocalBackend

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata")
__all__ = ["store"]


@pytest.fixture
def two_attempts(store, monkeypatch):
    """Two attempts at group 0 with different numbers."""
    first = attempt(store, 0, "a0")
    monkeypatch.setattr(test_commit, "_value", lambda source: np.float32(100 + source))
    return first, attempt(store, 0, "a1")


def succeed(store, manifest):
    """What a successor does: fence what came before, then promote its own."""
    entry.discard(store, "a0")
    entry.promote(store, "c1", read_manifest(manifest))
    entry.discard(store, "a1")


@pytest.mark.parametrize(
    ("step", "call"), [("move", 1), ("write_by_way_of", 1), ("write_by_way_of", 2)]
)
@pytest.mark.parametrize("half", [False, True])
def test_late_leader_changes_nothing_of_a_later_attempt(
    store, two_attempts, monkeypatch, step, call, half
):
    first, second = two_attempts
    real, calls, after = getattr(LocalBackend, step), [], []

    def suspended(place, *args):
        calls.append(args)
        if len(calls) == call:
            if step == "move" and half:
                real(place, args[0][:1])
            succeed(store, second)
            after.append(durable.checksums(store / "campaigns"))
            if step == "move" and half:
                return real(place, args[0][1:])
        return real(place, *args)

    monkeypatch.setattr(LocalBackend, step, suspended)
    with pytest.raises(entry.StoreError):
        entry.promote(store, "c1", read_manifest(first))
    assert durable.checksums(store / "campaigns") == after[0]
    assert np.all(greens(store)["response"][1] == 101)
    recorded = store / "campaigns" / "c1" / "manifests" / "0.json"
    assert json.loads(recorded.read_text())["token"] == "a1"
    assert not (store / "attempts" / "a0").exists()


def test_late_leader_that_wrote_its_last_file_still_cannot_name_it(
    store, two_attempts, monkeypatch
):
    """The attempt goes between the last byte of its checksums and their rename."""
    first, second = two_attempts
    real, after = LocalBackend._writable, []

    def suspended(place, key):
        path = real(place, key)
        if "checksums" in key and not after:
            after.append(None)
            succeed(store, second)
            after[0] = durable.checksums(store / "campaigns")
        return path

    monkeypatch.setattr(LocalBackend, "_writable", suspended)
    with pytest.raises(entry.StoreError, match="a0 was discarded"):
        entry.promote(store, "c1", read_manifest(first))
    assert durable.checksums(store / "campaigns") == after[0]


def test_first_order_of_sources_counts(store):
    """A late leader must not reorder what its successor's groups were solved for."""
    entry.prepare(store)
    as_made = list(range(7))
    before = (store / "campaigns" / "c1" / "model.json").read_bytes()
    assert entry.arrange(store, "c1", as_made) == as_made
    assert entry.arrange(store, "c1", as_made[::-1]) == as_made
    assert (store / "campaigns" / "c1" / "model.json").read_bytes() == before
    with pytest.raises(entry.StoreError, match="order of 3"):
        entry.arrange(store, "c1", [0, 1, 2])
