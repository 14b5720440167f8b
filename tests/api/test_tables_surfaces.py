"""Interfaces, outlines, slip, grids and meshes as files."""

import io
import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers.grid import read_grid
from afterslip.readers.interface import read_interface, read_outline
from afterslip.readers.meshfile import mesh_format
from afterslip.readers.slip import read_slip

GEO, LOCAL = Frame("geographic", 142.4, 38.3), Frame("local")
DATA = Path(
    os.environ.get(
        "AFTERSLIP_DATA", Path(__file__).parents[2].parent / "shared" / "data"
    )
)
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no full data sets here")
BOX = ((-1e5, 1e5), (-1e5, 1e5))


def netcdf(data: xr.Dataset, engine: str = "h5netcdf") -> bytes:
    if engine == "scipy":
        return bytes(data.to_netcdf(engine="scipy"))
    stream = io.BytesIO()
    data.to_netcdf(stream, engine="h5netcdf")
    return stream.getvalue()


def test_interface_points_have_negative_z() -> None:
    text = b"lon,lat,depth_km,dip\n142,38,10,1\n143,38,20,2\n142,39,30,3\n143,39,5,4"
    found = read_interface(text, GEO)
    assert found[:, 2].tolist() == [-1e4, -2e4, -3e4, -5e3]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lon,lat,depth\n142,38,10", "rename depth?"),
        ("lon,lat,depth_km\n142,38,-10", "depth is positive down"),
        ("lon,lat,depth_km\n142,38,1e4", "below the centre of the Earth"),
        ("lon,lat,depth_km\n142,38,10\n143,38,20\n142,39,30", "fewer than four"),
        ("lon,lat,depth_km\n142,38,1\n142,38,2\n142,38,3\n142,38,4", "on one line"),
        ("lon,lat,depth_km\n142,38,NaN", "line 2, column depth_km = NaN"),
    ],
)
def test_malformed_interfaces(text: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_interface(text.encode(), GEO, "slab.csv")
    assert says in str(caught.value)


@pytest.mark.parametrize("engine", ["scipy", "h5netcdf"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_slab_grids_of_either_sign_leave_out_what_is_not_there(
    engine: str, sign: float
) -> None:
    depth = sign * np.array([[10.0, 20.0, np.nan], [15.0, 25.0, 35.0]])
    grid = xr.Dataset({"z": (("y", "x"), depth)}, {"x": [141, 142, 143], "y": [38, 39]})
    found = read_interface(netcdf(grid, engine), GEO)
    assert sorted(-found[:, 2]) == [1e4, 1.5e4, 2e4, 2.5e4, 3.5e4]


def test_depths_in_metres_are_known_by_their_unit() -> None:
    depth = ("y", "x"), np.array([[-10e3, -20e3, -30e3], [-15e3, -25e3, -35e3]])
    grid = xr.Dataset({"z": depth}, {"x": [141, 142, 143], "y": [38, 39]})
    with pytest.raises(SpecError, match="= 35000: is below the centre of the Earth"):
        read_interface(netcdf(grid), GEO)
    grid["z"].attrs["units"] = "m"
    assert read_interface(netcdf(grid), GEO)[:, 2].min() == -35e3


SQUARE = [[142, 38], [143, 38], [143, 39], [142, 39]]


@pytest.mark.parametrize(
    "text",
    [
        "lon,lat\n142,38\n143,38\n143,39\n142,39\n",
        "lon,lat\n142,38\n143,38\n143,39\n142,39\n142,38\n",
        "> outline\n142 38\n143 38\n143 39\n142 39\n",
        "142,38\n143,38\n143,39\n142,39",
        json.dumps({"type": "Polygon", "coordinates": [[*SQUARE, SQUARE[0]]]}),
        json.dumps(
            {
                "type": "FeatureCollection",
                "features": [
                    {
                        "type": "Feature",
                        "properties": {},
                        "geometry": {"type": "Polygon", "coordinates": [SQUARE]},
                    }
                ],
            }
        ),
    ],
)
def test_outlines_in_every_form_are_the_same_polygon(text: str) -> None:
    expected = np.column_stack(GEO.to_local(*np.array(SQUARE, float).T))
    np.testing.assert_allclose(read_outline(text.encode(), GEO), expected, atol=1e-3)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lon,lat\n142,38\n143,38\n", "fewer than three"),
        ("lon,lat\n142,38\n143,39\n143,38\n142,39\n", "crosses itself"),
        (">\n142 38\n143 38\n143 39\n>\n142 39\n", "several polygons"),
        ('{"type": "Point", "coordinates": [1, 2]}', "must be one Polygon"),
        ('{"type": "Polygon"}', "is not a GeoJSON polygon"),
        ('{"type": "Polygon", "coordinates": [[["a", 1]]]}', "not a GeoJSON polygon"),
        ('{"type": "FeatureCollection", "features": []}', "must hold one polygon"),
        ('{"type":\n"Polygon",}', "outline line 2: is not a GeoJSON polygon"),
        (">\n# a\n142 38\n143 x\n143 39\n", "outline line 4, column lat = x"),
    ],
)
def test_malformed_outlines(text: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_outline(text.encode(), GEO, "outline")
    assert says in str(caught.value)


def test_slip_tables() -> None:
    found = read_slip(b"x_km,y_km,depth_km,strike,dip\n1,2,3,0.5,-1\n", LOCAL)
    assert found.points.tolist() == [[1000.0, 2000.0, -3000.0]]
    assert found.slip.tolist() == [[0.5, -1.0]]
    with pytest.raises(SpecError, match="strike and dip are slips here, not angles"):
        read_slip(b"x_km,y_km,depth_km,strike,dip\n1,2,3,210,12\n", LOCAL)


def properties(**change) -> xr.Dataset:
    shape = (4, 3, 2)
    fields = {"vp": 6.4, "vs": 3.7, "rho": 2800.0, "viscosity": 1e19}
    data = {
        name: (("x", "y", "depth"), np.full(shape, value))
        for name, value in fields.items()
    }
    axes = {"x": np.linspace(-150, 150, 4), "y": [-100.0, 0, 100], "depth": [0.0, 50]}
    return xr.Dataset(data, axes).assign(change)


def test_property_grids_are_read_in_si() -> None:
    found = read_grid(netcdf(properties().transpose("depth", "y", "x")), LOCAL, *BOX)
    assert found.x.tolist() == [-150e3, -50e3, 50e3, 150e3]
    assert found.vp.shape == (4, 3, 2)
    assert found.vp[0, 0, 0] == 6400.0
    assert found.viscosity is not None
    assert found.viscosity[0, 0, 0] == 1e19


def test_units_of_a_grid_are_obeyed() -> None:
    data = properties()
    data["vp"] = data["vp"] * 1000
    data["vp"].attrs["units"] = "m/s"
    assert read_grid(netcdf(data), LOCAL, *BOX).vp[0, 0, 0] == 6400.0


def test_grids_in_degrees_are_laid_out_in_metres() -> None:
    lon, lat = np.linspace(140, 145, 51), np.linspace(36, 41, 51)
    depth = np.array([0.0, 30.0, 60.0])
    vp = 5 + 0.01 * (lon[:, None, None] - 140) + 0.01 * depth + 0 * lat[:, None]
    data = xr.Dataset(
        {
            "vp": (("lon", "lat", "depth"), vp),
            "vs": (("lon", "lat", "depth"), vp / 1.8),
            "rho": (("lon", "lat", "depth"), np.full(vp.shape, 3000.0)),
        },
        {"lon": lon, "lat": lat, "depth": depth},
    )
    found = read_grid(netcdf(data), GEO, *BOX)
    x, y = np.meshgrid(found.x, found.y, indexing="ij")
    expected = 5000 + 10 * (GEO.to_geographic(x, y)[0] - 140)
    np.testing.assert_allclose(found.vp[:, :, 0], expected, rtol=1e-9)
    assert found.x[0] == -1e5
    assert found.x[-1] == 1e5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"vs": properties()["vp"]}, "vs must be below vp/1.155"),
        ({"vp": properties()["vp"] * 1000}, "vp must be between"),
        ({"rho": properties()["rho"].where(properties()["x"] > 0)}, "same points"),
        ({"vp": properties()["vp"].isel(x=0)}, "vp must be on x, y, depth"),
        ({"x": [3.0, 2, 1, 0]}, "x must increase"),
        ({"x": [3000.0, 3001, 3002, 3003]}, "no values inside the domain"),
    ],
)
def test_malformed_grids(change: dict, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_grid(netcdf(properties(**change)), LOCAL, *BOX, "grid")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"x,y\n", b"CDF\x01junk", b"\x89HDF\r\n\x1a\nxx"]
)
def test_what_is_no_netcdf_is_reported_so(content: bytes) -> None:
    with pytest.raises(SpecError, match="NetCDF"):
        read_grid(content, LOCAL, *BOX)


def test_meshes_are_known_by_their_content() -> None:
    assert mesh_format(b"$MeshFormat\n4.1 0 8\n") == "gmsh"
    exodus = io.BytesIO()
    with h5py.File(exodus, "w") as file:
        file["coordx"] = [0.0, 1.0]
    assert mesh_format(exodus.getvalue()) == "exodus"
    assert (
        mesh_format(b'<?xml version="1.0"?><VTKFile type="UnstructuredGrid">') == "vtu"
    )
    with pytest.raises(SpecError, match="is not a mesh"):
        mesh_format(b"solid cube")


@needs_data
@pytest.mark.parametrize("name", ["japan_trench_slab2", "nankai_slab2"])
def test_slab2_reads_the_same_from_csv_and_netcdf(name: str) -> None:
    folder = DATA / "slab2_japan"
    first = read_interface((folder / f"{name}.csv").read_bytes(), GEO)
    second = read_interface((folder / f"{name}.nc").read_bytes(), GEO)
    assert first.shape == second.shape
    assert np.abs(np.sort(first[:, 2]) - np.sort(second[:, 2])).max() < 1.0
