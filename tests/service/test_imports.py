"""What the processes of a service import before anybody asks them for anything."""

import subprocess
import sys

import pytest

# each takes a tenth of a second or more, and most requests need none of them
HEAVY = {"dask", "h5py", "matplotlib", "numba", "pandas", "psycopg", "pyproj", "scipy",
         "xarray", "zarr"}  # fmt: skip


@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("afterslip_service.main", set()),
        ("afterslip_service.embedded", set()),
        ("afterslip_workers.lifecycle", {"dask"}),
        ("afterslip_workers.entry", set()),
    ],
)
def test_a_process_starts_without_the_heavy_libraries(module: str, needed: set[str]):
    code = f"import {module}, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert HEAVY & set(done.stdout.split()) == needed
