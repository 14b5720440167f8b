"""What the store does not take waits on the worker's disk, and arrives once."""

import json
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest

from afterslip_workers.store.backend import write_json

sys.path.insert(0, str(Path(__file__).parent))

from supervised import FAKE, envelope, wait_for_phase

from afterslip_workers import entry
from afterslip_workers.process import delivery, supervisor
from afterslip_workers.process.children import Pool
from afterslip_workers.store import durable, spool


@pytest.fixture(autouse=True)
def pool(monkeypatch):
    pool = Pool((FAKE,))
    monkeypatch.setattr(supervisor, "pool", pool)
    # the tests deliver by hand, to see both sides of it
    monkeypatch.setattr(delivery.deliverer, "kick", lambda: None)
    yield pool
    pool.close()


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("AFTERSLIP_SPOOL", str(tmp_path / "spool"))
    root = tmp_path / "store"
    entry.prepare(root)
    return root


def taken_away(store, order="write"):
    """Run an attempt whose store goes away while it solves."""
    answers = []
    content = envelope(store, do=order, seconds=20.0)
    thread = threading.Thread(target=lambda: answers.append(entry.execute(content)))
    thread.start()
    wait_for_phase(store, "solving")
    away = store.with_name("away")
    store.rename(away)
    thread.join(30)
    return answers[0], away


def test_result_outlives_a_store_that_goes_away_at_commit(store):
    receipt, away = taken_away(store)
    assert receipt["outcome"] == "stored"
    assert receipt["stats"]["spooled"]["class"] == "store_lost"
    assert not store.exists(), "a mount that is away is never written into"
    assert delivery.deliver_all() == 1, "nobody is there to take it"
    away.rename(store)
    assert entry.read_manifest(store, "a1") is None
    assert delivery.deliver_all() == 0
    manifest = entry.read_manifest(store, "a1")
    assert manifest is not None
    assert manifest.as_json() == receipt["manifest"]
    assert (entry.read_receipt(store, "a1") or {})["outcome"] == "stored"
    shard = store / "attempts" / "a1" / "group.zarr" / "x" / "c" / "0"
    digest = receipt["manifest"]["files"]["x/c/0"]
    assert durable.sha256(shard) == digest
    assert spool.waiting() == []


def test_attempt_that_waits_here_is_not_solved_again(store):
    receipt, away = taken_away(store)
    away.rename(store)
    again = entry.execute(envelope(store, do="die"))
    assert again["outcome"] == "stored"
    assert again["manifest"] == receipt["manifest"]
    assert "spooled" in again["stats"]


def test_what_was_delivered_before_is_not_sent_twice(store):
    _, away = taken_away(store)
    copy = spool.root().with_name("copy")
    shutil.copytree(spool.root(), copy)
    away.rename(store)
    delivery.deliver_all()
    shutil.rmtree(spool.root())
    copy.rename(spool.root())
    before = durable.checksums(store)
    shard = store / "attempts" / "a1" / "group.zarr" / "x" / "c" / "0"
    inode = shard.stat().st_ino
    assert delivery.deliver_all() == 0
    assert durable.checksums(store) == before
    assert shard.stat().st_ino == inode
    assert spool.waiting() == []


def test_results_arrive_in_the_order_in_which_they_were_made(store, monkeypatch):
    backend = entry.open_store(store)
    for token in ("b", "a", "c"):
        folder = spool.make(backend, token)
        receipt = {"token": token, "outcome": "cancelled"}
        durable.write_json(folder / "receipt.json", receipt)
        time.sleep(0.02)
    sent = []
    real = write_json

    def noted(place, key, content):
        sent.append(key)
        real(place, key, content)

    monkeypatch.setattr(spool, "write_json", noted)
    assert delivery.deliver_all() == 0
    assert [key.split("/")[1] for key in sent] == ["b", "a", "c"]


def test_result_of_a_worker_that_died_before_its_receipt_is_delivered(store):
    backend = entry.open_store(store)
    folder = spool.make(backend, "d1")
    named = {"token": "d1", "kind": "model", "campaign": "c1", "files": {}}
    content = {"version": 2, **named, "n_sources": 0, "groups": []}
    durable.write_json(folder / "manifest.json", content)
    with spool.locked(backend, "d1") as ours:
        assert ours
        delivery.deliver_all()
        assert entry.read_receipt(store, "d1") is None, "its worker still works on it"
    delivery.deliver_all()
    assert (entry.read_receipt(store, "d1") or {})["manifest"]["token"] == "d1"


def test_damage_on_the_way_is_not_delivered(store):
    _, away = taken_away(store)
    away.rename(store)
    (shard,) = spool.root().rglob("group.zarr/x/c/0")
    shard.write_bytes(b"damaged")
    assert delivery.deliver_all() == 1
    assert entry.read_manifest(store, "a1") is None


def test_every_end_leaves_a_receipt(store):
    for token, order in (("r1", "nothing"), ("r2", "die"), ("r3", "mesh")):
        receipt = entry.execute(envelope(store, token, do=order))
        there = json.loads((store / "attempts" / token / "receipt.json").read_text())
        assert there == receipt == entry.read_receipt(store, token)
    assert (entry.read_receipt(store, "r2") or {})["error"]["class"] == "killed"


def test_store_that_is_away_from_the_start_is_named(store):
    store.rename(store.with_name("away"))
    receipt = entry.execute(envelope(store, do="nothing"))
    assert receipt["error"]["class"] == "store_lost"
    assert not store.exists()
