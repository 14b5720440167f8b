"""A rheology that is added as its page says runs as a campaign, from its spec."""

import copy
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import yaml

from afterslip import Client, SpecError
from afterslip.identity import canonical_spec, greens_digest, model_digest
from afterslip.schemas import rheology
from afterslip.schemas.forward import Forward
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_workers import entry
from afterslip_workers.messages import Envelope, read_receipt

PAGE = Path(__file__).parents[2] / "docs/how-to/add-a-rheology.md"
SPEEDS = {"vp": 8.0, "vs": 4.6}
ROCK = {"name": "mantle", "bottom": 150, "rho": 3300, **SPEEDS}
SPEC: dict[str, Any] = {
    "name": "thrust",
    "model": {
        "frame": {"kind": "local"},
        "domain": {"x": [-200, 200], "y": [-200, 200], "depth": 150},
        "layers": [
            {"name": "crust", "bottom": 30, "vp": 6.4, "vs": 3.7, "rho": 2800},
            ROCK,
        ],
        "faults": [
            {
                "name": "main",
                "plane": {
                    "x": 0,
                    "y": 0,
                    "top": 0,
                    "strike": 0,
                    "dip": 30,
                    "length": 80,
                    "width": 50,
                },
            }
        ],
        "mesh": {"size": {"fault": 30, "far": 120}},
    },
    "sources": {
        "fault": "main",
        "along_strike": 2,
        "down_dip": 1,
        "components": ["dip"],
    },
    "times": {"until": "30 yr", "output": ["0 d", "0.3 yr", "30 yr"]},
    "solver": {"backend": "cpu", "space_error": False},
}
PLACES = {"A": (10.0, 5.0), "B": (-60.0, 20.0), "C": (90.0, -40.0)}
TIMES = ["0 d", "0.3 yr", "3 yr", "30 yr"]


def snippet(kind):
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return found


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package of the page, where this process and its children find it."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "zener.py").write_text(snippet("python"))
    info = folder / "zener-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zener\nVersion: 1.0\n")
    ((group, names),) = tomllib.loads(snippet("toml"))["project"][
        "entry-points"
    ].items()
    lines = [f"[{group}]", *(f"{key} = {value}" for key, value in names.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        before = os.environ.get("PYTHONPATH", "")
        patch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{before}")
        patch.syspath_prepend(str(folder))
        rheology.find.cache_clear()
        yield folder
    rheology.find.cache_clear()
    sys.modules.pop("zener", None)


def with_mantle(**changes):
    spec = copy.deepcopy(SPEC)
    spec["model"]["layers"][1] |= changes
    return spec


def zener(**changes):
    body = yaml.safe_load(snippet("yaml"))
    body["rheology"]["zener"] = {"viscosity": 1e18, "ratio": 0.5} | changes
    return with_mantle(**body)


@pytest.mark.slow
def test_its_campaign_gives_the_curves_of_bodies_that_are_built_in(package, tmp_path):
    # a Maxwell dashpot of 1e27 Pa s moves by 1e-7 of the elastic strain in 30 years
    still = {"viscosity": 1e27, "kelvin_viscosity": 1e18, "kelvin_ratio": 0.5}
    # 1 / mu = 1 / mu_1 + 1 / (0.5 mu_1), and the bulk modulus stays
    vs = SPEEDS["vs"] * np.sqrt(0.5 / 1.5)
    vp = np.sqrt(SPEEDS["vp"] ** 2 - 4 / 3 * (SPEEDS["vs"] ** 2 - vs**2))
    specs = [
        zener(),
        with_mantle(rheology={"burgers": still}),
        with_mantle(vs=float(vs), vp=float(vp)),
    ]
    with Client.embedded(tmp_path, workers=1) as client:
        campaigns = [client.submit(spec) for spec in specs]
        for campaign in campaigns:
            campaign.wait(timeout=240)
        added, burgers, relaxed = (
            campaign.sample(PLACES, TIMES).values for campaign in campaigns
        )
    change = np.abs(added - added[:, :1]).max()
    assert change > 0.02 * np.abs(added).max()
    # the curves' own tolerance is 1e-6 of the change
    np.testing.assert_allclose(added, burgers, atol=5e-6 * change)
    # after a hundred relaxation times
    np.testing.assert_allclose(added[:, 3], relaxed[:, 0], atol=5e-6 * change)


def test_its_package_has_no_more_than_the_page_says():
    assert len(PAGE.read_text().splitlines()) <= 65
    assert "nothing in this repository changes" in PAGE.read_text()


@pytest.mark.parametrize(
    ("body", "path", "words", "hint"),
    [
        ({"viscosity": 5}, "zener.viscosity", "at least 1e+12 Pa s", ""),
        ({"ratio": "much"}, "zener.ratio", "is not a number", ""),
        ({"ratio": KeyError}, "zener.ratio", "is missing", "modulus of its spring"),
        ({"ratoi": 1}, "zener.ratoi", "is not a known key", "did you mean ratio?"),
    ],
)
def test_its_keys_are_checked_as_those_that_are_built_in(
    package, body, path, words, hint
):
    spec = zener(**body)
    law = spec["model"]["layers"][1]["rheology"]["zener"]
    for key in [key for key, value in law.items() if value is KeyError]:
        del law[key]
    with pytest.raises(SpecError) as refused:
        parse_campaign(spec)
    (problem,) = refused.value.problems
    assert problem.path == f"model.layers[1].rheology.{path}"
    assert words in problem.message
    assert hint in problem.hint


def test_two_rheologies_of_one_material_are_refused_by_all_names(package):
    spec = zener()
    spec["model"]["layers"][1]["rheology"]["maxwell"] = {"viscosity": 1e19}
    with pytest.raises(SpecError, match="one of maxwell, burgers, zener"):
        parse_campaign(spec)


def test_its_keys_are_in_the_schema_that_editors_complete_from(package):
    schema = Forward.model_json_schema()["$defs"]["Rheology"]
    assert set(schema["properties"]) == {"maxwell", "burgers", "zener"}
    assert schema["additionalProperties"] is False
    ratio = schema["properties"]["zener"]["properties"]["ratio"]
    assert (ratio["minimum"], ratio["maximum"]) == (0.001, 1000)


def test_its_numbers_and_its_formula_are_part_of_the_identity(package, monkeypatch):
    def digests(data):
        spec = parse_campaign(data)
        assert parse_campaign(canonical_spec(spec)) == spec
        assert parse_campaign(spec.to_dict()) == spec
        return {model_digest(spec), greens_digest(spec)}

    first = digests(zener())
    assert digests(zener(viscosity="1.0e18")) == first
    assert not first & digests(zener(ratio=0.6))
    kind, old = rheology.find("zener"), rheology.find("zener").branches

    def other(law, mu):
        return [(eta, 1.001 * np.asarray(k)) for eta, k in old(law, mu)]

    monkeypatch.setattr(kind, "branches", other)
    assert not first & digests(zener())


@pytest.mark.parametrize(
    ("branches", "words"),
    [
        (lambda law, mu: [], "one branch at least"),
        (lambda law, mu: [rheology.Branch(-1e18)], "not positive"),
        (lambda law, mu: [rheology.Branch(1e18, -mu)], "negative"),
        (lambda law, mu: [rheology.Branch(mu[:2])], "broadcast"),
        (lambda law, mu: law.nothing, "nothing"),
    ],
)
def test_a_body_that_is_none_is_refused_with_the_spec(
    package, monkeypatch, branches, words
):
    monkeypatch.setattr(rheology.find("zener"), "branches", branches)
    with pytest.raises(SpecError, match=words) as refused:
        parse_campaign(zener())
    (problem,) = refused.value.problems
    assert problem.path == "model.layers[1].rheology.zener"
    assert problem.hint == "correct its package"


def test_a_grid_of_viscosities_may_not_replace_its_own(package, tmp_path):
    axes = {"x": [-200.0, 200.0], "y": [-200.0, 200.0], "depth": [0.0, 150.0]}
    fields = {"vp": 8.0, "vs": 4.6, "rho": 3300.0, "viscosity": 1e19}
    data = {
        name: (tuple(axes), np.full((2, 2, 2), value)) for name, value in fields.items()
    }
    for name in (data, list(data)[:3]):
        grid = xr.Dataset({key: data[key] for key in name}, axes)
        grid.to_netcdf(tmp_path / "grid.nc", engine="h5netcdf")
        spec = zener()
        spec["model"]["grid"] = {"file": "grid.nc"}
        campaign = parse_campaign(spec, tmp_path)
        if "viscosity" not in grid:
            assert resolve(campaign, LocalFiles(tmp_path)).grid is not None
            continue
        with pytest.raises(SpecError, match=r"viscosities of zener \(mantle\)"):
            resolve(campaign, LocalFiles(tmp_path))


def test_a_worker_without_its_package_solves_nothing_and_says_what_to_install(
    package, tmp_path, monkeypatch
):
    spec = canonical_spec(parse_campaign(zener()), LocalFiles(tmp_path))
    entry.prepare(tmp_path)
    paths = os.environ["PYTHONPATH"].split(os.pathsep)
    without = [path for path in paths if path != str(package)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(without))
    entry.close_children()
    envelope = Envelope(
        token="t1",
        kind="model",
        campaign="c1",
        physics="viscoelastic",
        spec=spec,
        store=str(tmp_path),
    )
    try:
        receipt = read_receipt(entry.execute(envelope.as_json()))
    finally:
        entry.close_children()
    assert receipt.error is not None
    assert receipt.error.error_class == "not_installed"
    assert "lacks a rheology of the spec, zener: is not a known key" in (
        receipt.error.message
    )
    assert "install its package where workers run" in receipt.error.message
    assert entry.read_manifest(tmp_path, "t1") is None


def test_a_spec_of_a_rheology_that_is_nowhere_names_those_that_are():
    rheology.find.cache_clear()
    spec = with_mantle(rheology={"zenner": {"viscosity": 1e18}})
    with pytest.raises(SpecError) as refused:
        parse_campaign(spec)
    (problem,) = refused.value.problems
    assert problem.path == "model.layers[1].rheology.zenner"
    assert problem.message == "is not a known key"
    assert "maxwell, burgers" in problem.hint or "did you mean" in problem.hint
