"""HDF5 files that are not trusted end in time, and read the same as in this process."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from afterslip.errors import SpecError
from afterslip.readers import hdf_process
from afterslip.readers.netcdf import open_bytes

# a grid of this project's tests with one byte of its global heap set to zero: the
# library steps on by nothing, for ever
ENDLESS = Path(__file__).with_name("data") / "endless.nc"


def test_a_file_that_keeps_the_library_in_a_loop_is_refused_in_time(monkeypatch):
    monkeypatch.setattr(hdf_process, "CPU_S", 2.0)
    with pytest.raises(SpecError, match=r"^grid\.nc: is not read within 2 s"):
        open_bytes(ENDLESS.read_bytes(), "grid.nc")


def test_a_grid_comes_back_from_the_other_process_as_it_was_written():
    data = xr.Dataset(
        {"z": (("y", "x"), np.array([[1.0, np.nan], [3.0, 4.0]], "f4"))},
        {"x": [141, 142], "y": [38.5, 39.5]},
        {"title": "slab"},
    )
    stream = io.BytesIO()
    data.to_netcdf(stream, engine="h5netcdf")
    xr.testing.assert_identical(open_bytes(stream.getvalue(), "slab.nc"), data)


def test_a_refusal_in_the_other_process_keeps_its_path_and_hint():
    content = b"\x89HDF\r\n\x1a\n" + bytes(100)
    with pytest.raises(SpecError) as caught:
        open_bytes(content, "model.grid.file")
    assert caught.value.problems[0].path == "model.grid.file"


def test_memory_that_runs_out_in_the_other_process_is_no_damaged_file(monkeypatch):
    def run(*_: object, **__: object) -> object:
        return type("Done", (), {"returncode": 1, "stderr": b"x\nMemoryError: 9 GiB"})

    monkeypatch.setattr("subprocess.run", run)
    with pytest.raises(MemoryError, match=r"slab\.nc"):
        open_bytes(b"\x89HDF\r\n\x1a\n", "slab.nc")
