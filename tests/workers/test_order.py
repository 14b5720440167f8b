"""The order of a campaign's sources: in its arrays, checksums, manifest and facts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from afterslip import integrity
from afterslip_workers.store import order, paths
from afterslip_workers.store.backend import StoreBackend, read_json
from afterslip_workers.store.errors import StoreError
from afterslip_workers.store.local import LocalBackend

AREA = [1.0, 2.0, 3.0, 4.0, 5.0]
RIGIDITY = [10.0, 20.0, 30.0, 40.0, 50.0]
NEW = [3, 0, 4, 1, 2]


def _sums(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and "/c/" in str(path)
    }


@pytest.fixture
def backend(tmp_path: Path) -> StoreBackend:
    """Return a campaign whose sources stand as the spec makes them, none solved."""
    folder = tmp_path / "campaigns" / "c1"
    root = folder / "greens.zarr"
    group = zarr.create_group(root, zarr_format=3)
    for name, values, kind in (
        ("source_area", AREA, "f8"),
        ("source_rigidity", RIGIDITY, "f4"),
        ("node_x", AREA, "f8"),
    ):
        array = group.create_array(name, shape=(5,), chunks=(5,), dtype=kind)
        array[:] = np.array(values)
    facts = {
        "digest": "sha256:m",
        "groups": [[0, 1, 2, 3], [4]],
        "table": {"area": AREA, "rigidity": RIGIDITY},
        "files": _sums(root),
    }
    (folder / "model.json").write_text(json.dumps(facts))
    (folder / "manifests").mkdir()
    manifest = {"token": "m1", "kind": "model", "n_sources": 5, "files": _sums(root)}
    (folder / "manifests" / "model.json").write_text(json.dumps(manifest))
    backend = LocalBackend(tmp_path)
    backend.prepare()
    return backend


def _json(backend: StoreBackend, key: str) -> dict[str, Any]:
    found = read_json(backend, key)
    assert found is not None
    return found


def _root(tmp_path: Path) -> Path:
    return tmp_path / "campaigns" / "c1" / "greens.zarr"


def test_columns_of_the_sources_follow_the_order_and_others_stay(backend, tmp_path):
    assert order.arrange(backend, "c1", NEW) == NEW
    group: Any = zarr.open_group(_root(tmp_path), mode="r")
    assert list(group["source_area"][:]) == [4.0, 1.0, 5.0, 2.0, 3.0]
    assert list(group["source_rigidity"][:]) == [40.0, 10.0, 50.0, 20.0, 30.0]
    assert list(group["node_x"][:]) == AREA


def test_manifest_and_facts_name_the_files_as_they_are_in_the_new_order(
    backend, tmp_path
):
    before = _sums(_root(tmp_path))
    order.arrange(backend, "c1", NEW)
    found = _sums(_root(tmp_path))
    assert found != before
    manifest = _json(backend, paths.accepted_manifest("c1", "model"))
    facts = _json(backend, paths.model_facts("c1"))
    assert manifest["files"] == facts["files"] == found
    # and says all else as before
    assert {k: v for k, v in manifest.items() if k != "files"} == {
        "token": "m1",
        "kind": "model",
        "n_sources": 5,
    }
    assert facts["order"] == NEW


def test_checksums_of_a_sealed_store_follow_the_order(backend, tmp_path):
    root = _root(tmp_path)
    document = json.loads((root / "zarr.json").read_text())
    document["attributes"] = {"store_id": "c1", "format_version": 2, "checksum": ""}
    (root / "zarr.json").write_text(json.dumps(integrity.signed_root(document)))
    order.arrange(backend, "c1", NEW)
    content = (root / integrity.FIXED).read_bytes()
    assert integrity.read_checksums(content, "c1") == _sums(root)


def test_order_in_which_the_sources_were_made_changes_nothing(backend, tmp_path):
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}
    assert order.arrange(backend, "c1", range(5)) == [0, 1, 2, 3, 4]
    after = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}
    recorded = tmp_path / paths.order("c1")
    assert {p: t for p, t in after.items() if p != recorded} == before


def test_second_order_is_not_taken_and_the_first_may_be_finished(backend, tmp_path):
    """Columns are written from the table: repeating after a crash is no second turn."""
    order.arrange(backend, "c1", NEW)
    facts = json.loads((tmp_path / paths.model_facts("c1")).read_text())
    del facts["order"]  # as if it had died before its last file
    (tmp_path / paths.model_facts("c1")).write_text(json.dumps(facts))
    assert order.arrange(backend, "c1", [4, 3, 2, 1, 0]) == NEW
    group: Any = zarr.open_group(_root(tmp_path), mode="r")
    assert list(group["source_area"][:]) == [4.0, 1.0, 5.0, 2.0, 3.0]
    assert _json(backend, paths.model_facts("c1"))["order"] == NEW


def test_order_may_be_chosen_before_the_model_is_there(tmp_path):
    backend = LocalBackend(tmp_path)
    backend.prepare()
    assert order.arrange(backend, "c1", NEW) == NEW
    assert read_json(backend, paths.order("c1")) == NEW


@pytest.mark.parametrize("content", ["[0, 1, 2]", '{"order": 1}', "[0, 0, 1, 2, 3]"])
def test_recorded_order_of_other_sources_is_refused(backend, tmp_path, content):
    (tmp_path / paths.order("c1")).write_text(content)
    with pytest.raises(StoreError, match=r"order\.json is not an order of 5 sources"):
        order.arrange(backend, "c1", NEW)
