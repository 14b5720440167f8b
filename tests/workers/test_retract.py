"""What was accepted and is damaged is taken back, unless it is somebody else's."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

sys.path.insert(0, str(Path(__file__).parent))

from test_commit import attempt, store  # noqa: F401 - a fixture

from afterslip.errors import DamagedError
from afterslip_workers import entry
from afterslip_workers.messages import read_manifest
from afterslip_workers.store import durable, reading
from afterslip_workers.store.local import LocalBackend
from afterslip_workers.store.retract import retract

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata")


@pytest.fixture
def complete(store):  # noqa: F811
    """Return a complete store of two groups, and their manifests."""
    entry.prepare(store)
    manifests = [read_manifest(attempt(store, k, f"a{k}")) for k in (0, 1)]
    for manifest in manifests:
        entry.promote(store, "c1", manifest)
    entry.finish(store, "c1")
    return LocalBackend(store), manifests


def status(backend):
    group = zarr.open_group(backend.root / "campaigns/c1/greens.zarr", mode="r")
    return group.attrs["status"]


def test_a_group_is_gone_with_its_checksums_and_its_manifest(complete):
    backend, manifests = complete
    root = "campaigns/c1"
    before = set(backend.keys(root))
    assert status(backend) == "complete"
    for _ in range(2):
        retract(backend, "c1", manifests[0], lambda: True)
        assert status(backend) == "building"
    gone = before - set(backend.keys(root))
    assert {key for key in gone if "/c/" not in key} == {
        f"{root}/greens.zarr/checksums/0/zarr.json",
        f"{root}/manifests/0.json",
    }
    chunks = {key.removeprefix(f"{root}/greens.zarr/") for key in gone if "/c/" in key}
    assert chunks == set(manifests[0].files)
    group = zarr.open_group(backend.root / f"{root}/greens.zarr", mode="r")
    counts = np.asarray(group["mode_count"])
    assert counts.tolist() == [0, 0, 0, 0, 3, 3, 3], "the other group stays"


def test_files_that_may_be_of_a_later_attempt_are_left(complete):
    backend, manifests = complete
    before = set(backend.keys("campaigns/c1"))
    retract(backend, "c1", manifests[1], lambda: False)
    assert set(backend.keys("campaigns/c1")) == before
    answers = iter([True, False, True, True])
    retract(backend, "c1", manifests[1], lambda: next(answers))
    gone = before - set(backend.keys("campaigns/c1"))
    assert gone == {"campaigns/c1/greens.zarr/checksums/1/zarr.json"}


@pytest.fixture
def inverted(complete):
    backend, _ = complete
    folder = backend.root / "attempts" / "a9" / "result"
    folder.mkdir(parents=True)
    (folder / "result.nc").write_bytes(b"numbers")
    (folder / "report.html").write_text("words")
    manifest = read_manifest(
        {
            "version": 1,
            "token": "a9",
            "kind": "inversion",
            "campaign": "c1",
            "model_digest": "sha256:m",
            "inversion": {"id": "i1"},
            "files": durable.checksums(folder),
        }
    )
    entry.promote(backend.root, "c1", manifest)
    return backend, manifest


def test_an_inversion_is_read_by_what_it_was_accepted_with(inverted):
    backend, manifest = inverted
    assert reading.result_files(backend, "c1", "i1") == manifest.files
    for name, digest in manifest.files.items():
        assert reading.result_digest(backend, "c1", "i1", name) == digest
    assert reading.result_digest(backend, "c1", "i1", "other.nc") is None
    (backend.root / "campaigns/c1/inversions/i1/result.nc").write_bytes(b"numbErs")
    with pytest.raises(DamagedError, match="does not have its checksum"):
        reading.result_digest(backend, "c1", "i1", "result.nc")
    backend.remove("campaigns/c1/inversions/i1/result.nc")
    with pytest.raises(DamagedError, match="is missing"):
        reading.result_digest(backend, "c1", "i1", "result.nc")


def test_an_inversion_is_taken_back_and_the_store_stays_complete(inverted):
    backend, manifest = inverted
    retract(backend, "c1", manifest, lambda: True)
    assert status(backend) == "complete"
    assert backend.keys("campaigns/c1/inversions") == []
    assert backend.names("campaigns/c1/manifests") == ["0.json", "1.json"]
    with pytest.raises(DamagedError, match="missing or cannot be read"):
        reading.result_files(backend, "c1", "i1")
