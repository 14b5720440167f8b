"""Steps of waves, see `afterslip bench waves`, and which sizes of blocks are best.

    python benchmarks/waves.py [--backend gpu] [--nodes N] [--sweep] [--json FILE]

With --sweep the march is also timed with other tiles, lanes of a thread and planes of
a block (on a GPU); each is checked first.
"""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np

from afterslip_common.record import device_name, document
from afterslip_solver.backend.base import LANES
from afterslip_solver.benchmarks import waves

TILES = ((16, 8), (8, 8), (16, 16), (32, 4), (32, 8))
PLANES = (32, 128)


def sweep(n: int, real) -> None:
    """Time the march alone in other sizes of blocks; what does not fit is left out."""
    import cupy

    from afterslip_solver.backend.cuda.variants import VoxelShape
    from afterslip_solver.backend.cuda.wave_steps import GpuWaveSteps
    from afterslip_solver.benchmarks.kernels import milliseconds

    voxels = waves.prepared("gpu", "fp32", n).steps.voxels
    u = cupy.random.standard_normal((3, n**3, LANES), dtype=real)
    then, v = cupy.zeros_like(u), cupy.zeros_like(u)
    coef = cupy.full(3 * n**3, 1e-12, dtype=real)
    lanes, residents = ((1, 2, 4) if real == np.float32 else (1, 2)), (1, 2, 3)
    for (x, y), per, resident in itertools.product(TILES, lanes, residents):
        threads = x * y * (LANES // per)
        if threads * resident > 2048 or threads > 1024:
            continue
        for planes in PLANES:
            shape = VoxelShape(x, y, planes, per, resident)
            try:
                waves.check(lambda w, s=shape: GpuWaveSteps(w, real, s), real)
                steps = GpuWaveSteps(voxels, real, shape)
                taken = milliseconds(
                    cupy, steps.march, u, then, v, coef, 1e-3, repeats=5
                )
            except (cupy.cuda.driver.CUDADriverError, ArithmeticError) as error:
                print(f"    -   {np.dtype(real)} {shape}: {error}", flush=True)
                continue
            rate = LANES * n**3 / taken / 1e6
            print(f"{rate:7.2f} G/s {np.dtype(real)} {shape}", flush=True)


def sweep_int8(n: int) -> None:
    """Time the march with seven digits in other sizes of blocks."""
    import cupy

    from afterslip_solver.backend.cuda.variants import VoxelShape
    from afterslip_solver.backend.cuda.wave_steps import GpuInt8Steps
    from afterslip_solver.benchmarks.kernels import milliseconds

    voxels = waves.prepared("gpu", "int8", n, "orthogonal").steps.voxels
    u = cupy.random.standard_normal((3, n**3, LANES))
    then, v = cupy.zeros_like(u), cupy.zeros_like(u)
    coef = cupy.full(3 * n**3, 1e-12)
    blocks = ((16, 8, 1), (8, 8, 2), (8, 8, 1), (16, 4, 2), (8, 4, 4))
    for (x, y, resident), planes in itertools.product(blocks, PLANES):
        shape = VoxelShape(x, y, planes, 1, resident)
        try:
            steps = GpuInt8Steps(voxels, 7, shape)
            taken = milliseconds(cupy, steps.march, u, then, v, coef, 1e-3, repeats=5)
        except cupy.cuda.driver.CUDADriverError as error:
            print(f"    -   int8 {shape}: {error}", flush=True)
            continue
        print(f"{LANES * n**3 / taken / 1e6:7.2f} G/s int8 {shape}", flush=True)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = waves.records(options.backend, options.nodes)
    for item in found:
        ratio = f"{item['ratio']:.3f} of the copy's rate"
        print(item["metric"], f"{item['value']:.4g}", ratio, item["note"], flush=True)
    if options.json:
        content = document(found, device_name())
        options.json.write_text(json.dumps(content, indent=1) + "\n")
    if options.sweep:
        for real in (np.float32, np.float64):
            sweep(options.nodes or 256, real)
        sweep_int8(options.nodes or 256)


if __name__ == "__main__":
    main()
