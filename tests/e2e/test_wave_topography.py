"""Waves of specs with topography."""

import copy
import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from wave_cases import SPEC, prepared, solve, with_waves, write_stations

from afterslip.errors import SpecError
from afterslip.physics.waves import physics
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_workers.engines.waves import model_file
from afterslip_workers.engines.waves.engine import engine
from afterslip_workers.engines.waves.forward import run_forward

ROOT = Path(__file__).parent.parent.parent
SLOPE = 0.12
PLANE = {"x": 0, "y": 0, "top": 2, "strike": 0, "dip": 60, "length": 4, "width": 3}
SHORT = {"duration": "6 s", "points_per_wavelength": 7}


def write_ground(folder, height, name="ground.csv"):
    """Write heights, km, of places, km; and the stations of the small campaign."""
    side = np.linspace(-12.0, 12.0, 49)
    rows = [f"{x:g},{y:g},{height(x, y):.9g}" for x in side for y in side]
    (folder / name).write_text("\n".join(["x_km,y_km,height_km", *rows]) + "\n")
    return write_stations(folder)


def under(spec, **model):
    """The same spec under the ground of a file."""
    own = {"topography": "ground.csv", **model}
    return {**spec, "model": {**spec["model"], **own}}


@pytest.fixture(scope="module")
def hill(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hill")
    return write_ground(
        folder, lambda x, y: 1.2 * np.exp(-((x - 2) ** 2 + y**2) / 20.0) - 0.1 * y / 12
    )


def forward(**parts: Any) -> dict[str, Any]:
    spec = copy.deepcopy(with_waves(**{**SHORT, **parts.pop("waves", {})}))
    for key in ("sources", "stations"):
        del spec[key]
    spec["model"]["faults"][0]["plane"] = PLANE
    spec["slip"] = [{"fault": "main", "strike": 0.5, "dip": 1.0}]
    spec["points"] = [[3, 3], [-2, 4], [4, -1.5], [-5, -4]]
    return {**spec, **parts}


@pytest.mark.slow
def test_late_displacement_of_a_slope_is_okadas_turned_by_its_angle(tmp_path):
    write_ground(tmp_path, lambda x, _: SLOPE * x)
    long = {"duration": "16 s", "points_per_wavelength": 10}
    exact = runpy.run_path(str(ROOT / "benchmarks/topography.py"))["exact"]
    xy = 1e3 * np.array(forward()["points"])
    poisson = (6.0**2 - 2 * 3.464**2) / (2 * (6.0**2 - 3.464**2))
    wanted = exact(xy, PLANE, 12.0, poisson)
    # the slip of the benchmark is that of these specs
    errors = [
        np.abs(run_forward(spec, base=tmp_path)["offset"].values - wanted).max()
        / np.abs(wanted).max()
        for spec in (under(forward(waves=long)), forward(waves=long))
    ]
    # sides at twice the distance of the points, as for flat ground; without topography
    # the same spec is off by more
    assert errors[0] < 0.08
    assert errors[1] > 1.5 * errors[0]


def test_receivers_under_a_hill_make_the_series_of_sources_to_rounding(hill, tmp_path):
    own = {**SHORT, "precision": "fp64"}
    found = {
        way: solve(
            prepared(hill, tmp_path / way, under(with_waves(**own, solve=way)))
        ).values
        for way in ("sources", "receivers")
    }
    ours, theirs = found["receivers"], found["sources"]
    most = np.abs(theirs["offset"]).max()
    np.testing.assert_allclose(ours["offset"], theirs["offset"], atol=1e-10 * most)
    largest = np.abs(theirs["seismogram"]).max()
    np.testing.assert_allclose(
        ours["seismogram"], theirs["seismogram"], atol=5e-7 * largest
    )
    # and not those of flat ground
    flat = solve(prepared(hill, tmp_path / "flat", with_waves(**own, solve="sources")))
    change = np.abs(flat.values["seismogram"] - theirs["seismogram"]).max()
    assert change > 0.03 * largest


@pytest.mark.gpu
@pytest.mark.parametrize("way", ["sources", "receivers"])
def test_a_gpu_makes_the_series_of_the_cpu_under_a_hill(hill, tmp_path, way):
    own = {**SHORT, "precision": "fp64", "solve": way}
    exact, found = (
        solve(
            prepared(
                hill, tmp_path / backend, under(with_waves(**own, backend=backend))
            )
        )
        for backend in ("cpu", "gpu")
    )
    assert found.stats["device"] != exact.stats["device"]
    most = np.abs(exact.values["offset"]).max()
    error = np.abs(found.values["offset"] - exact.values["offset"]).max() / most
    assert error < 1e-11


def test_a_model_under_a_hill_reads_back_as_it_was_written(hill, tmp_path):
    parts = prepared(hill, tmp_path, under(with_waves(**SHORT)))
    model = parts["model"]()
    model_file.save(tmp_path / "model.npz", model)
    again = model_file.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.fill, model.fill)
    assert again.nodes is not None
    np.testing.assert_array_equal(again.nodes.below, model.nodes.below)
    np.testing.assert_array_equal(again.nodes.share, model.nodes.share)
    assert ((model.fill > 0.0) & (model.fill < 1.0)).any()
    flat = prepared(hill, tmp_path / "flat", with_waves(**SHORT))
    spec = parts["spec"]
    keys = [
        engine.keys(spec, one, engine.units(spec, one))["model"]
        for one in (model, again, flat["model"]())
    ]
    assert keys[0] == keys[1] != keys[2]


def test_the_whole_ground_of_a_hill_is_recorded(hill, tmp_path):
    spec = under(with_waves(**SHORT, surface={"spacing": 0.9}))
    parts = prepared(hill, tmp_path, spec)
    found = solve(parts)
    field = found.values["wavefield"]
    layout = physics.layout(parts["facts"])
    assert field.shape[1:3] == (layout.of("row"), layout.of("column"))
    # nothing of it is a node in air, which would stay at rest
    assert (np.abs(field).max(axis=(0, 3, 4)) > 0.0).all()


def test_quality_factors_follow_the_ground(hill, tmp_path):
    soft = {"name": "soft", "bottom": 3, "vp": 4.5, "vs": 2.6, "rho": 2500}
    layers = [
        {**soft, "qp": 60, "qs": 30},
        {**SPEC["model"]["layers"][0], "qp": 120, "qs": 60},
    ]
    slow = {"kind": "smooth_step", "rise": "3 s"}
    band = {"attenuation": {"band": [0.02, 0.4]}, "frequency": 0.4}
    waves = with_waves(**SHORT, **band, source_time=slow)
    parts = prepared(hill, tmp_path, under(waves, layers=layers))
    model = parts["model"]()
    assert model.quality.shape == (2, *model.medium.mu.shape)
    # the softer rock has the lower Q, but where a voxel has both
    rock, density = model.fill > 0.0, model.medium.rho
    assert (model.quality[1][rock & (density < 2501.0)] == 30.0).all()
    assert (model.quality[1][rock & (density > 2699.0)] == 60.0).all()
    assert np.isfinite(solve(parts).values["seismogram"]).all()


def test_a_plane_that_reaches_the_ground_slips_in_rock(tmp_path):
    # a third of the uppermost voxels is rock
    write_ground(tmp_path, lambda x, _: 0.3 + 0.01 * x)
    spec = under(forward())
    spec["model"]["faults"][0]["plane"] = {**PLANE, "top": 0}
    found = run_forward(spec, base=tmp_path)
    note = next(n for n in json.loads(found.attrs["notes"]) if "mostly air" in n)
    assert "cells of fault main were in voxels that are mostly air" in note
    # moved down by less than a voxel of 0.83 km
    assert 0.0 < float(note.split("up to ")[1].split(" km")[0]) < 0.83
    assert found.attrs["moment"] == pytest.approx(
        2700 * 3464.0**2 * 12e6 * np.hypot(0.5, 1.0), rel=0.05
    )


def test_what_does_not_fit_the_ground_is_refused_with_numbers(hill, tmp_path):
    couple = {"strike": 30, "dip": 60, "rake": 40, "magnitude": 5.5}
    source = {"x": 2, "y": 0, "depth": 0.02, "couple": couple}
    shallow = forward(moment_tensors=[source])
    del shallow["slip"]
    run_forward(shallow, base=hill)
    write_ground(tmp_path, lambda x, y: 0.3)
    with pytest.raises(SpecError) as caught:
        run_forward(under(shallow), base=tmp_path)
    (problem,) = caught.value.problems
    assert problem.path == "moment_tensors[0].depth"
    assert "voxel of 0.825 km at the ground that is mostly air" in problem.message
    # 0.28 km above a plane of nodes
    assert "rock is 0.28 km deeper" in problem.message
    assert problem.hint.startswith("write 0.3 or more")
    for height, words in (
        (lambda x, y: 0.8 * x, "smooth it until slopes are below 0.5"),
        (lambda x, y: 4.0, "more than a quarter of the domain's depth"),
    ):
        write_ground(tmp_path, height)
        with pytest.raises(SpecError, match=words):
            run_forward(under(forward()), base=tmp_path)


def test_voxels_above_the_sea_count_in_what_a_campaign_takes(hill, tmp_path):
    campaign: Any = parse_campaign(under(with_waves(**SHORT)), hill)
    inputs = resolve(campaign, LocalFiles(hill))
    (counted,) = physics.work(campaign, inputs).elements.values()
    grid = prepared(hill, tmp_path, under(with_waves(**SHORT)))["model"]().grid
    assert counted == grid.n_voxel


def test_a_surface_that_reaches_above_the_sea_floor_ends_there(tmp_path):
    write_ground(tmp_path, lambda x, y: -0.9)
    rows = [
        f"{0.5 * k:g},{0.5 * i:g},{0.3 + 0.7 * k:g}"
        for i in range(-6, 7)
        for k in range(9)
    ]
    (tmp_path / "top.csv").write_text("\n".join(["x_km,y_km,depth_km", *rows]) + "\n")
    fault = {"name": "main", "surface": {"file": "top.csv"}}
    spec = under(with_waves(**SHORT), faults=[fault])
    found = prepared(tmp_path, tmp_path / "store", spec)["model"]().faults["main"]
    # as in meshes, its top edge is its line on the ground
    assert found.open_top
    assert -1400.0 < found.position[:, 2].max() < -900.0
    # and its depths count from the sea: 5.9 km at the bottom
    assert found.position[:, 2].min() == pytest.approx(-5.9e3, abs=400.0)
