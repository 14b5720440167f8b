"""Everything that a spec names, read and checked together."""

import copy
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.schemas.fault import Plane
from afterslip.spec import load, parse, parse_campaign, parse_forward
from afterslip.spec.coverage import plane_corners
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import Inputs, read_dataset, resolve
from afterslip_common.geometry import Box

SPECS = Path(__file__).parent / "specs"
DATA = Path(
    os.environ.get(
        "AFTERSLIP_DATA", Path(__file__).parents[2].parent / "shared" / "data"
    )
)
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no full data sets here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SPECS, tmp_path / "specs"))


def resolved(folder: Path, name: str = "tohoku", change=None) -> Inputs:
    data = copy.deepcopy(load(folder / f"{name}.yaml"))
    if change is not None:
        change(data)
    return resolve(parse(data), LocalFiles(folder))


def problems(folder: Path, name: str = "tohoku", change=None) -> list:
    with pytest.raises(SpecError) as caught:
        resolved(folder, name, change)
    return list(caught.value.problems)


def test_the_documented_campaign_resolves_to_local_metres(folder: Path) -> None:
    found = resolved(folder)
    assert found.box.depth == 500e3
    assert found.stations is not None
    assert found.stations.name == ("J550", "MYGI")
    assert abs(found.stations.x[0] + 78.66e3) < 10
    assert list(found.interfaces) == ["main"]
    assert found.interfaces["main"].outline is not None
    assert found.interfaces["main"].outline.shape == (4, 2)
    assert (found.surfaces["slab"] == found.interfaces["main"].points).all()
    assert len(found.datasets["gnss"]) == 7
    assert found.grid is None


def test_forward_runs_resolve_points_and_slip(folder: Path) -> None:
    found = resolved(folder, "forward")
    assert found.points is not None
    assert found.points.depth.tolist() == [0.0, 0.0, 3000.0]
    (folder / "slip.csv").write_text("x_km,y_km,depth_km,strike,dip\n0,0,5,0,1\n")
    (folder / "points.csv").write_text("x_km,y_km\n1,2\n")

    def to_files(data: dict) -> None:
        data.update(slip={"file": "slip.csv"}, points={"file": "points.csv"})

    found = resolved(folder, "forward", to_files)
    assert found.slip_table is not None
    assert found.points is not None
    assert found.points.x.tolist() == [1000.0]


def test_everything_wrong_is_reported_at_once(folder: Path) -> None:
    (folder / "outline.csv").unlink()
    (folder / "stations.csv").write_text("station,lon,lat\nFAR,160,38\nOK,142,38\n")
    (folder / "offsets.csv").write_text("station,lon,lat,east\nA,142,38,1\nB,x,38,1\n")
    found = problems(folder)
    assert [p.path for p in found] == [
        "model.faults[0].surface.outline",
        "stations.file (stations.csv) line 2",
        "datasets[0].file (offsets.csv) line 3, column lon",
    ]
    assert "file not found" in found[0].message
    assert found[1].value == "FAR"
    assert "station outside the domain, at x 1536.5 km" in found[1].message
    assert "x -700 to 700 km" in found[1].hint


@pytest.mark.parametrize(
    ("origin", "station"), [((15.0, 42.0), "42.4,13.4"), ((42.0, 15.0), "13.4,42.4")]
)
def test_coordinates_swapped_in_the_file_or_the_frame_are_noticed(
    folder: Path, origin: tuple[float, float], station: str
) -> None:
    def move(data: dict) -> None:
        data["model"]["frame"].update(lon0=origin[0], lat0=origin[1])
        for key in ("stations", "datasets", "inversions"):
            data.pop(key)
        data["model"].update(bodies=[], faults=[])
        data["model"]["faults"] = [{"name": "main", "plane": PLANE}]
        data["stations"] = {"file": "stations.csv"}

    (folder / "stations.csv").write_text(f"station,lon,lat\nAQUI,{station}\n")
    (problem,) = problems(folder, change=move)
    assert "lon and lat look swapped in the file" in problem.hint
    assert "or lon0 and lat0 in model.frame" in problem.hint


PLANE = {"x": 0, "y": 0, "top": 5, "strike": 0, "dip": 30, "length": 80, "width": 60}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"x": 149}, "fault outside the domain: a corner is at x"),
        (
            {"length": 400},
            "fault outside the domain: a corner is at x 0.0 km, y -200.0",
        ),
        ({"dip": 90, "width": 150}, "fault outside the domain: it reaches 155.0 km"),
    ],
)
def test_planes_outside_the_domain(folder: Path, change: dict, says: str) -> None:
    def replace(data: dict) -> None:
        data["model"]["faults"][0]["plane"] = PLANE | change

    found = problems(folder, "forward", replace)
    assert found[0].path == "model.faults[0].plane"
    assert says in found[0].message


def test_a_plane_dips_to_the_right_of_its_strike() -> None:
    corners = plane_corners(Plane(**PLANE), Frame("local"))
    np.testing.assert_allclose(corners[0], [0, -40e3, -5e3], atol=1e-6)
    np.testing.assert_allclose(corners[1], [0, 40e3, -5e3], atol=1e-6)
    down = 60e3 * np.array([np.cos(np.pi / 6), 0, -np.sin(np.pi / 6)])
    np.testing.assert_allclose(corners[2], corners[1] + down, atol=1e-6)


def test_an_interface_must_lie_inside_and_carry_its_outline(folder: Path) -> None:
    (folder / "outline.csv").write_text("lon,lat\n143,36\n152,36\n152,40\n143,40\n")
    texts = [str(p) for p in problems(folder)]
    assert any("fault outside the domain, e.g. at x" in text for text in texts)
    assert any("from the nearest point of the surface" in text for text in texts)


def test_an_interface_deeper_than_the_domain_is_reported(folder: Path) -> None:
    def shallow(data: dict) -> None:
        data["model"]["domain"]["depth"] = 20
        data["model"]["layers"] = data["model"]["layers"][:1]

    found = problems(folder, change=shallow)
    assert "limit the outline" in found[0].hint
    assert "fault outside the domain: it reaches" in found[0].message


def test_data_after_the_end_of_the_curve_are_reported(folder: Path) -> None:
    text = (folder / "offsets.csv").read_text().splitlines()
    lines = [text[0] + ",time", text[1] + ",30", *(line + "," for line in text[2:])]
    (folder / "offsets.csv").write_text("\n".join(lines))
    (problem,) = problems(folder)
    assert problem.path == "datasets[0].file (offsets.csv) line 2"
    assert "later than times.until (10 yr)" in problem.message


def test_points_outside_are_reported_by_their_place_in_the_list(folder: Path) -> None:
    def move(data: dict) -> None:
        data["points"] = [[0, 0], [1000, 0], [0, 0, 151]]

    found = problems(folder, "forward", move)
    assert [p.path for p in found] == ["points[1]", "points[2]"]


def test_a_dataset_can_be_checked_on_its_own(folder: Path) -> None:
    spec = parse_campaign(load(folder / "tohoku.yaml"))
    files = LocalFiles(folder)
    found = read_dataset(spec.datasets[0], spec.model, spec.end, files)
    assert found.stations == ("J550", "MYGI", "P09")
    (folder / "offsets.csv").unlink()
    with pytest.raises(SpecError) as caught:
        read_dataset(spec.datasets[0], spec.model, spec.end, files)
    assert caught.value.problems[0].path == "file"


@needs_data
def test_full_tohoku_data_are_read_with_the_sigma_of_the_spec(tmp_path: Path) -> None:
    for name in ("coseismic_seafloor_sato2011.csv", "coseismic_gnss_ozawa2011.csv"):
        shutil.copy(DATA / "tohoku_gnss" / name, tmp_path)
    shutil.copy(DATA / "slab2_japan" / "japan_trench_slab2.csv", tmp_path / "slab.csv")
    shutil.copy(SPECS / "outline.csv", tmp_path)
    data = load(SPECS / "tohoku.yaml")
    data.pop("stations")
    data["model"]["domain"] = {"x": [-2000, 2000], "y": [-2000, 2000], "depth": 500}
    sigma = {"horizontal": 0.01, "vertical": 0.03}
    data["datasets"] = [
        {"name": "gnss", "file": "coseismic_gnss_ozawa2011.csv", "sigma": sigma},
        {"name": "sea", "file": "coseismic_seafloor_sato2011.csv", "sigma": sigma},
    ]
    found = resolve(parse(data), LocalFiles(tmp_path))
    assert len(found.datasets["gnss"].stations) == 377
    assert set(found.datasets["sea"].kind) == {"gnssa"}
    del data["datasets"][1]["sigma"]
    with pytest.raises(SpecError, match="has no standard deviation"):
        resolve(parse(data), LocalFiles(tmp_path))


def boxed(**more: Any) -> Box:
    plane = {
        "x": 0,
        "y": 0,
        "top": 5,
        "strike": 0,
        "dip": 90,
        "length": 40,
        "width": 20,
    }
    lid = {"name": "lid", "bottom": 30, "vp": 6.4, "vs": 3.7, "rho": 2800}
    spec: dict[str, Any] = {
        "model": {
            "layers": [lid],
            "faults": [{"name": "main", "plane": plane}],
            "mesh": {"size": {"fault": 5, "far": 50}},
        },
        "slip": [{"fault": "main", "dip": 1.0}],
        "points": [[0, 0]],
    }
    spec["model"] |= more
    return resolve(parse_forward(spec), LocalFiles(Path())).box


def test_domain_follows_from_the_faults_where_none_is_given():
    box = boxed()
    assert box.y == (-220e3, 220e3)
    assert box.x == (-200e3, 200e3)
    assert box.depth == 225e3


def test_domain_is_larger_where_rock_flows_and_for_more_accuracy():
    flow = {"maxwell": {"viscosity": 1e19}}
    lid = {"name": "lid", "bottom": 30, "vp": 6.4, "vs": 3.7, "rho": 2800}
    deep = lid | {"name": "mantle", "bottom": 99, "rheology": flow}
    assert boxed(layers=[lid, deep]).x == (-1200e3, 1200e3)
    assert boxed(mesh={"accuracy": "0.125 %"}).x == (-400e3, 400e3)
    # what flows is felt farther: the error falls with the square of the distance
    finer = boxed(layers=[lid, deep], mesh={"accuracy": "0.25 %"})
    assert finer.x == (-2400e3, 2400e3)
