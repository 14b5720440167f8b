"""Results in the formats of other programs, read back by readers that are not ours."""

import csv
import json
import re

import meshio
import numpy as np
import pytest
import xarray as xr
from example_result import RIGIDITY, example_result

from afterslip.cli import main as command
from afterslip.errors import SpecError
from afterslip.exports import (
    Event,
    write_csi,
    write_fsp,
    write_geojson,
    write_gmt,
    write_slip,
    write_surface,
    write_vtu,
)
from afterslip.exports.subfaults import subfaults
from afterslip.units import YEAR


@pytest.fixture(scope="module")
def result():
    return example_result(n_along=25, n_down=13)


def areas(result):
    xyz = np.column_stack([result[f"fault_{axis}"].values for axis in "xyz"])
    a, b, c = (xyz[result.fault_triangles.values[:, i]] for i in range(3))
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)


def corner_mean(result):
    return result.fault_slip.values[result.fault_triangles.values].mean(axis=1)


def test_geojson_has_each_triangle_with_its_slip(result, tmp_path):
    found = json.loads(write_geojson(result, tmp_path / "slip.geojson").read_text())
    assert found["type"] == "FeatureCollection"
    assert len(found["features"]) == result.sizes["fault_triangle"]
    slip = corner_mean(result)
    for number in (0, 7, len(slip) - 1):
        feature = found["features"][number]
        ring = np.array(feature["geometry"]["coordinates"][0])
        assert feature["geometry"]["type"] == "Polygon"
        assert ring.shape == (4, 3)
        assert (ring[0] == ring[-1]).all()
        x, y = ring[:, 0], ring[:, 1]
        assert np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]) > 0  # counterclockwise
        own = result.fault_lon.values[result.fault_triangles.values[number]]
        assert sorted(x[:3]) == pytest.approx(sorted(own), abs=1e-6)
        said = feature["properties"]
        expected = {"strike_m": slip[number, 0], "dip_m": slip[number, 1]}
        assert {k: said[k] for k in expected} == pytest.approx(expected, abs=1e-4)
        assert said["slip_m"] == pytest.approx(np.hypot(*slip[number]), abs=1e-4)


def test_gmt_segments_are_closed_and_carry_slip(result, tmp_path):
    text = write_gmt(result, tmp_path / "slip.gmt").read_text()
    segments = text.split(">")[1:]
    assert len(segments) == result.sizes["fault_triangle"]
    slip = np.hypot(*corner_mean(result).T)
    for number, segment in enumerate(segments):
        head, *lines = segment.strip().split("\n")
        found = re.match(r"-Z(\S+)", head)
        assert found is not None
        value = float(found[1])
        assert value == pytest.approx(slip[number], abs=1e-4)
        corners = np.array([[float(v) for v in line.split()] for line in lines])
        assert corners.shape == (4, 3)
        assert (corners[0] == corners[-1]).all()
    depth = -result.fault_z.values[result.fault_triangles.values[0]] / 1e3
    first = [line.split() for line in segments[0].strip().split("\n")[1:4]]
    assert sorted(float(c[2]) for c in first) == pytest.approx(sorted(depth), abs=1e-4)


def test_csi_segments_are_laid_out_as_its_reader_counts(result, tmp_path):
    lines = write_csi(result, tmp_path / "slip.csi").read_text().splitlines()
    assert len(lines) == 4 * result.sizes["fault_triangle"]
    expected = corner_mean(result)
    depth = -result.fault_z.values[result.fault_triangles.values] / 1e3
    for number in range(len(expected)):
        # CSI splits at spaces: mark, -Z, #, three numbers, #, strike, dip, tensile
        words = lines[4 * number].split()
        assert words[0] == ">"
        assert [int(word) for word in words[3:6]] == [number] * 3
        slip = [float(word) for word in words[7:10]]
        assert slip == pytest.approx([*expected[number], 0.0], abs=1e-4)
        corners = [list(map(float, x.split())) for x in lines[4 * number + 1 :][:3]]
        found = sorted(c[2] for c in corners)
        assert found == pytest.approx(sorted(depth[number]), abs=1e-4)
        assert all(120 < lon < 160 and 20 < lat < 50 for lon, lat, _ in corners)


def test_csv_has_each_node(result, tmp_path):
    with write_slip(result, tmp_path / "slip.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == result.sizes["fault_node"]
    strike = [float(row["strike"]) for row in rows]
    np.testing.assert_allclose(strike, result.fault_slip[:, 0], atol=1e-4)


def test_vtu_of_the_fault_is_read_by_meshio(result, tmp_path):
    mesh = meshio.read(write_vtu(result, tmp_path / "slip.vtu"))
    triangles = mesh.cells_dict["triangle"]
    np.testing.assert_array_equal(triangles, result.fault_triangles.values)
    np.testing.assert_array_equal(mesh.points[:, 2], result.fault_z.values)
    np.testing.assert_array_equal(mesh.point_data["dip"], result.fault_slip[:, 1])
    vector = mesh.point_data["slip_vector"]
    length = np.linalg.norm(vector, axis=1)
    np.testing.assert_allclose(length, mesh.point_data["slip"], atol=1e-9)
    # on a thrust the side above goes up
    assert vector[np.argmax(length), 2] > 0


def greens(result, nodes):
    """Return a store by steps: grows from u0 to 3 u0 in 10 years."""
    n = result.sizes["source"]
    response = np.random.default_rng(1).normal(size=(n, 1, len(nodes), 3))
    response = np.concatenate([response, 3 * response], axis=1)
    data = {
        "response": (("source", "mode", "node", "component"), response),
        "mode_count": ("source", np.full(n, 2)),
        "step_time": ("mode", [0.0, 10.0]),
        "source_position": result["source_position"],
        # a square of two triangles of second order, as UGRID goes round them
        "face_node_connectivity": (
            ("face", "face_node"), [[0, 1, 2, 5, 8, 4], [0, 4, 8, 7, 6, 3]]),
    }  # fmt: skip
    for i, axis in enumerate("xyz"):
        data[f"node_{axis}"] = ("node", nodes[:, i])
    return xr.Dataset(data, attrs={"until_yr": 10.0, "integrator": "stepping"})


def test_vtu_of_the_ground_has_the_displacement_of_the_slip(result, tmp_path):
    x, y = np.meshgrid([0.0, 1e3, 2e3], [0.0, 1e3, 2e3])
    nodes = np.column_stack([x.ravel(), y.ravel(), np.zeros(9)])
    store = greens(result, nodes)
    path = write_surface(result, store, [0.0, 5 * YEAR], tmp_path / "ground.vtu")
    mesh = meshio.read(path)
    elastic = np.einsum("s,snc->nc", result.slip, store.response[:, 0])
    found = mesh.point_data
    np.testing.assert_allclose(found["displacement_0yr"], elastic, rtol=1e-12)
    np.testing.assert_allclose(found["displacement_5yr"], 2 * elastic, rtol=1e-12)
    for face in mesh.cells_dict["triangle6"]:
        corners = mesh.points[face[:3]]
        middles = 0.5 * (corners + np.roll(corners, -1, axis=0))
        np.testing.assert_allclose(mesh.points[face[3:]], middles)
    assert not any(name.startswith("space_error") for name in found)
    other = store.assign(source_position=store.source_position + 1e3)
    with pytest.raises(SpecError, match="are of another campaign"):
        write_surface(result, other, [0.0], tmp_path / "x.vtu")
    store["mode_count"][0] = 0
    with pytest.raises(SpecError, match="lack 1 of 144"):
        write_surface(result, store, [0.0], tmp_path / "x.vtu")


def test_vtu_of_the_ground_has_the_error_of_the_mesh(result, tmp_path):
    x, y = np.meshgrid([0.0, 1e3, 2e3], [0.0, 1e3, 2e3])
    store = greens(result, np.column_stack([x.ravel(), y.ravel(), np.zeros(9)]))
    error = np.random.default_rng(2).random((result.sizes["source"], 3, 9))
    store["space_error"] = (("source", "error_time", "node"), error)
    store["error_time"] = ("error_time", [0.0, 4.0, 8.0])
    path = tmp_path / "ground.vtu"
    found = meshio.read(write_surface(result, store, [0, 6 * YEAR], path)).point_data
    # each source may be wrong in any direction
    elastic, *later = np.einsum("s,stn->tn", abs(result.slip.values), error)
    np.testing.assert_allclose(found["space_error_0yr"], elastic)
    expected = elastic + 0.5 * (later[0] + later[1])
    np.testing.assert_allclose(found["space_error_6yr"], expected)


def test_files_of_slip_say_how_wrong_the_mesh_makes_it(result, tmp_path):
    known = result.copy()
    solver = {"space_error": {"elastic": 0.0123, "change": 0.04}}
    known.attrs["solver"] = json.dumps(solver)
    for write in (write_gmt, write_fsp):
        text = write(known, tmp_path / "slip").read_text()
        assert "error of the mesh, of displacements: elastic 1.2%, change 4.0%" in text
        assert "error of the mesh" not in write(result, tmp_path / "slip").read_text()


def read_fsp(path):
    """Read an FSP file by the layout of SRCMOD: keys in comments, then columns."""
    lines = path.read_text().splitlines()
    assert "FINITE-SOURCE RUPTURE MODEL" in lines[0]
    comments = [line for line in lines if line.startswith("%")]
    titles = ["inversion-related", "VELOCITY-DENSITY", "SOURCE MODEL PARAMETERS"]
    places = [next(i for i, c in enumerate(comments) if t in c) for t in titles]
    assert places == sorted(places)
    keys = {}
    for line in comments:
        for key, value in re.findall(r"(\w+)\s*=\s*([-+\d.eE]+)", line):
            keys.setdefault(key, float(value))
    # the last comment but the rule names the columns
    names = comments[-2].lstrip("% ").split()
    rows = np.array([[float(v) for v in x.split()] for x in lines if x[0] != "%"])
    assert rows.shape == (int(keys["Nsbfs"]), len(names))
    assert keys["Nsbfs"] == keys["Nx"] * keys["Nz"]
    return keys, dict(zip(names, rows.T, strict=True)), comments


def test_fsp_is_a_consistent_model_of_the_slip(result, tmp_path):
    hypocentre = (142.86, 38.1, 20.0)
    event = Event("Tohoku-oki", "03/11/2011", hypocentre)
    keys, columns, comments = read_fsp(write_fsp(result, tmp_path / "a.fsp", event))
    assert list(columns) == [
        "LAT", "LON", "X==EW", "Y==NS", "Z", "SLIP", "RAKE", "SF_MOMENT"]  # fmt: skip
    assert comments[2] == "% Event : Tohoku-oki\t03/11/2011\t[afterslip, coseismic]"
    assert (keys["LON"], keys["LAT"], keys["DEP"]) == hypocentre
    assert (keys["Nx"], keys["Nz"], keys["Nsg"]) == (12, 6, 1)
    assert (keys["LEN"], keys["WID"]) == (440, 210)
    assert keys["Dx"] * keys["Nx"] == pytest.approx(440, abs=0.01)
    assert keys["Htop"] == pytest.approx(6.0, abs=0.01)
    assert keys["STRK"] == pytest.approx(201, abs=3)
    assert 6 < keys["DIP"] < 27
    # moment: of the rows, of the head, and of the triangles agree
    total = columns["SF_MOMENT"].sum()
    assert keys["Mo"] == pytest.approx(total, rel=1e-4)
    assert keys["Mw"] == pytest.approx(2 / 3 * (np.log10(total) - 9.1), abs=0.006)
    own = RIGIDITY * areas(result) @ np.hypot(*corner_mean(result).T)
    assert total == pytest.approx(own, rel=0.01)
    # X and Y are kilometres from the epicentre
    north = (columns["LAT"] - hypocentre[1]) * 111.0
    east = (columns["LON"] - hypocentre[0]) * 111.3 * np.cos(np.radians(38.1))
    assert np.abs(north - columns["Y==NS"]).max() < 6
    assert np.abs(east - columns["X==EW"]).max() < 12
    assert (np.diff(columns["Z"].reshape(6, 12), axis=0) > 0).all()


def test_uniform_slip_stays_uniform_in_fsp(result, tmp_path):
    uniform = result.copy()
    uniform["fault_slip"] = result.fault_slip * 0 + np.array([-1.0, np.sqrt(3)])
    keys, columns, _ = read_fsp(write_fsp(uniform, tmp_path / "u.fsp"))
    np.testing.assert_allclose(columns["SLIP"], 2.0, atol=1e-4)
    np.testing.assert_allclose(columns["RAKE"], 120.0, atol=0.01)
    expected = RIGIDITY * 2.0 * areas(result).sum()
    assert keys["Mo"] == pytest.approx(expected, rel=1e-4)


def test_subfaults_without_triangles_have_no_slip(result):
    middle = result.fault_along.values[result.fault_triangles.values].mean(axis=1)
    part = result.isel(fault_triangle=np.flatnonzero(middle > 120e3))
    (found,) = subfaults(part)
    gone = np.arange(72) % 12 < 3
    assert (found.slip[gone] == 0).all()
    assert (found.moment[gone] == 0).all()
    assert np.isfinite(found.position).all()
    assert (found.moment[~gone] > 0).any()


@pytest.mark.parametrize("write", [write_fsp, write_csi])
def test_fsp_and_csi_need_longitudes(write, tmp_path):
    with pytest.raises(SpecError, match="has no longitudes and latitudes"):
        write(example_result(geographic=False), tmp_path / "a")


def run(*args):
    with pytest.raises(SystemExit) as ended:
        command.main(["export", *map(str, args)])
    return ended.value.code or 0


@pytest.mark.parametrize("name", ["geojson", "gmt", "csi", "csv", "vtu", "fsp"])
def test_the_verb_writes_beside_the_result(name, result, tmp_path, capsys):
    result.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")
    assert run(tmp_path, "--format", name) == 0
    path = tmp_path / f"slip.{name}"
    assert path.stat().st_size > 1000
    assert capsys.readouterr().out.strip() == str(path)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (
            ["--format", "kml"],
            "use one of altar, beat, csi, csv, fsp, geojson, gmt, miniseed, pyrocko, "
            "surface, vtu",
        ),
        (["--format", "surface"], "--greens: is needed"),
        (["--format", "fsp", "--hypocentre", "142"], "must be LON,LAT,DEPTH_KM"),
        (["--format", "fsp", "--hypocentre", "142,99,3"], "is no place"),
        (["--format", "fsp", "--date", "2011-03-11"], "2011-03-11: must be mm/dd/yyyy"),
        (["--format", "fsp", "--date", "3/11/2011"], "3/11/2011: must be mm/dd/yyyy"),
        (["--format", "fsp", "--date", "02/30/2011"], "must be mm/dd/yyyy"),
    ],
)
def test_wrong_options_are_one_clear_line(args, says, result, tmp_path, capsys):
    result.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")
    assert run(tmp_path / "result.nc", *args) == 2
    assert says in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["result.nc"]


def test_what_is_no_result_is_reported(tmp_path, capsys):
    xr.Dataset({"a": 1}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    assert run(tmp_path / "a.nc", "--format", "gmt") == 2
    assert "not an inversion's result" in capsys.readouterr().err
