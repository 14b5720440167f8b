"""Files made to take all memory or time, or to be taken for something else."""

import gc
import io
import json
import time
import zlib

import h5py
import numpy as np
import pytest
import xarray as xr

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers import series
from afterslip.readers.grid import read_grid
from afterslip.readers.hdf import check_hdf
from afterslip.readers.interface import read_interface, read_outline
from afterslip.readers.meshfile import mesh_format
from afterslip.readers.netcdf import MAX_DECLARED
from afterslip.readers.observations import read_observations
from afterslip.readers.places import read_stations

GEO = Frame("geographic", 142.4, 38.3)
BOX = (-1e5, 1e5), (-2e5, 2e5)


def refusal(read, *arguments) -> str:
    with pytest.raises(SpecError) as caught:
        read(*arguments)
    text = str(caught.value)
    assert len(text) < 20_000
    return text


def test_header_without_line_breaks_is_refused_before_it_is_compared() -> None:
    content = ",".join(f"c{n}" for n in range(100_000)).encode()
    assert "has 100000 fields" in refusal(read_stations, content, GEO)


def test_quoted_field_longer_than_the_library_takes_names_its_line() -> None:
    content = b'station,lon,lat\n"' + b"x" * 200_000 + b'",142,38\n'
    assert "line 2: cannot be split" in refusal(read_stations, content, GEO)


def test_each_line_of_another_type_is_refused_in_linear_time() -> None:
    took = []
    gc.disable()  # its share depends on what other tests have left in memory
    try:
        for count in (2_000, 20_000):
            lines = "".join(f"A,142,38,1,0.1,kind{n}\n" for n in range(count))
            content = f"station,lon,lat,east,sigma_e,type\n{lines}".encode()
            tries = []
            for _ in range(3):
                began = time.process_time()
                text = refusal(read_observations, content, GEO)
                tries.append(time.process_time() - began)
            took.append(min(tries))
            assert "kind0: must be one of" in text
            assert f"{count - 20} more problems" in text
    finally:
        gc.enable()
    # ten times as many; in quadratic time it was over 40 times as long
    assert took[1] < 25 * took[0]


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("1e-320,0", "is less than 1e-09 m"),
        ("0.1,1e308", "is more than a million years"),
    ],
)
def test_numbers_whose_squares_overflow_are_refused(field: str, says: str) -> None:
    content = f"station,lon,lat,east,sigma_e,time\nA,142,38,1,{field}\n".encode()
    assert f"line 2, column {'sigma_e' if '320' in field else 'time'}" in refusal(
        read_observations, content, GEO
    )
    assert says in refusal(read_observations, content, GEO)


def test_corner_that_is_no_float_is_refused() -> None:
    ring = [[142, 38], [10**400, 38], [143, 39]]
    content = json.dumps({"type": "Polygon", "coordinates": [ring]}).encode()
    assert "is not a GeoJSON polygon" in refusal(read_outline, content, GEO)


POS = (
    "PBO Station Position Time Series. Reference Frame : IGS14\n4-character ID: P004\n"
    "NEU Reference position : 43.1 {lon} 1300.5 (IGS14)\n*YYYYMMDD HHMMSS JJJJJ.JJJJ\n"
    " 20110311 120000 55631.5 -1 2 3 0.1 0.1 0.1 0 0 0 43.1 246.2 1300.5 {north} 0.01 "
    "0.02 0.001 0.001 0.003 0 0 0 final\n"
)


def test_station_at_no_longitude_is_refused() -> None:
    text = refusal(series.read_pos, POS.format(lon="nan", north=1).encode())
    assert "is no longitude" in text


def test_position_beyond_the_earth_is_refused() -> None:
    text = refusal(series.read_pos, POS.format(lon=246, north="1e308").encode())
    assert "line 5: has a length of over 1e8 m" in text


def saved(data: xr.Dataset) -> bytes:
    stream = io.BytesIO()
    data.to_netcdf(stream, engine="h5netcdf")
    return stream.getvalue()


def slab(**changes: object) -> bytes:
    axes = {"x": ("x", [141.0, 142.0, 143.0]), "y": ("y", [38.0, 39.0])}
    data = {"z": (("y", "x"), np.full((2, 3), 10.0)), **axes}
    return saved(xr.Dataset({**data, **changes}))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (slab(lon=((), 3.0)), "lon must be an axis"),
        (slab(lon=("y", [141.0, 142.0])), "must be a grid on lon and lat"),
        (slab(x=("x", [141.0, np.nan, 143.0])), "x must be between -180 and 360"),
        (slab(y=("y", [38.0, 1e308])), "y must be between -90 and 90"),
        (slab(z=(("y", "x"), [["a", "b", "c"]] * 2)), "z must hold real numbers"),
    ],
)
def test_grid_whose_axes_are_none_is_refused(content: bytes, says: str) -> None:
    assert says in refusal(read_interface, content, GEO)


def properties(lon: np.ndarray, depth: np.ndarray) -> bytes:
    axes = {"lon": lon, "lat": np.array([37.0, 38.0, 39.0]), "depth": depth}
    shape = tuple(len(values) for values in axes.values())
    fields = {"vp": 6.0, "vs": 3.5, "rho": 2700.0}
    return saved(
        xr.Dataset(
            {k: (tuple(axes), np.full(shape, v)) for k, v in fields.items()}, axes
        )
    )


def test_grid_that_grows_in_local_metres_is_refused_with_its_size() -> None:
    # two longitudes that are close ask for a step that is fine everywhere
    lon = np.array([141.0, 141.0001, 143.0])
    content = properties(lon, np.linspace(0.0, 100.0, 20_000))
    assert "points in local metres" in refusal(read_grid, content, GEO, *BOX)


def test_grid_of_two_axes_on_one_dimension_is_refused() -> None:
    line = ("a", [1.0, 2.0, 3.0])
    data = {"x": line, "y": line, "depth": ("b", [0.0, 1.0])}
    fields = {k: (("a", "b"), np.ones((3, 2))) for k in ("vp", "vs", "rho")}
    content = saved(xr.Dataset({**data, **fields}))
    assert "vp must be on" in refusal(read_grid, content, Frame("local"), *BOX)


def hdf(write) -> bytes:
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        write(file)
    return stream.getvalue()


def small_numbers(file: h5py.File) -> None:
    file.create_dataset("z", (2**27 + 1,), "u1", chunks=(1024,))


def large_chunk(file: h5py.File) -> None:
    file.create_dataset("z", (10,), "f8", maxshape=(None,), chunks=(2**28,))


def packed_chunk(file: h5py.File) -> None:
    item = file.create_dataset("z", (2**17,), "f8", chunks=(2**17,), compression=9)
    packing = zlib.compressobj(9)
    block = bytes(2**24)
    packed = [packing.compress(block) for _ in range(80)]
    item.id.write_direct_chunk((0,), b"".join([*packed, packing.flush()]))


def packed_twice(file: h5py.File) -> None:
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((1024,))
    plan.set_deflate(9)
    plan.set_deflate(9)
    space = h5py.h5s.create_simple((1024,))
    h5py.h5d.create(file.id, b"z", h5py.h5t.IEEE_F64LE, space, plan)


def long_texts(file: h5py.File) -> None:
    file["x"] = "x" * 2**20
    file.create_dataset("z", (1025,), h5py.string_dtype())


def long_attribute(file: h5py.File) -> None:
    file["x"] = "x" * 2**22
    file.attrs.create("names", ["a"] * 512, dtype=h5py.string_dtype())


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (small_numbers, "declares arrays of 1,073,741,832 bytes"),
        (large_chunk, "has chunks of 2,147,483,648 bytes"),
        (packed_chunk, "unpacks to more than 1,048,576"),
        (packed_twice, "compressed 2 times"),
        (long_texts, "declares arrays of"),
        (long_attribute, "a list of texts that is too long as attribute names"),
    ],
)
def test_hdf5_that_grows_when_it_is_read_is_refused(write, says: str) -> None:
    assert says in refusal(check_hdf, hdf(write), "file", MAX_DECLARED)


def test_compressed_chunks_that_are_what_they_declare_are_taken() -> None:
    noise = np.random.default_rng(1).normal(size=2**18)
    for options in ({}, {"shuffle": True, "fletcher32": True, "chunks": (2**18,)}):
        content = hdf(
            lambda f, o=options: f.create_dataset("z", data=noise, compression=9, **o)
        )
        check_hdf(content, "file", MAX_DECLARED)


VTU = b'<VTKFile type="UnstructuredGrid" version="1.0" header_type="%s">'


def test_xml_definitions_behind_a_comment_are_refused() -> None:
    content = (
        b'<?xml version="1.0"?><!-- <AppendedData -->'
        b'<!DOCTYPE VTKFile [<!ENTITY a "b">]>' + VTU % b"UInt32" + b"&a;</VTKFile>"
    )
    assert "XML definitions" in refusal(mesh_format, content)


def test_sizes_of_a_vtu_that_may_be_negative_are_refused() -> None:
    assert mesh_format(VTU % b"UInt64") == "vtu"
    assert "header_type must be" in refusal(mesh_format, VTU % b"Int64")
