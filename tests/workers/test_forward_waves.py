"""A forward run of waves: slip, moment tensors, series, what it refuses."""

import copy
import csv
import json
from typing import Any

import numpy as np
import pytest
import typer
import xarray as xr
from typer.testing import CliRunner

from afterslip.errors import SpecError
from afterslip.schemas.forward import Forward
from afterslip_solver.reference.okada import Rectangles, surface_displacement
from afterslip_workers import commands
from afterslip_workers.engines.forward import engine_of
from afterslip_workers.engines.waves.forward import run_forward

VP, VS = 6.0, 3.464
POISSON = (VP**2 - 2 * VS**2) / (2 * (VP**2 - VS**2))
POINTS = [(3.0, 3.0), (-2.0, 4.0), (4.0, -1.5), (-5.0, -4.0)]
SPEC: dict[str, Any] = {
    "name": "waves of an earthquake",
    "physics": "waves",
    "model": {
        "domain": {"x": [-12, 12], "y": [-12, 12], "depth": 12},
        "layers": [{"name": "rock", "bottom": 12, "vp": VP, "vs": VS, "rho": 2700}],
        "faults": [
            {
                "name": "main",
                "plane": {"x": 0, "y": 0, "top": 2, "strike": 30, "dip": 60,
                          "length": 4, "width": 3},
            }
        ],
    },
    "slip": [{"fault": "main", "strike": 0.5, "dip": 1.0}],
    "points": [list(point) for point in POINTS],
    "waves": {
        "frequency": 0.6,
        "points_per_wavelength": 10,
        "duration": "16 s",
        "sampling": "0.4 s",
        "source_time": {"kind": "smooth_step", "rise": "2 s"},
        "backend": "cpu",
    },
}  # fmt: skip
COUPLE = {"strike": 30, "dip": 60, "rake": 40, "magnitude": 5.5}


def changed(**parts):
    spec = {**copy.deepcopy(SPEC), **parts}
    return {key: value for key, value in spec.items() if value is not None}


def without_fault(**parts):
    spec = changed(slip=None, **parts)
    del spec["model"]["faults"]
    return spec


def quick(spec):
    spec["waves"].update(duration="4 s", points_per_wavelength=6)
    return spec


@pytest.fixture(scope="module")
def slipped():
    return run_forward(SPEC)


def test_late_displacement_of_slip_is_okadas(slipped):
    patch = Rectangles(0.0, 0.0, 2e3, 30.0, 60.0, 4e3, 3e3)
    xy = 1e3 * np.array(POINTS)
    exact = surface_displacement(xy, patch, np.array([0.5, 1.0, 0.0]), POISSON)
    # sides at twice the distance of the points, voxels of 580 m
    error = np.abs(slipped["offset"].values - exact).max() / np.abs(exact).max()
    assert error < 0.08
    assert slipped.attrs["moment"] == pytest.approx(
        2700 * (VS * 1e3) ** 2 * 12e6 * np.hypot(0.5, 1.0), rel=1e-6
    )
    assert slipped["velocity"].dims == ("time", "point", "component")
    assert float(slipped["time"][-1]) == 16.0


def test_a_moment_tensor_of_a_catalogue_is_its_double_couple():
    # Aki & Richards (2002), box 4.4, in up, south, east
    phi, delta, rake = np.radians([30.0, 60.0, 40.0])
    size = 10.0 ** (1.5 * 5.5 + 9.1)
    s, c, s2, c2 = np.sin, np.cos, np.sin(2 * delta), np.cos(2 * delta)
    north = -(s(delta) * c(rake) * s(2 * phi) + s2 * s(rake) * s(phi) ** 2)
    mixed = s(delta) * c(rake) * c(2 * phi) + 0.5 * s2 * s(rake) * s(2 * phi)
    east = s(delta) * c(rake) * s(2 * phi) - s2 * s(rake) * c(phi) ** 2
    tensor = {
        "mrr": size * s2 * s(rake),
        "mtt": size * north,
        "mpp": size * east,
        "mrt": -size * (c(delta) * c(rake) * c(phi) + c2 * s(rake) * s(phi)),
        "mrp": size * (c(delta) * c(rake) * s(phi) - c2 * s(rake) * c(phi)),
        "mtp": -size * mixed,
    }
    at = {"x": 0.7, "y": -0.4, "depth": 3.0}
    one, other = (
        run_forward(quick(without_fault(moment_tensors=[{**at, **how}])))
        for how in ({"couple": COUPLE}, {"tensor": tensor})
    )
    whole = one["displacement"].values
    np.testing.assert_allclose(
        other["displacement"].values, whole, atol=1e-6 * np.abs(whole).max()
    )
    assert one.attrs["magnitude"] == pytest.approx(5.5)


def test_a_small_fault_moves_the_ground_as_a_point_does():
    plane = {"x": 0, "y": 0, "depth": 3.0, "strike": 30, "dip": 60,
             "length": 0.4, "width": 0.4}  # fmt: skip
    rake = np.radians(40.0)
    own = {"fault": "main", "strike": float(np.cos(rake)), "dip": float(np.sin(rake))}
    spec = quick(changed(slip=[own]))
    spec["model"]["faults"][0]["plane"] = plane
    fault = run_forward(spec)
    source = {"x": 0, "y": 0, "depth": 3.0, "couple": COUPLE}
    source["couple"] = {**COUPLE, "magnitude": fault.attrs["magnitude"]}
    point = run_forward(quick(without_fault(moment_tensors=[source])))
    whole = point["velocity"].values
    np.testing.assert_allclose(
        fault["velocity"].values, whole, atol=0.02 * np.abs(whole).max()
    )


def test_a_table_of_slip_is_the_slip_that_it_lists(tmp_path):
    rows = [
        (0.5 * t + np.cos(np.radians(30)) * np.cos(np.radians(60)) * w,
         np.sqrt(0.75) * t - 0.5 * np.cos(np.radians(60)) * w,
         2.0 + np.sin(np.radians(60)) * w, 0.5, 1.0)
        for t in (-2.5, 0.0, 2.5) for w in (-0.5, 1.5, 3.5)
    ]  # fmt: skip
    with (tmp_path / "slip.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["x_km", "y_km", "depth_km", "strike", "dip"])
        table.writerows([f"{v:.6f}" for v in row] for row in rows)
    listed = run_forward(quick(changed(slip={"file": "slip.csv"})), base=tmp_path)
    given = run_forward(quick(changed()))
    whole = given["displacement"].values
    np.testing.assert_allclose(
        listed["displacement"].values, whole, atol=1e-5 * np.abs(whole).max()
    )


def test_what_waves_cannot_do_is_refused_by_field():
    deep = changed(points=[[0.0, 0.0, 2.0]])
    with pytest.raises(SpecError, match=r"points\[0\].*2000 m below the ground"):
        run_forward(deep)
    with pytest.raises(SpecError, match="nothing would move"):
        run_forward(without_fault())
    outside = [{"x": 50, "y": 0, "depth": 3, "couple": COUPLE}]
    with pytest.raises(SpecError, match=r"moment_tensors\[0\].*outside the domain"):
        run_forward(without_fault(moment_tensors=outside))
    both = [{"x": 0, "y": 0, "depth": 3}]
    with pytest.raises(SpecError, match="one of tensor, couple"):
        run_forward(without_fault(moment_tensors=both))
    degrees = [{"lon": 1, "lat": 2, "depth": 3, "couple": COUPLE}]
    with pytest.raises(SpecError, match="needs a geographic frame"):
        run_forward(without_fault(moment_tensors=degrees))
    surface = {**SPEC["waves"], "surface": {"spacing": 0.9}}
    with pytest.raises(SpecError, match=r"waves.surface.*is for campaigns"):
        run_forward(changed(waves=surface))


def test_the_command_runs_the_physics_of_the_spec(tmp_path):
    spec = Forward.from_dict(quick(changed())).to_dict()
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    assert engine_of(tmp_path / "spec.json").physics.name == "waves"
    out = tmp_path / "motion.nc"
    app = typer.Typer()
    app.command()(commands.forward)
    path = str(tmp_path / "spec.json")
    done = CliRunner().invoke(app, [path, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "Mw 5.69" in done.output
    with xr.open_dataset(out, engine="h5netcdf") as stored:
        assert stored.attrs["physics"] == "waves"
        assert stored["velocity"].shape == (11, 4, 3)
    refused = CliRunner().invoke(app, [path, "--observations", "data.csv"])
    assert "are not made of waves" in str(refused.exception)
