"""Accepting a group moves it once, whole, and only where it belongs."""

import json
import os
import pickle

import numpy as np
import pytest
import zarr

from afterslip import integrity
from afterslip.errors import DamagedError
from afterslip_workers import entry
from afterslip_workers.errors import classify
from afterslip_workers.messages import read_manifest
from afterslip_workers.store import durable
from afterslip_workers.store.errors import StoreLostError
from afterslip_workers.store.local import LocalBackend

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata")

N_SOURCE, N_NODE, N_MODE = 7, 5, 3


def _arrays(root, n_source):
    group = zarr.create_group(root, zarr_format=3)
    group.create_array(
        "response",
        shape=(n_source, N_MODE, N_NODE, 3),
        shards=(4, N_MODE, N_NODE, 3),
        chunks=(1, 1, N_NODE, 3),
        dtype="f4",
        fill_value=np.nan,
    )
    group.create_array(
        "mode_count", shape=(n_source,), chunks=(4,), dtype="i4", fill_value=0
    )
    return group


def _value(source):
    return np.full((N_MODE, N_NODE, 3), 10.0 + source, dtype="f4")


def attempt(store, index, token, campaign="c1", digest="sha256:m"):
    folder = store / "attempts" / token
    group = _arrays(folder / "group.zarr", 4)
    sources = [s for s in range(4 * index, 4 * index + 4) if s < N_SOURCE]
    response = np.full((4, N_MODE, N_NODE, 3), np.nan, dtype="f4")
    counts = np.zeros(4, dtype="i4")
    for lane, source in enumerate(sources):
        response[lane] = _value(source)
        counts[lane] = N_MODE
    group["response"][:] = response
    group["mode_count"][:] = counts
    files = {
        name: check
        for name, check in durable.checksums(folder / "group.zarr").items()
        if "/c/" in name
    }
    manifest = {
        "version": 1,
        "token": token,
        "kind": "greens",
        "campaign": campaign,
        "model_digest": digest,
        "group": {"index": index, "sources": sources},
        "files": files,
    }
    durable.write_json(folder / "manifest.json", manifest)
    return manifest


@pytest.fixture
def store(tmp_path):
    campaign = tmp_path / "campaigns" / "c1"
    campaign.mkdir(parents=True)
    group = _arrays(campaign / "greens.zarr", N_SOURCE)
    group.attrs["status"] = "running"
    zarr.consolidate_metadata(group.store)
    (campaign / "model.json").write_text(
        json.dumps({"digest": "sha256:m", "groups": [[0, 1, 2, 3], [4, 5, 6]]})
    )
    return tmp_path


def greens(store):
    return zarr.open_group(store / "campaigns" / "c1" / "greens.zarr", mode="r")


def test_promoted_group_reads_back_at_its_place(store):
    for index in (0, 1):
        entry.promote(store, "c1", read_manifest(attempt(store, index, f"a{index}")))
    found = greens(store)["response"][:]
    for source in range(N_SOURCE):
        assert np.array_equal(found[source], _value(source))


def test_promoting_moves_the_bytes_and_copies_none(store):
    manifest = attempt(store, 0, "a0")
    shard = store / "attempts" / "a0" / "group.zarr" / "response" / "c" / "0"
    inode = next(path for path in shard.rglob("*") if path.is_file()).stat().st_ino
    entry.promote(store, "c1", read_manifest(manifest))
    shard = store / "campaigns" / "c1" / "greens.zarr" / "response" / "c" / "0"
    moved = next(path for path in shard.rglob("*") if path.is_file())
    assert moved.stat().st_ino == inode


@pytest.mark.parametrize("step", ["sha256", "move"])
def test_attempt_that_another_dispatcher_moves_meanwhile_is_promoted(
    store, monkeypatch, step
):
    """A leader that was suspended wakes while its successor moves the same files."""
    manifest = attempt(store, 0, "a0")
    real, calls = getattr(LocalBackend, step), []

    def slow(backend, *args):
        calls.append(args)
        if len(calls) == 1:
            entry.promote(store, "c1", read_manifest(manifest))
        return real(backend, *args)

    monkeypatch.setattr(LocalBackend, step, slow)
    entry.promote(store, "c1", read_manifest(manifest))
    assert len(calls) > 1
    assert np.array_equal(greens(store)["response"][0], _value(0))


@pytest.mark.parametrize("step", ["sha256", "move"])
def test_file_that_is_nowhere_is_missing(store, monkeypatch, step):
    manifest = attempt(store, 0, "a0")
    real, shard = getattr(LocalBackend, step), "attempts/a0/group.zarr/mode_count/c/0"

    def vanishes(backend, *args):
        (store / shard).unlink(missing_ok=True)
        return real(backend, *args)

    monkeypatch.setattr(LocalBackend, step, vanishes)
    with pytest.raises(entry.StoreError, match="mode_count/c/0 is missing"):
        entry.promote(store, "c1", read_manifest(manifest))


def test_promoting_twice_changes_nothing(store):
    manifest = attempt(store, 0, "a0")
    entry.promote(store, "c1", read_manifest(manifest))
    before = durable.checksums(store / "campaigns")
    entry.promote(store, "c1", read_manifest(manifest))
    assert durable.checksums(store / "campaigns") == before


@pytest.mark.parametrize("survived", [0, 1])
def test_promotion_goes_on_after_a_crash_between_two_renames(
    store, survived, monkeypatch
):
    manifest = attempt(store, 1, "a1")
    replace = os.replace
    done = []

    def crash(old, new):
        if len(done) == survived:
            raise KeyboardInterrupt
        done.append(old)
        replace(old, new)

    from pathlib import Path

    monkeypatch.setattr(Path, "replace", lambda old, new: crash(old, new))
    with pytest.raises(KeyboardInterrupt):
        entry.promote(store, "c1", read_manifest(manifest))
    monkeypatch.undo()
    entry.promote(store, "c1", read_manifest(manifest))
    assert np.array_equal(greens(store)["response"][4], _value(4))
    assert greens(store)["mode_count"][:].tolist() == [0, 0, 0, 0, 3, 3, 3]


def test_damaged_group_is_refused_before_anything_moves(store):
    manifest = attempt(store, 0, "a0")
    name = next(name for name in manifest["files"] if name.startswith("response"))
    path = store / "attempts" / "a0" / "group.zarr" / name
    content = bytearray(path.read_bytes())
    content[7] ^= 1
    path.write_bytes(content)
    with pytest.raises(entry.StoreError, match="damaged"):
        entry.promote(store, "c1", read_manifest(manifest))
    assert not (
        store / "campaigns" / "c1" / "greens.zarr" / "mode_count" / "c"
    ).exists()


def test_missing_file_is_refused(store):
    manifest = attempt(store, 0, "a0")
    for name in manifest["files"]:
        (store / "attempts" / "a0" / "group.zarr" / name).unlink()
    with pytest.raises(entry.StoreError, match="missing"):
        entry.promote(store, "c1", read_manifest(manifest))


def test_store_that_is_away_lacks_nothing(store):
    """Its service asks again instead of solving everything anew."""
    manifest = attempt(store, 0, "a0")
    away = store.with_name("away")
    store.rename(away)
    with pytest.raises(StoreLostError):
        entry.promote(store, "c1", read_manifest(manifest))
    with pytest.raises(StoreLostError):
        entry.finish(store, "c1")
    away.rename(store)
    entry.promote(store, "c1", read_manifest(manifest))
    assert np.array_equal(greens(store)["response"][0], _value(0))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"campaign": "c2"}, "belongs to campaign c2, not to c1"),
        ({"model_digest": "sha256:other"}, "with model sha256:other, campaign c1 has"),
    ],
)
def test_manifest_of_something_else_is_refused(store, change, says):
    manifest = {**attempt(store, 0, "a0"), **change}
    with pytest.raises(entry.StoreError, match=says):
        entry.promote(store, "c1", read_manifest(manifest))


def test_late_duplicate_changes_no_number(store):
    entry.promote(store, "c1", read_manifest(attempt(store, 0, "a0")))
    entry.promote(store, "c1", read_manifest(attempt(store, 0, "late")))
    assert np.array_equal(greens(store)["response"][2], _value(2))


def test_discard_removes_an_attempt_and_may_be_repeated(store):
    attempt(store, 0, "a0")
    entry.discard(store, "a0")
    entry.discard(store, "a0")
    assert list((store / "attempts").iterdir()) == []


def test_finish_names_the_groups_that_are_missing(store):
    entry.promote(store, "c1", read_manifest(attempt(store, 0, "a0")))
    with pytest.raises(entry.StoreError, match=r"\[1\]"):
        entry.finish(store, "c1")


def test_finish_marks_the_store_and_keeps_it_readable(store):
    for index in (0, 1):
        entry.promote(store, "c1", read_manifest(attempt(store, index, f"a{index}")))
    entry.finish(store, "c1")
    entry.finish(store, "c1")
    opened = zarr.open_consolidated(store / "campaigns" / "c1" / "greens.zarr")
    assert opened.attrs["status"] == "complete"
    assert np.asarray(opened["mode_count"]).tolist() == [3] * N_SOURCE


def test_inversion_is_promoted_to_its_own_folder(store):
    folder = store / "attempts" / "a9" / "result"
    folder.mkdir(parents=True)
    (folder / "result.nc").write_bytes(b"numbers")
    (folder / "report.html").write_text("words")
    manifest = {
        "version": 1,
        "token": "a9",
        "kind": "inversion",
        "campaign": "c1",
        "model_digest": "sha256:m",
        "inversion": {"id": "i1"},
        "files": durable.checksums(folder),
    }
    for _ in range(2):
        entry.promote(store, "c1", read_manifest(manifest))
    accepted = store / "campaigns" / "c1" / "inversions" / "i1"
    assert sorted(p.name for p in accepted.iterdir()) == ["report.html", "result.nc"]


def test_manifest_can_be_read_without_its_receipt(store):
    manifest = attempt(store, 0, "a0")
    assert entry.read_manifest(store, "a0") == read_manifest(manifest)
    assert entry.read_manifest(store, "none") is None


def test_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    durable.write_json(path, {"old": 1})
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        durable.write_json(path, {"new": 2})
    monkeypatch.undo()
    assert durable.read_json(path) == {"old": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_a_group_is_accepted_when_its_checksums_are_there(store, monkeypatch):
    """A crash after the renames leaves it as not accepted; repeating finishes."""
    manifest = attempt(store, 0, "a0")
    document = store / "campaigns/c1/greens.zarr" / integrity.group_key(0)
    with monkeypatch.context() as patch:
        patch.setattr(integrity, "write_checksums", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            entry.promote(store, "c1", read_manifest(manifest))
    assert not document.exists()
    entry.promote(store, "c1", read_manifest(manifest))
    files = integrity.read_checksums(document.read_bytes(), "c1", 0)
    assert files == manifest["files"]


def test_a_damaged_file_is_a_class_of_its_own():
    error = DamagedError("greens.zarr", "shift/c/0", "is missing", group=0)
    found = classify(pickle.loads(pickle.dumps(error)))
    assert found.error_class == "damaged"
    assert "shift/c/0 of group 0 is missing" in found.message
