"""Stores of release 0.1.0 get checksums, and lost checksums come back."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import buckets
import small_campaign

from afterslip import integrity
from afterslip_workers import entry
from afterslip_workers.messages import read_manifest
from afterslip_workers.store.local import LocalBackend


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """Return a store of a campaign of two groups, without checksums as in 0.1.0."""
    root = tmp_path_factory.mktemp("solved") / "store"
    campaign = small_campaign.SmallCampaign(root)
    made = entry.execute(campaign.envelope("model", "m1"))
    manifests = [made["manifest"]]
    for index, sources in enumerate(made["manifest"]["groups"]):
        if index == 0:
            entry.promote(root, "c1", read_manifest(manifests[0]))
        done = entry.execute(campaign.group(f"g{index}", index, sources))
        assert done["outcome"] == "stored", done["error"]
        manifests.append(done["manifest"])
        entry.promote(root, "c1", read_manifest(done["manifest"]))
    entry.finish(root, "c1")
    for token in entry.attempt_tokens(root):
        entry.discard(root, token)
    shutil.rmtree(campaign.greens / "checksums")
    document = json.loads((campaign.greens / "zarr.json").read_text())
    del document["attributes"]["store_id"], document["attributes"]["checksum"]
    document["attributes"]["format_version"] = 1
    (campaign.greens / "zarr.json").write_text(json.dumps(document))
    return root


@pytest.fixture
def store(solved, tmp_path):
    return shutil.copytree(solved, tmp_path / "store")


def greens(store):
    return store / "campaigns/c1/greens.zarr"


def root_of(store):
    return integrity.read_root((greens(store) / "zarr.json").read_bytes())


def documents(store):
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in greens(store).rglob("zarr.json")
    }


def kinds(report):
    return [(finding.kind, finding.group) for finding in report.findings]


def verified(store):
    """Compare all files with what the sealed store itself says of them."""
    folder = greens(store)
    sums = integrity.Checksums(
        "it",
        lambda key: (folder / key).read_bytes() if (folder / key).exists() else None,
        lambda key: (folder / key).exists(),
        "c1",
    )
    files = dict(sums.fixed())
    for group in sums.groups().values():
        files |= group
    for key in files:
        sums.require(key, integrity.file_digests.of(folder / key))
    return set(files)


def test_sealed_store_vouches_for_each_of_its_files(store):
    there = {
        path.relative_to(greens(store)).as_posix()
        for path in greens(store).rglob("*")
        if path.is_file()
    }
    done = entry.seal_store(store)
    assert (done.sealed, done.refused) == (["c1"], {})
    assert root_of(store).sealed
    assert root_of(store).status == "complete"
    assert verified(store) == there - {"zarr.json"}
    assert entry.check_store(store).findings == []


def test_sealing_again_changes_nothing(store):
    entry.seal_store(store)
    before = documents(store)
    done = entry.seal_store(store)
    assert (done.sealed, done.before) == ([], ["c1"])
    assert documents(store) == before


def test_group_that_does_not_match_is_named_and_nothing_is_sealed(store):
    path = greens(store) / "mode_count/c/1"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    before = documents(store)
    done = entry.seal_store(store)
    assert done.sealed == []
    assert "group 1: campaigns/c1/greens.zarr/mode_count/c/1" in done.refused["c1"]
    assert documents(store) == before


def test_group_without_manifest_is_sealed_by_the_database_only(store):
    path = store / "campaigns/c1/manifests/0.json"
    manifest = json.loads(path.read_text())
    path.unlink()
    assert "group 0" in entry.seal_store(store).refused["c1"]
    other = json.loads((store / "campaigns/c1/manifests/1.json").read_text())
    known = {"c1": {"0": read_manifest(manifest), "1": read_manifest(other)}}
    expected = entry.Expected(known, frozenset(), frozenset(), frozenset())
    assert entry.seal_store(store, expected).sealed == ["c1"]


def test_sealing_goes_on_after_a_crash_at_any_write(store, monkeypatch):
    write = LocalBackend.write
    left = 0

    def dying(self, key, content):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        write(self, key, content)

    monkeypatch.setattr(LocalBackend, "write", dying)
    for allowed in range(10):
        left = allowed
        try:
            done = entry.seal_store(store)
        except KeyboardInterrupt:
            assert not root_of(store).sealed, "the root comes last"
            assert not any(f.harmful for f in entry.check_store(store).findings)
        else:
            break
    assert done.sealed == ["c1"]
    assert allowed == 4, "two groups, the rest, the root"
    assert verified(store)


def test_store_in_a_bucket_is_sealed(store, monkeypatch):
    with buckets.server(monkeypatch) as server:
        address = server.bucket()
        backend = entry.open_store(address)
        for path in store.rglob("*"):
            if path.is_file():
                backend.upload(path, path.relative_to(store).as_posix())
        assert entry.seal_store(address).sealed == ["c1"]
        report = entry.check_store(address)
        assert (report.groups, report.findings) == (2, [])
        backend.remove("campaigns/c1/greens.zarr/checksums/1/zarr.json")
        report = entry.check_store(address)
        assert kinds(report) == [("checksums", 1)]


def test_lost_and_damaged_checksums_are_written_from_the_manifests(store):
    entry.seal_store(store)
    whole = documents(store)
    (greens(store) / "checksums/0/zarr.json").unlink()
    damaged = greens(store) / "checksums/1/zarr.json"
    damaged.write_bytes(damaged.read_bytes().replace(b"response", b"responce", 1))
    (greens(store) / "checksums/zarr.json").write_text("{")
    report = entry.check_store(store)
    assert kinds(report) == [("checksums", None), ("checksums", 0), ("checksums", 1)]
    assert not report.sound
    assert len(entry.repair_store(store, report)) == 3
    assert documents(store) == whole


def test_valid_checksums_are_not_replaced_from_an_older_manifest(store):
    """A crash between the two leaves the manifest of the attempt before."""
    entry.seal_store(store)
    path = store / "campaigns/c1/manifests/0.json"
    manifest = json.loads(path.read_text())
    manifest["files"]["mode_count/c/0"] = "0" * 64
    path.write_text(json.dumps(manifest))
    before = documents(store)
    report = entry.check_store(store)
    assert kinds(report) == [("manifest", 0)]
    assert entry.repair_store(store, report) == {}
    assert documents(store) == before


def test_damaged_root_of_a_sealed_store_is_found(store):
    entry.seal_store(store)
    path = greens(store) / "zarr.json"
    path.write_bytes(path.read_bytes().replace(b"small thrust", b"small thrusT"))
    report = entry.check_store(store)
    assert kinds(report) == [("unreadable", None)]


def test_file_that_nothing_promised_is_extra_and_harmless(store):
    (greens(store) / "response/c/0/left").write_bytes(b"?")
    (greens(store) / "other").write_bytes(b"?")
    report = entry.check_store(store)
    extra = {f.key.partition("greens.zarr/")[2] for f in report.findings}
    assert {f.kind for f in report.findings} == {"extra"}
    assert extra == {"response/c/0/left", "other"}
    assert report.sound


def test_groups_without_a_manifest_are_unproven_or_were_not_accepted(store):
    """The database, where it is asked, decides which."""
    for name in "01":
        (store / f"campaigns/c1/manifests/{name}.json").unlink()
    asked = entry.Expected({}, frozenset(), frozenset(), frozenset())
    for expected, kind in ((None, "unproven"), (asked, "unaccepted")):
        found = entry.check_store(store, expected).findings
        assert {(f.kind, f.group) for f in found} == {(kind, 0), (kind, 1)}
