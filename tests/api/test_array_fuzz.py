"""Any NetCDF or HDF5 file is read, or refused by name, in little memory and time."""

from __future__ import annotations

import io

import h5py
import numpy as np
import pytest
import xarray as xr
from guarded import Guarded
from hypothesis import given
from hypothesis import strategies as st
from mutation import damaged, examples
from scipy.io import netcdf_file

from afterslip.frame import Frame
from afterslip.readers.netcdf import HDF

GEO = Frame("geographic", 142.4, 38.3)
BOX = (-1e5, 1e5), (-2e5, 2e5)


@pytest.fixture(scope="module")
def guarded():
    process = Guarded("readers")
    yield process
    process.close()


def check(guarded, name, frame, content):
    found = guarded("read", name, frame, content)
    if content.startswith(HDF) and found and "processor time" in found:
        return  # the process that reads such files is ended, see test_hdf_process
    assert found is None, f"{found}\n{content[:300]!r} ({len(content)} bytes)"


def slab():
    depth = np.array([[10.0, 20.0, np.nan], [15.0, 25.0, 35.0]])
    return xr.Dataset({"z": (("y", "x"), depth)}, {"x": [141, 142, 143], "y": [38, 39]})


def properties(lon=(141.0, 142.0, 143.0), lat=(37.0, 38.0, 39.0), depth=(0.0, 50.0)):
    axes = {"lon": list(lon), "lat": list(lat), "depth": list(depth)}
    shape = tuple(len(values) for values in axes.values())
    fields = {"vp": 6.0, "vs": 3.5, "rho": 2700.0, "viscosity": 1e19}
    return xr.Dataset(
        {name: (tuple(axes), np.full(shape, value)) for name, value in fields.items()},
        axes,
    )


def saved(data, engine):
    if engine == "scipy":
        return bytes(data.to_netcdf(engine="scipy"))
    stream = io.BytesIO()
    data.to_netcdf(stream, engine="h5netcdf")
    return stream.getvalue()


FILES = {
    (name, engine): saved(data, engine)
    for name, data in (("interface", slab()), ("grid", properties()))
    for engine in ("scipy", "h5netcdf")
}


@pytest.mark.parametrize("name", ["interface", "grid"])
@pytest.mark.parametrize("engine", ["scipy", "h5netcdf"])
def test_damaged_files(guarded, name, engine):
    @examples(60)
    @given(damaged(FILES[name, engine]))
    def fuzz(content):
        check(guarded, name, "geographic", content)
        check(guarded, "mesh", "geographic", content)

    fuzz()


AXES = ("x", "y", "lon", "lat", "longitude", "depth", "x_km", "y_km", "z")
FIELDS = ("vp", "vs", "rho", "viscosity", "z", "depth", "crs")
ODD = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e154, 5e-324, -0.0, 360.0, 90.0, -90.0,
       3.5, 6.0, 2700.0, 1e19)  # fmt: skip
values = st.floats() | st.sampled_from(ODD)
DIMS = ("", "a", "b", "c", "ab", "bc", "abc", "cba", "aab")
UNITS = ("km", "m", "km/s", "", "Pa s", "furlong", b"\xff", 3, np.arange(3.0))
# as float64 the last one is over the limit, as declared it is not
LENGTHS = (0, 1, 2, 3, 3, 3, 50, 2**27 + 1)


@st.composite
def arrays(draw, classic):
    """Draw a file of variables that may not fit together at all."""
    sizes = {name: draw(st.sampled_from(LENGTHS[:-1])) for name in "abc"}
    start = draw(st.sampled_from((0.0, 37.0, 141.0)))
    kinds = ("f8", "f8", "f4", "i4", "S1") if classic else (
        "f8", "f8", "f4", "i8", "u1", "S8", "c16", "text", "?", "f2")  # fmt: skip
    made = []
    for name in draw(st.permutations(AXES))[:5] + draw(st.permutations(FIELDS))[:5]:
        dims = draw(st.sampled_from(DIMS))
        if name in AXES:
            dims = draw(st.sampled_from(("a", "b", "c", "c", dims)))
        kind = draw(st.sampled_from(kinds))
        shape = tuple(sizes[dim] for dim in dims)
        content = start + np.arange(np.prod(shape, dtype=int)).reshape(shape)
        if name in FIELDS:
            content = content * 0 + draw(values)
        if content.size:
            content.flat[draw(st.integers(0, content.size - 1))] = draw(values)
        made.append((name, dims, kind, content, draw(st.sampled_from(UNITS))))
    stream = io.BytesIO()
    with np.errstate(all="ignore"):
        return (_classic if classic else _hdf)(stream, sizes, made, draw)


def _classic(stream, sizes, made, draw):
    file = netcdf_file(stream, "w", version=draw(st.sampled_from((1, 2))))
    for name, size in sizes.items():
        file.createDimension(name, size)
    for name, dims, kind, content, unit in made:
        variable = file.createVariable(name, kind, tuple(dims))
        if not dims:
            variable.data[...] = 0
        elif kind != "S1":
            data = np.nan_to_num(content) if kind == "i4" else content
            variable[:] = data.astype(kind)
        variable.units = unit
    file.flush()
    # closed with the file when that is collected
    return stream.getvalue()


def _hdf(stream, sizes, made, draw):
    with h5py.File(stream, "w") as file:
        for name, size in sizes.items():
            file[name] = np.arange(float(size))
            file[name].make_scale(name)
        for name, dims, kind, content, unit in made:
            if name in file:
                continue
            how = {"dtype": h5py.string_dtype() if kind == "text" else kind}
            if draw(st.integers(0, 9)) == 0:
                # chunks that are not there read as the fill value
                shape = (LENGTHS[-1],) * max(1, len(dims))
                item = file.create_dataset(name, shape, chunks=(4,) * len(shape), **how)
            elif content.size and kind not in {"text", "S8"}:
                data = np.nan_to_num(content) if kind in {"i8", "u1"} else content
                item = file.create_dataset(name, data=data.astype(kind))
            else:
                item = file.create_dataset(name, content.shape, **how)
            item.attrs["units"] = np.bytes_(unit) if isinstance(unit, bytes) else unit
            for axis, dim in enumerate(dims[: len(item.shape)]):
                item.dims[axis].attach_scale(file[dim])
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["classic", "hdf5"])
def test_arrays_that_do_not_fit_together(guarded, kind):
    @examples(40)
    @given(arrays(kind == "classic"), st.sampled_from(("geographic", "local")))
    def fuzz(content, frame):
        for name in ("interface", "grid", "mesh"):
            check(guarded, name, frame, content)

    fuzz()
