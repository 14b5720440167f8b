"""A forward run agrees with closed forms and says what is wrong with a spec."""

import copy
import json

import numpy as np
import pytest
import typer
import xarray as xr
from typer.testing import CliRunner

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers.observations import read_observations
from afterslip_solver.reference import Rectangles, surface_displacement
from afterslip_workers import commands
from afterslip_workers.engines.viscoelastic.forward import run_forward
from afterslip_workers.engines.viscoelastic.synthetic import write_observations

DIP = np.radians(30)
SPEC = {
    "model": {
        "frame": {"kind": "local"},
        "domain": {"x": [-600, 600], "y": [-600, 600], "depth": 600},
        "layers": [
            {"name": "rock", "bottom": 600, "vp": 6.4, "vs": 3.69504, "rho": 2800}
        ],
        "faults": [
            {
                "name": "main",
                "plane": {
                    "x": 0,
                    "y": 0,
                    "top": 10,
                    "strike": 0,
                    "dip": 30,
                    "length": 80,
                    "width": 60,
                },
            }
        ],
        "mesh": {"size": {"fault": 9, "far": 200}},
    },
    "slip": [{"fault": "main", "dip": 1.0}],
    "points": [[float(x), 0.0] for x in range(-90, 121, 15)],
}
MANTLE = {
    "name": "mantle",
    "bottom": 600,
    "vp": 8.0,
    "vs": 4.6,
    "rho": 3300,
    "rheology": {"maxwell": {"viscosity": 1.0e19}},
}


def changed(**parts):
    return {**copy.deepcopy(SPEC), **parts}


def coarse(**parts):
    spec = changed(**parts)
    spec["model"]["domain"] = {"x": [-200, 200], "y": [-200, 200], "depth": 200}
    spec["model"]["layers"][0]["bottom"] = 200
    spec["model"]["mesh"]["size"] = {"fault": 20, "far": 100}
    return spec


@pytest.mark.parametrize("slip", [(0.0, 1.0), (1.0, 0.0)])
def test_buried_fault_agrees_with_okada(slip):
    strike, dip = slip
    result = run_forward(
        changed(slip=[{"fault": "main", "strike": strike, "dip": dip}])
    )
    xy = np.column_stack([result["x"], result["y"]])
    okada = surface_displacement(
        xy, Rectangles(0, 0, 10e3, 0, 30, 80e3, 60e3), (strike, dip, 0)
    )
    error = np.abs(result["displacement"].values[0] - okada).max()
    assert error < 0.03 * np.abs(okada).max()


def test_halving_all_sizes_converges_and_halving_that_on_the_fault_does_not():
    errors = []
    for fault, far, growth in ((20, 240, 0.7), (10, 240, 0.7), (10, 120, 0.35)):
        places = [[x, y] for x in range(-90, 121, 15) for y in (0, 20, 60)]
        spec = changed(points=places)
        # so wide that its sides play no part
        spec["model"]["domain"] = {
            "x": [-1200, 1200],
            "y": [-1200, 1200],
            "depth": 1200,
        }
        spec["model"]["layers"][0]["bottom"] = 1200
        size = {"fault": fault, "far": far, "growth": growth}
        spec["model"]["mesh"]["size"] = size
        result = run_forward(spec)
        xy = np.column_stack([result["x"], result["y"]])
        plane = Rectangles(0, 0, 10e3, 0, 30, 80e3, 60e3)
        okada = surface_displacement(xy, plane, (0, 1, 0))
        error = result["displacement"].values[0] - okada
        errors.append(np.linalg.norm(error) / np.linalg.norm(okada))
    coarse, finer_fault, finer = errors
    assert coarse / finer_fault < 2.5
    assert coarse / finer > 3.0


@pytest.mark.parametrize(
    ("mesh", "plane"),
    [
        ({"size": {"fault": 9, "far": 150, "growth": 0.25}}, {}),
        ({"size": {"fault": 9, "far": 150}}, {"top": 0, "dip": 20}),
        ({"size": {"fault": 20, "far": 300, "growth": 0.5}, "refine": 1}, {}),
    ],
)
def test_error_of_the_mesh_is_estimated_within_a_factor(mesh, plane):
    """Both by a second mesh and by the one that was refined, against Okada (1985)."""
    places = [
        [x, y] for x in (*range(-90, 0, 20), *range(30, 121, 15)) for y in (5, 60)
    ]
    spec = changed(points=places)
    spec["model"]["domain"] = {"x": [-1200, 1200], "y": [-1200, 1200], "depth": 1200}
    spec["model"]["layers"][0]["bottom"] = 1200
    spec["model"]["mesh"] = mesh
    spec["model"]["faults"][0]["plane"].update(plane)
    result = run_forward(spec)
    full = spec["model"]["faults"][0]["plane"]
    xy = np.column_stack([result["x"], result["y"]])
    rectangle = Rectangles(0, 0, full["top"] * 1e3, 0, full["dip"], 80e3, 60e3)
    okada = surface_displacement(xy, rectangle, (0, 1, 0))
    true = np.linalg.norm(result["displacement"].values[0] - okada, axis=1)
    elastic, change = result["space_error"].values[:, 0]
    assert 0.5 < np.sqrt((elastic**2).mean() / (true**2).mean()) < 3.0
    assert (change == 0.0).all()


def test_error_of_the_mesh_can_be_left_out():
    assert "space_error" in run_forward(coarse())
    assert "space_error" not in run_forward(coarse(solver={"space_error": False}))


def test_moment_is_rigidity_times_area_times_slip():
    moment = run_forward(coarse()).attrs["moment"]
    assert moment == pytest.approx(2800 * 3695.04**2 * 80e3 * 60e3, rel=1e-6)


def test_stepping_that_misses_its_time_tolerance_says_so():
    solver = {"integrator": "stepping", "step": "1 yr", "time_tolerance": 1e-9}
    spec = coarse(times={"until": "10 yr", "output": ["10 yr"]}, solver=solver)
    spec["model"]["layers"][0]["bottom"] = 35
    spec["model"]["layers"].append({**MANTLE, "bottom": 200})
    result = run_forward(spec)
    (said,) = [n for n in json.loads(result.attrs["notes"]) if "warning" in n]
    assert f"{result.attrs['time_error']:.1e}" in said
    assert "shorten solver.step" in said


def test_result_is_labelled_for_others(tmp_path):
    path = tmp_path / "deep" / "out.nc"
    spec = coarse(
        times={"until": "1 yr", "output": ["0 d", "1 yr"]},
        points=[[10, 0], [20, 0, 5.5]],
    )
    reports = []
    run_forward(spec, path, reports.append)
    with xr.open_dataset(path) as result:
        assert result["displacement"].dims == ("time", "point", "component")
        assert result["displacement"].attrs["units"] == "m"
        assert result["component"].values.tolist() == ["east", "north", "up"]
        assert result["depth"].values.tolist() == [0.0, 5500.0]
        assert result["time"].values == pytest.approx([0.0, 1.0])
        assert result["time"].attrs["units"] == "yr"
        assert result.attrs["Conventions"] == "CF-1.11"
        assert json.loads(result.attrs["spec"])["slip"][0]["dip"] == 1.0
        assert result.attrs["residual"] <= 1e-8
    phases = [news["phase"] for news in reports]
    assert phases.index("meshing") < phases.index("solving")
    assert list(path.parent.iterdir()) == [path]


def test_points_on_either_side_of_the_fault_differ_by_the_slip():
    depth = 25.0  # km; the fault passes below x = (25 - 10) / tan(dip)
    x = (depth - 10) / np.tan(DIP)
    spec = coarse(points=[[x, 0, depth - 1e-3], [x, 0, depth + 1e-3]])
    above, below = run_forward(spec)["displacement"].values[0]
    assert above - below == pytest.approx([-np.cos(DIP), 0.0, np.sin(DIP)], abs=2e-3)


def test_point_at_depth_zero_is_on_the_ground():
    spec = coarse(points=[[31.0, 7.0], [31.0, 7.0, 0.0], [31.0, 7.0, 0.01]])
    first, same, deeper = run_forward(spec)["displacement"].values[0]
    assert np.array_equal(first, same)
    assert deeper == pytest.approx(first, abs=1e-3)


def test_elastic_model_does_not_move_after_the_slip():
    spec = coarse(times={"until": "10 yr", "output": ["0 d", "10 yr"]})
    motion = run_forward(spec)["displacement"].values
    assert np.array_equal(motion[0], motion[1])


def test_viscoelastic_mantle_moves_the_ground_for_years():
    spec = coarse(times={"until": "10 yr", "output": ["0 d", "5 yr", "10 yr"]})
    spec["model"]["layers"][0]["bottom"] = 35
    spec["model"]["layers"].append({**MANTLE, "bottom": 200})
    motion = run_forward(spec)["displacement"].values
    first = np.abs(motion[1] - motion[0]).max()
    second = np.abs(motion[2] - motion[1]).max()
    assert 0.003 < second < first < 0.3


def test_burgers_mantle_starts_alike_and_moves_faster_than_a_maxwell_mantle():
    curves = []
    law = {"viscosity": 1.0e19, "kelvin_viscosity": 1.0e18, "kelvin_ratio": 1}
    for rheology in (MANTLE["rheology"], {"burgers": law}):
        spec = coarse(times={"until": "1 yr", "output": ["0 d", "30 d", "1 yr"]})
        layers = spec["model"]["layers"]
        layers[0]["bottom"] = 40
        layers.append({**MANTLE, "bottom": 200, "rheology": rheology})
        curves.append(run_forward(spec).displacement.values)
    moved = [np.abs(u - u[:1]).max(axis=(1, 2)) for u in curves]
    assert np.abs(curves[0][0] - curves[1][0]).max() < 1e-7
    # at first the Kelvin dashpot, ten times softer, does nearly all
    assert 7.0 < moved[1][1] / moved[0][1] < 11.5
    assert moved[1][2] > 1.5 * moved[0][2]


def test_restoring_force_reaches_the_solver():
    curves = []
    for restoring in (False, True):
        spec = coarse(times={"until": "1000 yr", "output": ["0 d", "1000 yr"]})
        layers = spec["model"]["layers"]
        layers[0]["bottom"] = 40
        layers.append({**MANTLE, "bottom": 200})
        spec["model"]["gravity"] = {"restoring": restoring}
        curves.append(run_forward(spec)["displacement"].values)
    size = np.abs(np.array(curves)).max(axis=(2, 3))
    # little against the rock's stiffness, not against what is left when it flows
    assert np.abs(curves[0][0] - curves[1][0]).max() < 0.02 * size[0, 0]
    assert np.abs(curves[0][1] - curves[1][1]).max() > 0.05 * size[0, 1]


def test_slip_from_a_table_equals_the_same_slip_given_by_number(tmp_path):
    along, down = np.meshgrid(np.linspace(-45, 45, 7), np.linspace(-5, 65, 8))
    x, depth = down * np.cos(DIP), 10 + down * np.sin(DIP)
    lines = [
        f"{a:.4f},{b:.4f},{c:.4f},0.0,1.0\n"
        for a, b, c in zip(x.flat, along.flat, depth.flat, strict=True)
    ]
    (tmp_path / "slip.csv").write_text(
        "x_km,y_km,depth_km,strike,dip\n" + "".join(lines)
    )
    (tmp_path / "points.csv").write_text("x_km,y_km\n-60,0\n120,30\n")
    points = {"file": "points.csv"}
    table = run_forward(coarse(slip={"file": "slip.csv"}, points=points), base=tmp_path)
    uniform = run_forward(coarse(points=points), base=tmp_path)
    a, b = (item["displacement"].values[0] for item in (table, uniform))
    # the table has no value of one half on the edges of the rectangle
    assert a == pytest.approx(b, abs=0.25 * np.abs(b).max())


def test_tapered_slip_moves_the_far_field_less():
    points = [[-90.0, 0.0], [150.0, 0.0]]
    whole = run_forward(coarse(points=points))["displacement"].values
    slip = [{"fault": "main", "dip": 1.0, "taper": True}]
    tapered = run_forward(coarse(points=points, slip=slip))["displacement"].values
    share = np.linalg.norm(tapered, axis=2) / np.linalg.norm(whole, axis=2)
    assert (share < 0.95).all()
    assert (share > 0.3).all()


def test_geographic_run_keeps_degrees():
    spec = coarse(points=[[10.0, 20.0]])
    spec["model"]["frame"] = {"kind": "geographic", "lon0": 142.4, "lat0": 38.3}
    result = run_forward(spec)
    assert float(result["lon"][0]) == pytest.approx(142.514, abs=0.01)
    assert float(result["lat"][0]) == pytest.approx(38.48, abs=0.01)


def test_point_outside_the_domain_is_named():
    with pytest.raises(SpecError, match="outside the domain"):
        run_forward(coarse(points=[[0.0, 0.0], [900.0, 0.0]]))


def test_missing_file_is_named(tmp_path):
    (tmp_path / "point.csv").write_text("x_km,y_km\n0,0\n")
    with pytest.raises(SpecError, match=r"points\.csv"):
        run_forward(coarse(points={"file": "points.csv"}), base=tmp_path)


def test_slip_and_its_size_are_in_the_result(tmp_path):
    result = run_forward(coarse(), tmp_path / "out.nc")
    with xr.open_dataset(tmp_path / "out.nc", engine="h5netcdf") as stored:
        assert stored["fault_slip"].dims == ("fault_node", "slip_component")
        assert stored["slip_component"].values.tolist() == ["strike", "dip"]
    slip = result["fault_slip"].values
    assert np.abs(slip[:, 0]).max() < 1e-12
    assert slip[:, 1].max() == pytest.approx(1.0)
    assert result.attrs["peak_slip"] == pytest.approx(1.0)
    # flat triangles between all nodes: another quadrature than that of the program
    xyz = np.column_stack([result[f"fault_{axis}"] for axis in "xyz"])
    corner = xyz[result["fault_triangles"].values]
    cross = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    area = 0.5 * np.linalg.norm(cross, axis=1)
    mu = 2800.0 * 3695.04**2
    flat = mu * area @ slip[result["fault_triangles"].values, 1].mean(axis=1)
    moment = result.attrs["moment"]
    assert moment == pytest.approx(flat, rel=0.05)
    # beyond the rectangle slip falls to zero over one element of 20 km at most
    rectangle = mu * 80e3 * 60e3
    assert rectangle * (1.0 - 1e-9) < moment < mu * 100e3 * 80e3
    assert result.attrs["magnitude"] == pytest.approx(
        2 / 3 * (np.log10(moment) - 9.1), abs=1e-9
    )


def test_points_keep_the_names_of_their_stations(tmp_path):
    (tmp_path / "points.csv").write_text("station,x_km,y_km\nAQUI,10,0\nROMA,20,5\n")
    result = run_forward(coarse(points={"file": "points.csv"}), base=tmp_path)
    assert result["station"].values.tolist() == ["AQUI", "ROMA"]
    assert result["x"].values.tolist() == [10e3, 20e3]


def test_synthetic_observations_are_read_as_data_with_the_errors_asked_for(tmp_path):
    spec = coarse(
        points=[[float(x), float(y)] for x in range(-60, 61, 6) for y in (-20, 20)],
        times={"until": "1 yr", "output": ["0 d", "1 yr"]},
    )
    result = run_forward(spec)
    path = tmp_path / "data.csv"
    assert write_observations(result, path, (0.003, 0.01), 7) == 84
    again = tmp_path / "again.csv"
    write_observations(result, again, (0.003, 0.01), 7)
    assert path.read_bytes() == again.read_bytes()
    found = read_observations(path.read_bytes(), Frame("local"))
    assert sorted(set(found.time)) == pytest.approx([0.0, 31557600.0])
    assert found.sigma[0].tolist() == [0.003, 0.003, 0.01]
    truth = result["displacement"].values.transpose(1, 0, 2).reshape(-1, 3)
    scaled = (found.displacement - truth) / found.sigma
    # 252 standard normal numbers: five standard deviations of mean and spread
    assert abs(scaled.mean()) < 5 / np.sqrt(252)
    assert abs(scaled.std() - 1) < 5 / np.sqrt(2 * 252)


def test_the_command_says_the_moment_and_writes_data_with_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "points.csv").write_text("station,x_km,y_km\nAQUI,10,0\nROMA,20,5\n")
    spec = coarse(points={"file": "points.csv"}, solver={"space_error": False})
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    app = typer.Typer()
    app.command()(commands.forward)
    asked = ["spec.json", "--observations", "data.csv", "--noise", "0.002,0.005"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "slip: moment 1.84e+20 N m, Mw 7.44, largest 1 m" in done.output
    data = read_observations((tmp_path / "data.csv").read_bytes(), Frame("local"))
    assert data.name == ("AQUI", "ROMA")
    assert data.sigma.tolist() == [[0.002, 0.002, 0.005]] * 2


@pytest.mark.parametrize(
    ("points", "noise", "says"),
    [
        ([[10, 0]], (0.0, 0.01), "--noise"),
        ([[10, 0], [20, 0, 5]], (0.01, 0.01), "points[1]: is 5000 m below the ground"),
    ],
)
def test_observations_that_cannot_be_are_refused(tmp_path, points, noise, says):
    result = run_forward(coarse(points=points))
    with pytest.raises(SpecError) as caught:
        write_observations(result, tmp_path / "data.csv", noise, 0)
    assert says in str(caught.value)
    assert not (tmp_path / "data.csv").exists()


def test_table_of_slip_that_ends_abruptly_is_as_exact_as_uniform_slip(tmp_path):
    """One metre over all of the fault, as a table and as a number, against Okada."""
    spec = copy.deepcopy(SPEC)
    spec["solver"] = {"space_error": False}
    rows = ["x_km,y_km,depth_km,strike,dip"]
    for along in np.linspace(-40.0, 40.0, 17):
        for down in np.linspace(0.0, 60.0, 13):
            x, z = down * np.cos(np.pi / 6), 10.0 + 0.5 * down
            rows.append(f"{x:.5f},{along:.5f},{z:.5f},0,1")
    (tmp_path / "slip.csv").write_text("\n".join(rows) + "\n")
    uniform = run_forward(spec)
    table = run_forward(spec | {"slip": {"file": "slip.csv"}}, base=tmp_path)
    assert table.attrs["moment"] == pytest.approx(uniform.attrs["moment"], rel=1e-3)
    xy = np.column_stack([uniform["x"], uniform["y"]])
    okada = surface_displacement(
        xy, Rectangles(0, 0, 10e3, 0, 30, 80e3, 60e3), (0, 1, 0)
    )
    errors = [
        np.sqrt(np.mean((found["displacement"].values[0] - okada) ** 2))
        for found in (table, uniform)
    ]
    assert errors[0] < 1.1 * errors[1]
