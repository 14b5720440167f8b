"""A second physics runs as a campaign, and nothing outside its folder knows of it."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from afterslip import Client, SpecError
from afterslip.archive import GreensStore
from afterslip.client.errors import ApiError
from afterslip.errors import ArchiveError
from afterslip.identity import canonical_spec
from afterslip.physics import registry
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip_workers import entry
from afterslip_workers.engines import registry as engines
from afterslip_workers.errors import TaskError
from afterslip_workers.messages import Envelope, ModelManifest, read_receipt

HOME = Path(__file__).parents[1] / "toy_physics"
# s; km/s; km
DURATION, SPEED, WIDTH, DEPTH = 16.0, 3.5, 10.0, 48.0
SPEC: dict[str, Any] = {
    "name": "waves in a box",
    "physics": "boxwaves",
    "model": {
        "frame": {"kind": "local"},
        "domain": {"x": [-48, 48], "y": [-48, 48], "depth": DEPTH},
        "layers": [
            {"name": "rock", "bottom": DEPTH, "vp": 6.1, "vs": SPEED, "rho": 2700}
        ],
        "faults": [
            {
                "name": "main",
                "plane": {
                    "x": 0,
                    "y": 0,
                    "top": 10,
                    "strike": 0,
                    "dip": 90,
                    "length": 40,
                    "width": 20,
                },
            }
        ],
        "mesh": {"size": {"fault": 10, "far": 20}},
    },
    "sources": {
        "fault": "main",
        "along_strike": 2,
        "down_dip": 2,
        "components": ["strike"],
    },
    "waves": {
        "cells": 32,
        "width": WIDTH,
        "duration": f"{DURATION} s",
        "sampling": "0.5 s",
    },
}
PLACES = {"A": (0.0, 5.0), "B": (-21.0, 17.0), "C": (30.0, -40.0)}
TIMES = [0.0, 4.0, 8.0, 12.0, 16.0]


@pytest.fixture(scope="module")
def install():
    """Put parts of the toy where this process, and those that it starts, find them."""
    with pytest.MonkeyPatch.context() as patch:

        def put(*parts):
            paths = [str(HOME / part) for part in parts]
            before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
            patch.setenv("PYTHONPATH", os.pathsep.join([*paths, *filter(None, before)]))
            for path in paths:
                patch.syspath_prepend(path)
            _forget()

        yield put
    _forget()
    for name in ("boxwaves", "boxwaves_engine"):
        sys.modules.pop(name, None)


def _forget():
    registry.find.cache_clear()
    engines.find.cache_clear()


@pytest.fixture(scope="module")
def client(install, tmp_path_factory):
    install("client", "engine")
    with Client.embedded(tmp_path_factory.mktemp("service"), workers=1) as client:
        yield client


@pytest.fixture(scope="module")
def campaign(client):
    return client.submit(SPEC).wait(timeout=240)


def exact(place, centre, times):
    """(n_time,) u of a Gaussian at rest, from spherical waves and the walls' images.

    r u = ((r - ct) g(r - ct) + (r + ct) g(r + ct)) / 2 in free space, d'Alembert.
    """
    total = np.zeros(len(times))
    images = [
        [shift * 2 * length + sign * (value - low) + low for shift in (-1, 0, 1)
         for sign in (1, -1)]
        for value, low, length in zip(
            centre, (-48.0, -48.0, -DEPTH), (96.0, 96.0, DEPTH), strict=True
        )
    ]  # fmt: skip
    for image in itertools.product(*images):
        r = max(float(np.linalg.norm(np.subtract((*place, 0.0), image))), 1e-6)
        for way in (r - SPEED * times, r + SPEED * times):
            total += way * np.exp(-(way**2) / (2 * WIDTH**2)) / (2 * r)
    return total


def test_its_campaign_gives_the_waves_of_the_exact_solution(campaign):
    found = campaign.sample(PLACES, [f"{t} s" for t in TIMES])
    centres = campaign.greens()["source_position"].values / 1e3
    assert found.shape == (4, len(TIMES), len(PLACES), 3)
    expected = np.array(
        [
            [exact(place, centre, np.array(TIMES)) for place in PLACES.values()]
            for centre in centres
        ]
    ).transpose(0, 2, 1)
    # second order in cells of 3 km under a Gaussian of 10 km: 0.007 was measured
    np.testing.assert_allclose(found.values[..., 2], expected, atol=0.015)
    assert np.abs(expected).max() > 0.3
    assert not found.values[..., :2].any()


def test_its_groups_have_its_own_size_and_its_store_its_own_arrays(campaign):
    groups = campaign.groups()
    assert len(groups) == 2
    greens = campaign.greens()
    assert greens.attrs["physics"] == "boxwaves"
    assert greens["wavefield"].dims == ("source", "frame", "node")
    assert greens["wavefield"].encoding["shards"][0] == 3
    assert GreensStore(greens).stored.all()


def test_a_shorter_campaign_takes_its_series_and_a_longer_one_does_not(
    client, campaign
):
    shorter = client.submit(
        {**SPEC, "name": "shorter", "waves": {**SPEC["waves"], "duration": "8 s"}}
    ).wait(timeout=240)
    assert shorter.data["model"]["n_reused"] == 4
    taken = shorter.sample(PLACES, ["8 s"]).values
    np.testing.assert_array_equal(taken, campaign.sample(PLACES, ["8 s"]).values)
    longer = client.submit(
        {**SPEC, "name": "longer", "waves": {**SPEC["waves"], "duration": "17 s"}}
    ).wait(timeout=240)
    assert longer.data["model"]["n_reused"] == 0


def test_what_it_does_not_offer_is_refused_when_it_is_submitted(client):
    wrong = {**SPEC, "times": {"until": "1 yr", "output": ["1 yr"]}}
    with pytest.raises(SpecError) as caught:
        client.submit(wrong)
    assert [problem.path for problem in caught.value.problems] == ["times"]


def test_an_inversion_of_it_is_refused_with_the_campaigns_place(client, campaign):
    body = {"campaign": campaign.id, "name": "slip", "datasets": ["gnss"]}
    with pytest.raises(ApiError, match=r"^campaign = .*not inverted \(.*another") as no:
        client._transport.post("/v1/inversions", body)
    assert no.value.status == 422


def test_what_is_sampled_has_its_own_unit(client, campaign):
    points = [{"name": "A", "x_km": 0.0, "y_km": 5.0}]
    asked = {"stations": points, "times": ["4 s"]}
    found = client._transport.post(f"/v1/campaigns/{campaign.id}/sample", asked)
    assert found["unit"] == "amplitude of the start"


@pytest.mark.parametrize("half", ["client", "engine"])
def test_a_package_that_cannot_be_imported_is_named_with_its_reason(
    tmp_path, monkeypatch, half
):
    package = tmp_path / "broken-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: broken\nVersion: 1.0\n")
    group = {"client": registry.GROUP, "engine": engines.GROUP}[half]
    (package / "entry_points.txt").write_text(f"[{group}]\nheat = broken_heat:it\n")
    (tmp_path / "broken_heat.py").write_text("import no_such_library")
    monkeypatch.syspath_prepend(str(tmp_path))
    _forget()
    why = r"broken_heat:it.*no_such_library"
    if half == "client":
        with pytest.raises(SpecError, match=why) as refused:
            registry.find("heat")
        (problem,) = refused.value.problems
        assert (problem.path, problem.value) == ("physics", "heat")
        assert "install" in problem.hint
    else:
        with pytest.raises(TaskError, match=why) as failed:
            engines.find("heat")
        assert failed.value.error_class == "not_installed"
    _forget()


def test_a_worker_without_its_engine_says_what_to_install(install):
    with pytest.raises(TaskError, match="no engine for the physics 'heat'") as caught:
        engines.find("heat")
    assert caught.value.error_class == "not_installed"


def test_a_live_worker_without_its_engine_leaves_the_work_to_one_that_has_it(
    install, tmp_path
):
    """Real processes: what the first one refused, the second one does."""
    install("client")
    entry.prepare(tmp_path)
    spec = canonical_spec(parse_campaign(SPEC), LocalFiles(tmp_path))
    program = (
        "import json, sys; from afterslip_workers import entry; "
        "answer = entry.execute(json.load(sys.stdin)); entry.close_children(); "
        "print(json.dumps(answer))"
    )

    def work(token, *parts):
        mine = [str(HOME / part) for part in parts]
        others = os.environ["PYTHONPATH"].split(os.pathsep)
        others = [path for path in others if not path.startswith(str(HOME))]
        where = {**os.environ, "PYTHONPATH": os.pathsep.join([*mine, *others])}
        envelope = Envelope(
            token=token,
            kind="model",
            campaign="c1",
            physics="boxwaves",
            spec=spec,
            store=str(tmp_path),
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(envelope.as_json()),
            env=where,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return read_receipt(json.loads(done.stdout.splitlines()[-1]))

    for token, parts in (("neither", ()), ("half", ("client",))):
        refused = work(token, *parts)
        assert refused.error is not None
        assert refused.error.error_class == "not_installed"
        assert "no engine for the physics 'boxwaves'" in refused.error.message
        assert "install the package of that engine" in refused.error.message
        assert entry.read_manifest(tmp_path, token) is None
    done = work("both", "client", "engine")
    assert done.outcome == "stored"
    assert isinstance(done.manifest, ModelManifest)
    assert done.manifest.n_sources == 4


def test_a_store_of_a_physics_that_is_not_installed_opens_but_is_not_evaluated(
    campaign, monkeypatch
):
    greens = campaign.greens().assign_attrs(physics="heat")
    assert greens["wavefield"].size
    with pytest.raises(ArchiveError, match=r"heat.*not installed"):
        GreensStore(greens).sample([0.0], [0.0], [0.0])


def test_a_spec_reaches_its_own_class(install):
    install("client")
    assert type(parse_campaign(SPEC)).__name__ == "BoxCampaign"
