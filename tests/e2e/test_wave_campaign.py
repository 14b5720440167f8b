"""Campaigns of waves: service, store, sampling, reuse, checkpoints, bad input."""

import json

import numpy as np
import pytest
from wave_cases import (
    SPEC,
    STATIONS,
    VP,
    VS,
    prepared,
    solve,
    with_waves,
    write_stations,
)

from afterslip import Client, SpecError
from afterslip.archive import GreensStore
from afterslip.client.errors import ApiError
from afterslip.errors import ArchiveError
from afterslip.physics.waves.checks import plan_voxels
from afterslip.physics.waves.spec import WaveCampaign
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_common.geometry import PlaneFault
from afterslip_solver.reference.okada import Rectangles, surface_displacement
from afterslip_solver.sources import UnitSource
from afterslip_solver.waves.fault import plane_points, shape_at
from afterslip_workers.engines.waves import model_file
from afterslip_workers.engines.waves.engine import engine
from afterslip_workers.errors import classify


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_stations(tmp_path_factory.mktemp("spec"))


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with Client.embedded(tmp_path_factory.mktemp("service"), workers=1) as client:
        yield client


@pytest.fixture(scope="module")
def campaign(client, folder):
    return client.submit(parse_campaign(SPEC, folder)).wait(timeout=280)


def okada(spec):
    """Offsets (patch and component, station, 3) per metre of slip."""
    azimuth = np.radians(30.0)
    along = np.array([np.sin(azimuth), np.cos(azimuth)])
    xy = 1e3 * np.array(list(STATIONS.values()))
    poisson = (VP**2 - 2 * VS**2) / (2 * (VP**2 - VS**2))
    found = {}
    for i in range(2):
        for j in range(2):
            x, y = 1e3 * along * (2.0 * (i + 0.5) - 2.0)
            patch = Rectangles(x, y, 2e3 + 1.5e3 * j, 30.0, 90.0, 2e3, 1.5e3)
            for c in range(2):
                slip = np.eye(3)[c]
                found[i, j, c] = surface_displacement(xy, patch, slip, poisson)
    return found


def test_offsets_of_a_campaign_are_okadas(campaign):
    greens = campaign.greens()
    assert greens.attrs["physics"] == "waves"
    assert greens["seismogram"].dims == ("source", "station", "component", "sample")
    assert greens["displacement"].sizes["sample"] == 41
    exact = okada(SPEC)
    patch, kind = greens["source_patch"].values, greens["source_component"].values
    offset = greens["offset"].values
    for row in range(8):
        expected = exact[(*map(int, patch[row]), int(kind[row]))]
        error = np.abs(offset[row] - expected).max() / np.abs(expected).max()
        # sides at twice the distance of the stations, voxels of 580 m: 6.5 % measured
        assert error < 0.08
    assert np.isclose(greens["source_area"].values, 3e6).all()
    assert float(greens["energy_left"].max()) < 1e-2


def test_velocity_is_the_rate_of_displacement(campaign):
    greens = campaign.greens()
    u, v = (greens[n].values.astype(float) for n in ("displacement", "seismogram"))
    total = np.cumsum(0.5 * (v[..., 1:] + v[..., :-1]), axis=-1) * 0.4
    np.testing.assert_allclose(total, u[..., 1:], atol=0.06 * np.abs(u).max())
    np.testing.assert_allclose(u[..., -1], greens["offset"].values, rtol=1e-6)


def test_stations_are_sampled_and_other_places_refused(campaign):
    found = campaign.sample({"A": STATIONS["A"]}, ["0 s", "8 s", "16 s"])
    stored = campaign.greens()["displacement"].values[:, 0]
    np.testing.assert_allclose(found.values[:, 1, 0], stored[..., 20], rtol=1e-5)
    np.testing.assert_allclose(found.values[:, 2, 0], stored[..., 40], rtol=1e-5)
    with pytest.raises(ApiError, match="only those are stored"):
        campaign.sample({"X": (1.0, 1.0)}, ["8 s"])
    with pytest.raises(ApiError, match="after the end of the series, 16 s"):
        campaign.sample({"A": STATIONS["A"]}, ["17 s"])
    with pytest.raises(ArchiveError, match="stations alone"):
        GreensStore(campaign.greens()).evaluate([1.0])


def test_a_shorter_campaign_takes_series_and_a_longer_one_solves(
    client, campaign, folder
):
    def reused(**changes):
        spec = {**with_waves(**changes), "name": str(changes)}
        made = client.submit(parse_campaign(spec, folder)).wait(timeout=280)
        return made, made.data["model"]["n_reused"]

    shorter, count = reused(duration="8 s")
    assert count == 8
    ours = campaign.greens()["seismogram"].values[..., :21]
    np.testing.assert_array_equal(shorter.greens()["seismogram"].values, ours)
    assert reused(duration="8 s", source_time={"kind": "brune", "corner": 0.3})[1] == 0


def test_the_whole_ground_is_recorded_and_sampled_between_points(client, folder):
    spec = {**with_waves(surface={"spacing": 0.9}, duration="8 s"), "name": "ground"}
    spec["sources"] = {**SPEC["sources"], "along_strike": 1, "down_dip": 1}
    made = client.submit(parse_campaign(spec, folder)).wait(timeout=280)
    greens = made.greens()
    assert greens["wavefield"].dims == (
        "source",
        "row",
        "column",
        "component",
        "sample",
    )
    # a station, once from points around it and once as it was recorded
    at = made.sample({"B": STATIONS["B"]}, ["4 s", "8 s"]).values[:, :, 0]
    own = greens["displacement"].values[:, 1][..., [10, 20]].transpose(0, 2, 1)
    np.testing.assert_allclose(at, own, atol=0.03 * np.abs(own).max())
    every = GreensStore(greens).evaluate([8.0], nodes=[5], sources=[1])
    assert every.shape == (1, 1, 1, 3)


def test_a_stopped_group_goes_on_from_its_checkpoint_bit_for_bit(
    folder, tmp_path, monkeypatch
):
    from afterslip_workers.errors import CancelledError

    monkeypatch.setenv("AFTERSLIP_CHECKPOINT_S", "0")
    parts = prepared(folder, tmp_path, with_waves(duration="6 s"))
    asked = iter(range(100))
    with pytest.raises(CancelledError):
        solve(parts, lambda: next(asked) > 9)
    found = solve(parts)
    assert found.stats["resumed_from"] >= 8
    whole = solve(prepared(folder, tmp_path / "other", with_waves(duration="6 s")))
    assert "resumed_from" not in whole.stats
    for name, values in whole.values.items():
        np.testing.assert_array_equal(found.values[name], values)


def test_a_second_try_halves_the_step(folder, tmp_path):
    parts = prepared(folder, tmp_path, with_waves(duration="4 s"))
    first, second = solve(parts), solve(parts, escalation=1)
    assert second.stats["dt_s"] <= 0.5 * first.stats["limit_s"]
    a, b = (found.values["displacement"] for found in (first, second))
    np.testing.assert_allclose(a, b, atol=0.02 * np.abs(a).max())


def test_a_model_reads_back_as_it_was_written(folder, tmp_path):
    model = prepared(folder, tmp_path)["model"]()
    model_file.save(tmp_path / "ground.npz", model)
    again = model_file.load(tmp_path / "ground.npz")
    assert again.grid == model.grid
    np.testing.assert_array_equal(again.medium.lam, model.medium.lam)
    for name in ("position", "area", "strike", "along", "cell"):
        ours, theirs = (m.faults["main"] for m in (model, again))
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert again.faults["main"].open_top is model.faults["main"].open_top


def test_voxels_that_need_more_memory_than_is_free_are_refused(
    folder, tmp_path, monkeypatch
):
    from afterslip_workers.engines.waves import solving
    from afterslip_workers.errors import TaskError

    parts = prepared(folder, tmp_path)
    monkeypatch.setattr(solving, "free_on_host", lambda: 1_000_000)
    with pytest.raises(TaskError, match=r"M nodes need .* GB, and 0\.001 GB are free"):
        solve(parts)


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"frequency": 2.0}, "waves.sampling", "at most 0.2 s for 2 Hz"),
        ({"sampling": "1 s"}, "waves.sampling", "at most 0.6667 s"),
        ({"duration": "1 s"}, "waves.duration", "ends before the source"),
        ({"points_per_wavelength": 3}, "waves.points_per_wavelength", "at least 5"),
        (
            {"source_time": {"kind": "smooth_step", "rise": "0.3 s"}},
            "waves.source_time",
            "beyond 1.2 Hz",
        ),
        ({"source_time": {"kind": "brune"}}, "waves.source_time.corner", "is missing"),
        ({"colour": 1}, "waves.colour", "is not a known key"),
        ({"digits": 5}, "waves.digits", "belongs to precision: int8"),
        (
            {"precision": "int8"},
            "waves.precision",
            "is of the orthogonal element, and scheme is selective",
        ),
        (
            {"attenuation": {"band": [0.5, 0.1]}},
            "waves.attenuation.band",
            "must grow, by a factor of at most 300",
        ),
        (
            {"attenuation": {"band": [0.1, 0.5], "reference": 2.0}},
            "waves.attenuation.reference",
            "is outside the band, 0.1 to 0.5 Hz",
        ),
        (
            {"attenuation": {"band": [0.1, 0.5]}},
            "model.layers[0].qp",
            "is missing, and waves.attenuation is given",
        ),
        (
            {"absorbing": {"kind": "free", "cells": 3}},
            "waves.absorbing.cells",
            "belongs to kind: sponge",
        ),
    ],
)
def test_settings_that_cannot_be_right_are_refused_with_numbers(changes, path, words):
    with pytest.raises(SpecError) as caught:
        parse_campaign(with_waves(**changes))
    assert any(p.path == path and words in str(p) for p in caught.value.problems)


def test_what_only_slow_deformation_has_is_refused():
    layer = {**SPEC["model"]["layers"][0], "rheology": {"maxwell": {"viscosity": 1e19}}}
    model = {
        **SPEC["model"],
        "layers": [layer],
        "mesh": {"size": {"fault": 2, "far": 4}},
        "gravity": {"restoring": True},
        "boundary": {"sides": "fixed"},
    }
    slow = {"vp": 6.0, "vs": 2.0}
    for spec, paths in (
        (
            {**SPEC, "model": model},
            ["layers[0].rheology", "mesh", "gravity", "boundary"],
        ),
        ({**SPEC, "times": {"until": "1 yr"}}, ["times"]),
        ({**SPEC, "stations": None}, ["stations"]),
    ):
        with pytest.raises(SpecError) as caught:
            parse_campaign(spec)
        found = " ".join(problem.path for problem in caught.value.problems)
        assert all(path in found for path in paths), found
    orthogonal = with_waves(scheme="orthogonal")
    orthogonal["model"] = {
        **SPEC["model"], "layers": [{**SPEC["model"]["layers"][0], **slow}]
    }  # fmt: skip
    with pytest.raises(SpecError, match=r"vp/vs 3\.00"):
        parse_campaign(orthogonal)


def of_waves(spec, folder):
    campaign = parse_campaign(spec, folder)
    assert isinstance(campaign, WaveCampaign)
    return campaign


def checked(spec, folder):
    campaign = of_waves(spec, folder)
    inputs = resolve(campaign, LocalFiles(folder))
    return engine.physics.work(campaign, inputs)


def test_files_that_do_not_fit_the_voxels_are_refused_with_numbers(folder, tmp_path):
    work = checked(SPEC, folder)
    assert work.sources == 8
    # vs / (0.6 Hz x 10) is 577 m: 42 x 42 x 21
    assert list(work.elements.values()) == [42 * 42 * 21]
    with pytest.raises(SpecError, match=r"is on the sponge, the outermost 8\.66 km"):
        checked(with_waves(absorbing={"kind": "sponge", "cells": 15}), folder)
    with pytest.raises(SpecError, match=r"coarse for waves that are .* km long"):
        checked(with_waves(surface={"spacing": 1.0}), folder)
    vast = with_waves(
        surface={"spacing": 0.01}, duration="4000 s", points_per_wavelength=60
    )
    with pytest.raises(SpecError, match=r"GB a source, and 2 GB are allowed"):
        checked(vast, folder)
    slow = {"kind": "smooth_step", "rise": "30 s"}
    own = {"frequency": 0.05, "points_per_wavelength": 5, "duration": "60 s"}
    small = with_waves(**own, source_time=slow)
    with pytest.raises(SpecError, match=r"holds 2 voxels of 13\.9 km, and 8"):
        checked(small, folder)


def test_a_step_above_the_limit_is_refused_with_it(folder, tmp_path):
    from afterslip_solver.waves.grid import WaveError

    parts = prepared(folder, tmp_path, with_waves(step="0.3 s"))
    with pytest.raises(
        WaveError, match=r"above the stable limit of these voxels, 0\.0"
    ) as refused:
        solve(parts)
    assert classify(refused.value).error_class == "bad_input"


def test_a_source_time_function_is_read_from_a_file(folder, tmp_path):
    times = np.linspace(0.0, 2.0, 41)
    share = times / 2 - np.sin(np.pi * times) / (2 * np.pi)
    lines = [f"{t},{s}" for t, s in zip(times, share, strict=True)]
    (folder / "growth.csv").write_text("\n".join(["time_s,share", *lines]) + "\n")
    own = {"source_time": {"kind": "file", "file": "growth.csv"}, "duration": "6 s"}
    a = solve(prepared(folder, tmp_path, with_waves(**own)))
    b = solve(prepared(folder, tmp_path / "b", with_waves(duration="6 s")))
    ours, theirs = (found.values["displacement"] for found in (a, b))
    np.testing.assert_allclose(ours, theirs, atol=3e-3 * np.abs(theirs).max())
    (folder / "growth.csv").write_text("time_s,share\n0,0\n1,2\n")
    with pytest.raises(SpecError, match="from 0 to 2: divide by the last one"):
        prepared(folder, tmp_path / "c", with_waves(**own))


def test_keys_know_the_numbers_and_nothing_else(folder, tmp_path):
    def keys(**changes):
        campaign = of_waves({**with_waves(**changes), "name": "x"}, folder)
        model = prepared(folder, tmp_path / "k", SPEC)["model"]()
        units = engine.units(campaign, model)
        return json.dumps(engine.keys(campaign, model, units)["keys"])

    assert keys() == keys(backend="auto") == keys(duration="99 s")
    assert keys() != keys(sampling="0.2 s")
    assert keys() != keys(scheme="trilinear")
    assert keys() != keys(absorbing={"kind": "free"})


def test_patches_share_a_fault_to_the_last_square_metre():
    fault = plane_points(PlaneFault("f", 0, 0, 1e3, 20.0, 60.0, 5e3, 3e3), 333.0)
    total = np.zeros(len(fault.area))
    for i in range(3):
        for j in range(2):
            source = UnitSource(0, "f", (i, j), "strike", "patch", (3, 2), (0, 0))
            shape = shape_at(source, fault)
            assert shape @ fault.area == pytest.approx(15e6 / 6)
            total += shape
    np.testing.assert_allclose(total, 1.0)


def test_voxels_follow_the_slowest_material(folder):
    spec = {**SPEC, "model": {**SPEC["model"]}}
    soft = {"name": "soft", "bottom": 2, "vp": 3.0, "vs": 1.5, "rho": 2200}
    spec["model"]["layers"] = [soft, *SPEC["model"]["layers"]]
    campaign = of_waves(spec, folder)
    plan = plan_voxels(campaign, resolve(campaign, LocalFiles(folder)))
    assert plan.h == pytest.approx(1500.0 / 6.0)
    assert plan.slowest == 1500.0
