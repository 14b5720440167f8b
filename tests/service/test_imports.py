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


def test_a_computing_process_solves_without_what_reads_results_and_meshes():
    code = """
import sys
from afterslip_workers import child
from afterslip_workers.engines.registry import load_all
from afterslip_workers.tasks import greens, model
load_all()
print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    found = set(done.stdout.split())
    assert (HEAVY | {"meshio"}) & found == {"numba", "scipy", "zarr"}
