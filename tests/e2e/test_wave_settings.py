"""Attenuation, integers, steps and faults of campaigns of waves."""

from typing import Any

import numpy as np
import pytest
from wave_cases import SPEC, prepared, solve, with_waves, write_stations

from afterslip import SpecError
from afterslip.error_class import ErrorClass
from afterslip.identity import plain
from afterslip.physics.waves import physics
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_service.engine import retry
from afterslip_solver.waves.fastest import highest_frequency
from afterslip_solver.waves.march import UnstableError
from afterslip_workers.engines.waves.engine import engine
from afterslip_workers.engines.waves.forward import run_forward


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_stations(tmp_path_factory.mktemp("spec"))


def attenuating(qp, qs, **changes):
    layer = {**SPEC["model"]["layers"][0], "qp": qp, "qs": qs}
    own = with_waves(**changes)
    return {**own, "model": {**SPEC["model"], "layers": [layer]}}


BAND = {"attenuation": {"band": [0.02, 0.6]}}


@pytest.mark.parametrize(
    ("spec", "path", "words"),
    [
        (attenuating(80, 40), "model.layers[0].qp", "needs waves.attenuation"),
        (attenuating(100, 40, **BAND), "model.layers[0].qp", "is above 90"),
        (attenuating(9, 9, **BAND), "model.layers[0].qs", "must be at least 10"),
        (
            attenuating(80, 40, **BAND, precision="int8", scheme="orthogonal"),
            "waves.precision",
            "has no attenuation",
        ),
    ],
)
def test_quality_factors_that_cannot_be_right_are_refused(spec, path, words):
    with pytest.raises(SpecError) as caught:
        parse_campaign(spec)
    assert any(p.path == path and words in str(p) for p in caught.value.problems)


def test_attenuation_takes_energy_out_of_series(folder, tmp_path):
    spec = attenuating(30, 15, **BAND, duration="8 s")
    found = [
        solve(prepared(folder, tmp_path / name, own)).values["seismogram"]
        for name, own in (("q", spec), ("elastic", with_waves(duration="8 s")))
    ]
    strength = [np.sqrt((v.astype(float) ** 2).sum(axis=-1)) for v in found]
    # half a wavelength to two from the source: at most exp(-2 pi / Q)
    assert 0.5 < np.median(strength[0] / strength[1]) < 0.95


def test_integers_make_the_series_of_fp64(folder, tmp_path):
    own = {"duration": "2.4 s", "points_per_wavelength": 5, "scheme": "orthogonal"}
    small: dict[str, Any] = {"domain": {"x": [-7, 7], "y": [-7, 7], "depth": 10}}
    small["layers"] = [{**SPEC["model"]["layers"][0], "bottom": 10}]
    series = {}
    for name, how in (
        ("fp64", {"precision": "fp64"}),
        ("seven", {"precision": "int8"}),
        ("three", {"precision": "int8", "digits": 3}),
    ):
        spec = with_waves(**own, **how)
        spec["model"] = {**SPEC["model"], **small}
        found = solve(prepared(folder, tmp_path / name, spec))
        series[name] = found.values["displacement"].astype(float)
    largest = np.abs(series["fp64"]).max()
    # stored in FP32: 6e-8 of each number
    np.testing.assert_allclose(series["seven"], series["fp64"], atol=1e-7 * largest)
    off = np.abs(series["three"] - series["fp64"]).max() / largest
    # forces of three digits are wrong by 2.4e-7 of the largest of an element
    assert 1e-7 < off < 1e-4


def slow_down(monkeypatch):
    """Let voxels seem slower than they are, so that steps are too long."""

    def low(*parts):
        return 0.7 * highest_frequency(*parts)

    monkeypatch.setattr("afterslip_solver.waves.march.highest_frequency", low)


def test_energy_that_grows_ends_a_try_and_the_next_one_halves_the_step(
    folder, tmp_path, monkeypatch
):
    slow_down(monkeypatch)
    parts = prepared(folder, tmp_path, with_waves(duration="8 s"))
    with pytest.raises(UnstableError, match=r"kinetic energy is .* J.* gave at"):
        solve(parts)
    assert engine.failures[UnstableError] is ErrorClass.UNSTABLE
    failures = retry.counted({}, ErrorClass.UNSTABLE)
    assert retry.decide(ErrorClass.UNSTABLE, failures).action is retry.Action.RETRY
    again = solve(parts, escalation=retry.escalate(failures).strict)
    assert np.isfinite(again.values["seismogram"]).all()
    assert again.stats["dt_s"] <= 0.5 * again.stats["limit_s"]
    # and that was the last one
    twice = retry.counted(failures, ErrorClass.UNSTABLE)
    assert retry.decide(ErrorClass.UNSTABLE, twice).action is retry.Action.FAIL


def test_a_forward_run_whose_energy_grows_halves_its_step(folder, monkeypatch):
    spec = with_waves(duration="8 s")
    spec = {key: spec[key] for key in spec if key not in ("sources", "stations")}
    spec |= {"slip": [{"fault": "main", "strike": 1.0}], "points": [[3, 3]]}
    exact = run_forward(spec, base=folder)
    slow_down(monkeypatch)
    found = run_forward(spec, base=folder)
    # half of 1 / 0.7 of the step that is stable, before it divides the sampling
    assert 0.5 < found.attrs["dt_s"] / exact.attrs["dt_s"] <= 0.75
    whole = exact["velocity"].values
    np.testing.assert_allclose(
        found["velocity"].values, whole, atol=0.02 * np.abs(whole).max()
    )


@pytest.mark.parametrize(
    ("plane", "words"),
    [
        ({"length": 40}, "outside the domain"),
        ({"top": 11}, "outside the domain"),
    ],
)
def test_a_fault_that_leaves_the_grid_is_refused_with_its_place(folder, plane, words):
    spec = with_waves()
    fault = spec["model"]["faults"][0]
    own = {**fault, "plane": {**fault["plane"], **plane}}
    spec["model"] = {**spec["model"], "faults": [own]}
    campaign = parse_campaign(spec, folder)
    with pytest.raises(SpecError, match=words) as caught:
        resolve(campaign, LocalFiles(folder))
    assert caught.value.problems[0].path.startswith("model.faults[0]")


def test_several_gpus_are_refused_without_them_and_change_no_key(folder, tmp_path):
    with pytest.raises(SpecError, match=r"cannot be shared by several GPUs.*gpus: 1"):
        parse_campaign(with_waves(gpus=2), folder)
    spec = with_waves(gpus=2, backend="auto")
    parts = prepared(folder, tmp_path, spec)
    with pytest.raises(SpecError, match="GPUs are asked for, and the backend here is"):
        solve(parts)
    one: Any = parse_campaign(with_waves(backend="auto"), folder)
    assert physics.settings(parts["spec"]) == physics.settings(one)
    assert physics.gpus(plain(parts["spec"])) == 2
    assert physics.gpus(plain(one)) == 1
