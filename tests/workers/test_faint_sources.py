"""Sources that data hardly tell of: before anything is solved, and in a result."""

import copy
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

sys.path.insert(0, str(Path(__file__).parent))
from small_campaign import NAMES, SPEC, X_KM, Y_KM, SmallCampaign, observations, stored

from afterslip.result import check
from afterslip.spec import parse_campaign
from afterslip.spec.coverage import plane_fault
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_workers import entry
from afterslip_workers.inverting import predict
from afterslip_workers.inverting.faint import _least_slip
from afterslip_workers.machine.model_cache import ModelCache
from afterslip_workers.messages import read_envelope, read_manifest
from afterslip_workers.tasks import inversion
from afterslip_workers.tasks.context import Context


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """The small campaign with its groups accepted."""
    made = SmallCampaign(tmp_path_factory.mktemp("store"))
    model = stored(entry.execute(made.envelope("model", "m1")))
    entry.promote(made.root, "c1", read_manifest(model))
    for index, sources in enumerate(model["groups"]):
        group = stored(entry.execute(made.group(f"g{index}", index, sources)))
        entry.promote(made.root, "c1", read_manifest(group))
    yield made
    entry.close_children()


def test_slip_that_errors_would_hide_is_known_before_anything_is_solved(solved):
    """The half-space beside the campaign's own responses; one grid, two shapes."""
    spec = copy.deepcopy(SPEC)
    spec["datasets"] = [{"name": "gnss", "file": "data.csv"}]
    spec["inversions"] = [{"name": "co", "datasets": ["gnss"], "folds": 4}]
    files = {"data.csv": observations(np.zeros((len(NAMES), 3)))}
    SmallCampaign(solved.root, spec, files=files)
    source = solved.root / "c1-input"
    parsed = parse_campaign(spec, source)
    inputs = resolve(parsed, LocalFiles(source))
    rows, plane = inputs.datasets["gnss"], parsed.model.faults[0].plane
    assert plane is not None
    main = plane_fault("main", plane, inputs.frame)
    found = _least_slip(parsed.grids[0], main, [rows])
    motion = entry.sample(solved.root, "c1", X_KM * 1e3, Y_KM * 1e3, [0.0]).values
    weighed = motion[:, 0].reshape(6, -1) / rows.sigma
    own = 1.0 / np.linalg.norm(weighed, axis=1).reshape(3, 2).T
    # the layers' contrast is felt by some 10 %; the middle spline has twice the area
    assert found[:, [0, 2]] == pytest.approx(own[:, [0, 2]], rel=0.15)
    assert (found[:, 1] / own[:, 1] < 4.0).all()
    assert (found[:, 1] > own[:, 1]).all()

    def faint(scale):
        one = {"gnss": replace(rows, sigma=scale * rows.sigma)}
        return entry.faint_sources(parsed, parsed.inversions[0], one, inputs.frame)

    assert faint(1.0) == []
    (some,) = faint(10.5 / found.max())
    assert (some["fault"], some["faint"], some["of"]) == ("main", 1, 6)
    assert some["least"] == pytest.approx(10.5)


def test_a_source_that_moves_no_datum_has_the_slip_of_its_prior(solved, monkeypatch):
    """Not refused after all was solved: named, with the intervals of the prior."""
    spec = copy.deepcopy(SPEC)
    spec["datasets"] = [{"name": "gnss", "file": "data.csv"}]
    spec["inversions"] = [{"name": "part", "datasets": ["gnss"], "folds": 4}]
    motion = entry.sample(solved.root, "c1", X_KM * 1e3, Y_KM * 1e3, [0.0]).values
    data = np.einsum("s,stc->tc", [0.0, 1.0, 0.0, 2.0, 0.0, 0.0], motion[:, 0])
    files = {"data.csv": observations(data)}
    asked = SmallCampaign(solved.root, spec, files=files)
    request = {**asked.spec["inversions"][0], "id": "i3", "extra_datasets": []}
    whole = predict.design_matrix
    blind = 5

    def without(store, rows):
        return whole(store, rows) * (np.arange(6) != blind)

    monkeypatch.setattr(predict, "design_matrix", without)
    envelope = read_envelope(asked.envelope("inversion", "i3", inversion=request))
    context = Context(envelope, lambda _: None, lambda: False, ModelCache(10**9))
    context.folder.mkdir(parents=True)
    inversion.run(context)
    (found,) = solved.root.rglob("i3/**/result.nc")
    result = check(xr.load_dataset(found))
    said = json.loads(result.attrs["warnings"])
    assert sum("1 of 6 sources move none of the data" in one for one in said) == 1
    assert any("dip of patch (2, 0) on main" in one for one in said)
    # only the prior bounds it: its slip is known far worse than that of all others
    width = np.diff(result["slip_interval"].values, axis=1)[:, 0]
    assert width[blind] > 4 * np.delete(width, blind).max()
    assert np.isinf(result["detectable_slip"].values[blind])
    assert result["slip"].values[[1, 3]] == pytest.approx([1.0, 2.0], abs=0.1)
    assert "move none of the data" in (found.parent / "report.html").read_text()
