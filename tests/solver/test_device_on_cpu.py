"""What needs a GPU, with its kernels as functions of the CPU.

The fibers and threads of `device_on_cpu/device.h` stand for those of a thread block. A
GPU alone shows that the hardware agrees; but numbers, graphs, and who waits for whom
are the sources' own, and are shown here.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")
# what a process returns in which the sanitizer has found a race
RACE = 66

pytestmark = pytest.mark.skipif(
    COMPILER is None or platform.machine() != "x86_64",
    reason="needs g++, and stacks of x86-64",
)


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    """Run Python with the stand-in for CuPy."""
    # one folder for all processes of the run
    folder = tmp_path_factory.getbasetemp().parent / "device-on-cpu"
    folder.mkdir(exist_ok=True)

    def started(*arguments, **variables):
        # the root, because processes of a test import its module
        paths = os.pathsep.join(map(str, (HERE / "device_on_cpu", HERE.parents[1])))
        own = {"PYTHONPATH": paths, "DEVICE_ON_CPU": str(folder)}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=HERE,
            env={**os.environ, **own, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    return started


@pytest.fixture(scope="session")
def run(started):
    """Run tests that are marked as needing a GPU, in a process of their own."""
    command = ["-m", "pytest", "-q", "-p", "few_blocks", "-p", "no:cacheprovider"]
    return lambda *chosen, **variables: started(
        *command, "-m", "gpu", *chosen, **variables
    )


@pytest.fixture(scope="session")
def watched(started):
    """Return variables with which a sanitizer watches the threads of a block."""
    command = [str(COMPILER), "-print-file-name=libtsan.so"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    own = {
        "LD_PRELOAD": found.stdout.strip(),
        "TSAN_OPTIONS": f"exitcode={RACE} halt_on_error=1",
        "DEVICE_ON_CPU_RACES": "1",
    }
    # it wants memory where some kernels of Linux put other things
    if not Path(own["LD_PRELOAD"]).is_absolute() or started("-c", "", **own).returncode:
        pytest.skip("no sanitizer of threads that runs here")
    return own


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [
        "test_backends.py",
        "test_gpu.py",
        "test_gpu_stencils.py",
        "test_local_rows.py",
        "test_voxel_element.py",
        pytest.param("test_gpu_rheology.py", marks=pytest.mark.slow),
        pytest.param("test_nested_guess.py", marks=pytest.mark.slow),
        pytest.param("test_beside.py", marks=pytest.mark.slow),
        pytest.param("test_voxel_attenuation.py", marks=pytest.mark.slow),
        pytest.param("test_voxel_ground.py", marks=pytest.mark.slow),
        pytest.param("test_voxel_march.py", marks=pytest.mark.slow),
    ],
)
def test_what_needs_a_gpu_passes(run, name):
    done = run(name)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " passed" in done.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_ranks_of_several_gpus_find_what_one_cpu_finds(run, count):
    done = run("test_parallel_gpu.py", DEVICES_ON_CPU=str(count))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert f"{11 if count == 2 else 15} passed" in done.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "chosen",
    [
        ("test_backends.py", "-k", "TestOnTheGpu and stiffness"),
        ("test_voxel_element.py", "-k", "selective and shape1"),
        pytest.param(
            ("test_gpu_stencils.py", "-k", "product and float32"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_threads_of_a_block_wait_for_each_other(run, watched, chosen):
    # what the sanitizer says must not be captured within
    done = run("-s", *chosen, **watched)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " passed" in done.stdout


TURNED = """
import cupy
import numpy as np

code = r'''
extern "C" __global__ void __launch_bounds__(64) turned(const int* a, int* out) {
  __shared__ int own[64];
  own[threadIdx.x] = a[threadIdx.x];
  BETWEEN
  out[threadIdx.x] = own[63 - threadIdx.x];
}
'''
a = cupy.asarray(np.arange(64, dtype=np.int32))
out = cupy.empty(64, np.int32)
run = cupy.RawModule(code, ("-DBETWEEN=%s",)).get_function("turned")
run((1,), (64,), (a, out))
assert (out.get() == np.arange(64)[::-1]).all()
"""


@pytest.mark.parametrize(("between", "code"), [("__syncthreads();", 0), ("", RACE)])
def test_a_barrier_that_lacks_is_found(started, watched, between, code):
    done = started("-c", TURNED % between, **watched)
    assert done.returncode == code, done.stderr[-3000:]
    assert ("data race" in done.stderr) == bool(code)


def test_threads_that_wait_for_nobody_end_the_run(started):
    # half of a block at a barrier of all
    between = "if (threadIdx.x < 32) __syncthreads();"
    done = started("-c", TURNED % between)
    assert done.returncode == -signal.SIGABRT
