"""What needs a GPU, with its kernels as functions of the CPU.

The fibers and threads of `device_on_cpu/device.h` stand for those of a thread block. A
GPU alone shows that the hardware agrees; but numbers, graphs, and who waits for whom
are the sources' own, and are shown here.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")

pytestmark = pytest.mark.skipif(
    COMPILER is None or platform.machine() != "x86_64",
    reason="needs g++, and stacks of x86-64",
)


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """Run tests that are marked as needing a GPU, in a process of their own."""
    # one for all processes of the run
    folder = tmp_path_factory.getbasetemp().parent / "device-on-cpu"
    folder.mkdir(exist_ok=True)

    def run(*chosen, **variables):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "few_blocks"]
        own = {"PYTHONPATH": str(HERE / "device_on_cpu"), "DEVICE_ON_CPU": str(folder)}
        return subprocess.run(
            [*command, "-p", "no:cacheprovider", "-m", "gpu", *chosen],
            cwd=HERE,
            env={**os.environ, **own, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [
        "test_backends.py",
        "test_gpu.py",
        "test_gpu_stencils.py",
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


def sanitizer():
    command = [str(COMPILER), "-print-file-name=libtsan.so"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    path = Path(found.stdout.strip())
    return str(path) if path.is_absolute() else None


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
def test_threads_of_a_block_wait_for_each_other(run, chosen):
    watched = sanitizer()
    if watched is None:
        pytest.skip("no sanitizer of threads here")
    own = {"LD_PRELOAD": watched, "TSAN_OPTIONS": "exitcode=66 halt_on_error=1"}
    # what the sanitizer says must not be captured within
    done = run("-s", *chosen, DEVICE_ON_CPU_RACES="1", **own)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " passed" in done.stdout
