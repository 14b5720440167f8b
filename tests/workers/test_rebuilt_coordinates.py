"""Coordinates of a store that were damaged are derived from what is stored."""

from __future__ import annotations

import copy
import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import small_campaign

from afterslip import integrity
from afterslip.archive import open_greens
from afterslip_workers import entry
from afterslip_workers.messages import read_manifest
from afterslip_workers.store import reading

SURFACE = {"node_x", "node_y", "node_z", "node_lon", "node_lat"}
SURFACE |= {"face_node_connectivity"}


def local(spec):
    """Spectral, in local metres, in another order than the spec's."""
    return {}


def geographic(spec):
    """Stepping, in degrees, without another order."""
    spec["model"]["frame"] = {"kind": "geographic", "lon0": 142.0, "lat0": 38.0}
    spec["solver"] = {"integrator": "stepping", "step": "1 yr"}
    rows = [f"S{n},{142 + n / 10},{38 - n / 10}\n" for n in range(3)]
    return {"stations.csv": "station,lon,lat\n" + "".join(rows)}


@pytest.fixture(scope="module", params=[local, geographic])
def built(request, tmp_path_factory):
    """A campaign whose model is built; nothing is solved."""
    spec = copy.deepcopy(small_campaign.SPEC)
    files = request.param(spec)
    root = tmp_path_factory.mktemp("built") / "store"
    campaign = small_campaign.SmallCampaign(root, spec, files=files)
    made = entry.execute(campaign.envelope("model", "m1"))
    assert made["outcome"] == "stored", made["error"]
    entry.promote(root, "c1", read_manifest(made["manifest"]))
    entry.discard(root, "m1")
    if request.param is local:
        entry.arrange(
            root, "c1", [2, 3, 0, 1, *range(4, made["manifest"]["n_sources"])]
        )
    return root


@pytest.fixture
def store(built, tmp_path):
    return shutil.copytree(built, tmp_path / "store")


def promised(store):
    facts = json.loads((store / "campaigns/c1/model.json").read_text())
    return sorted(facts["files"])


def test_each_damaged_array_comes_back_bit_by_bit(store):
    greens = store / "campaigns/c1/greens.zarr"
    names = promised(store)
    assert {name.partition("/")[0] for name in names} > {"time", "source_position"}
    whole = {name: (greens / name).read_bytes() for name in names}
    for number, name in enumerate(names):
        if number % 2:
            (greens / name).unlink()
        else:
            (greens / name).write_bytes(whole[name][:-1] + b"\x00")
    report = entry.check_store(store)
    kinds = {finding.key.partition("greens.zarr/")[2] for finding in report.findings}
    assert kinds == set(names)
    done = entry.repair_store(store, report)
    assert set(done.values()) == {"derived anew"}
    assert {name: (greens / name).read_bytes() for name in names} == whole
    assert entry.check_store(store).findings == []


def test_without_the_model_the_surface_alone_is_lost(store):
    greens = store / "campaigns/c1/greens.zarr"
    for name in promised(store):
        (greens / name).unlink()
    shutil.rmtree(store / "models")
    entry.repair_store(store, entry.check_store(store))
    lost = entry.check_store(store).findings
    names = {finding.key.partition("greens.zarr/")[2] for finding in lost}
    assert names
    assert all("/c/" in name for name in names), "shapes are known"
    assert {name.partition("/")[0] for name in names} <= SURFACE


def test_another_mesh_is_no_substitute(store):
    """A model that is not the one solved on does not give its coordinates."""
    greens = store / "campaigns/c1/greens.zarr"
    facts = store / "campaigns/c1/model.json"
    content = json.loads(facts.read_text())
    content["files"]["node_x/c/0"] = "0" * 64
    facts.write_text(json.dumps(content))
    document = integrity.write_checksums("c1", content["files"])
    (greens / integrity.FIXED).write_bytes(document)
    before = (greens / "node_x/c/0").read_bytes()
    assert entry.repair_store(store, entry.check_store(store)) == {}
    assert (greens / "node_x/c/0").read_bytes() == before


def test_checksums_follow_when_the_sources_are_arranged(store):
    backend = entry.open_store(store)
    with open_greens(reading.greens(backend, "c1")) as data:
        for name in data.coords:
            data[name].load()
    facts = json.loads((store / "campaigns/c1/model.json").read_text())
    assert reading.checksums(backend, "c1").fixed() == facts["files"]
