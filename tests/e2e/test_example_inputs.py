import csv
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from pyproj import Geod

from afterslip import spec

ROOT = Path(__file__).parents[2]
TOHOKU = ROOT / "examples" / "tohoku2011"
GEOD = Geod(ellps="WGS84")
BOREHOLE_C0019 = (143.9135, 37.9389)


def rows(name):
    with (TOHOKU / name).open() as stream:
        return list(csv.DictReader(stream))


def shared(*parts):
    path = Path(os.environ.get("AFTERSLIP_DATA", ROOT.parent / "shared" / "data"))
    path = path.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{parts[-1]} is not there: set AFTERSLIP_DATA")
    return path


def published(*parts):
    with shared(*parts).open() as stream:
        return list(csv.DictReader(stream))


def script(name):
    module_spec = importlib.util.spec_from_file_location(name, TOHOKU / f"{name}.py")
    assert module_spec is not None
    module = importlib.util.module_from_spec(module_spec)
    assert module_spec.loader is not None
    module_spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fit():
    return script("fit_interface")


@pytest.fixture(scope="module")
def grid(fit):
    table = rows("interface.csv")
    points = np.array([[float(v) for v in row.values()] for row in table])
    return points.reshape(len(fit.ROWS_KM), fit.COLUMNS, 3)


def test_observations_are_a_selection_rounded_to_the_centimetre():
    table = rows("observations.csv")
    assert len(table) == 41
    assert len({row["station"] for row in table}) == 41
    assert sum(row["type"] == "gnssa" for row in table) == 5
    for row in table:
        assert 34.5 <= float(row["lat"]) <= 43
        assert 137 <= float(row["lon"]) <= 145.5
        for key in ("east", "north", "up", "sigma_e", "sigma_n", "sigma_u"):
            assert float(row[key]) == round(float(row[key]), 2)


def test_uncertainty_follows_the_stated_rule():
    floors = {"gnss": (0.02, 0.04), "gnssa": (0.3, 0.5)}
    for row in rows("observations.csv"):
        size = np.linalg.norm([float(row[k]) for k in ("east", "north", "up")])
        horizontal, vertical = (np.hypot(f, 0.02 * size) for f in floors[row["type"]])
        # rounded up to the centimetre; the displacement itself was rounded too
        for key, sigma in (
            ("sigma_e", horizontal),
            ("sigma_n", horizontal),
            ("sigma_u", vertical),
        ):
            assert -1e-3 < float(row[key]) - sigma < 0.0101


def test_observations_agree_with_the_published_tables():
    land = published("tohoku_gnss", "coseismic_gnss_ozawa2011.csv")
    sea = published("tohoku_gnss", "coseismic_seafloor_sato2011.csv")
    known = {f"G{int(row['station']):04d}": row for row in land}
    known |= {row["station"]: row for row in sea}
    for row in rows("observations.csv"):
        source = known[row["station"]]
        for key in ("east", "north", "up"):
            assert abs(float(row[key]) - float(source[key])) <= 0.0051
        for key in ("lon", "lat"):
            assert abs(float(row[key]) - float(source[key])) <= 0.0051


def test_interface_deepens_monotonically_away_from_the_trench(fit, grid):
    along, down = fit.to_oblique(grid[..., 0].ravel(), grid[..., 1].ravel())
    down = down.reshape(grid.shape[:2])
    assert np.ptp(along.reshape(grid.shape[:2]), axis=0).max() < 0.1
    dip = np.degrees(np.arctan2(np.diff(fit.ROWS_KM)[:, None], np.diff(down, axis=0)))
    assert dip.min() > 5
    assert dip[:8].max() < 25
    assert dip.max() < 40


def test_interface_meets_the_surface_at_the_trench(fit, grid):
    trench = grid[fit.ROWS_KM.index(0.0)]
    lat = BOREHOLE_C0019[1]
    lon = np.interp(lat, trench[::-1, 1], trench[::-1, 0])
    _, _, distance = GEOD.inv(*BOREHOLE_C0019, lon, lat)
    # the borehole is 7 to 10 km landward of the trench axis
    assert lon > BOREHOLE_C0019[0]
    assert distance < 15e3


def test_slipping_part_lies_on_the_control_grid(fit, grid):
    table = rows("outline.csv")
    lon, lat = (np.array([float(r[k]) for r in table]) for k in ("lon", "lat"))
    along, down = fit.to_oblique(lon, lat)
    grid_along, grid_down = fit.to_oblique(grid[..., 0].ravel(), grid[..., 1].ravel())
    assert grid_along.min() < along.min()
    assert along.max() < grid_along.max()
    assert grid_down.min() - 1 < down.min()
    assert down.max() < grid_down.max()
    half = len(table) // 2
    # first the trench, then the deep side
    assert down[:half].max() < down[half:].min()


def test_interface_fits_slab2_as_well_as_the_readme_says(fit):
    shared("slab2_japan", "japan_trench_slab2.csv")
    folder = shared("slab2_japan").parent
    slab = fit.read_slab(folder)
    along, down = fit.control_grid(slab)
    off = fit.misfit(slab, along, down)
    deep = (slab.depth > 15) & (slab.depth < 100)
    assert np.sqrt(np.mean(off[deep] ** 2)) < 0.4
    assert np.abs(off[deep]).max() < 2.0
    shallow = slab.depth < 15
    assert np.all(np.abs(off[shallow]) < slab.sigma[shallow] + 0.5)


def test_complete_tables_get_the_uncertainty_of_the_selection():
    folder = shared("tohoku_gnss")
    full_sets = script("full_sets")
    sigma = {
        f"G{int(row['station']):04d}": row
        for row in full_sets.read(folder / full_sets.SETS["ozawa"], "gnss")
    }
    sigma |= {
        row["station"]: row
        for row in full_sets.read(folder / full_sets.SEA_FLOOR, "gnssa")
    }
    for row in rows("observations.csv"):
        for key in ("sigma_e", "sigma_n", "sigma_u"):
            assert float(row[key]) - float(sigma[row["station"]][key]) < 0.0105
            assert float(row[key]) >= float(sigma[row["station"]][key]) - 1e-3


def test_specs_of_the_examples_are_valid():
    campaign = spec.parse_campaign(spec.load(TOHOKU / "campaign.yaml"))
    (sources,) = campaign.grids
    count = sources.along_strike * sources.down_dip * len(sources.components)
    assert count >= 48
    planar = spec.load(ROOT / "examples" / "planar" / "forward.yaml")
    assert spec.parse_forward(planar).name == "planar-thrust"
