"""Steps of waves, see `afterslip bench waves`, and which sizes of blocks are best.

    python benchmarks/waves.py [--backend gpu] [--nodes N] [--sweep] [--slabs K]
        [--json FILE]

With --sweep the march is also timed with other tiles, lanes of a thread and planes of
a block (on a GPU); each is checked first. With --slabs steps on several GPUs are timed
beside those on one, and nothing else.
"""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np

from afterslip_common.record import device_name, document
from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.waves import Voxels
from afterslip_solver.benchmarks import waves

TILES = {
    np.float32: ((17, 15), (17, 13), (33, 7), (32, 8), (16, 16), (15, 17)),
    np.float64: ((9, 14), (17, 7), (16, 8), (14, 9)),
}
# of INT8: columns and resident blocks
BLOCKS = ((8, 8, 2), (8, 12, 1), (8, 16, 1))
CHUNKS = (1, 3, 4, 7, 8)


def fields(n: int, real):
    """Return voxels of one rock, u, its next, v and coefficients of a march."""
    import cupy

    one = np.ones((n - 1,) * 3, np.float32)
    u = cupy.random.standard_normal((3, n**3, LANES)).astype(real)
    coef = cupy.full(3 * n**3, 1e-12, dtype=real)
    return one, (u, cupy.zeros_like(u), cupy.zeros_like(u), coef, 1e-3)


def timed(what: str, n: int, make, arguments) -> None:
    """Time a march after its check; what does not fit is left out."""
    import cupy

    from afterslip_solver.benchmarks.kernels import milliseconds

    try:
        taken = milliseconds(cupy, make().march, *arguments, repeats=5, queued=1)
    except (cupy.cuda.driver.CUDADriverError, ArithmeticError) as error:
        print(f"    -   {what}: {error}", flush=True)
        return
    print(f"{LANES * n**3 / taken / 1e6:7.2f} G/s {what}", flush=True)


def sweep(n: int, real) -> None:
    """Time the march alone in other sizes of blocks."""
    import cupy

    from afterslip_solver.backend.cuda.variants import VoxelShape, voxel_shape
    from afterslip_solver.backend.cuda.wave_steps import GpuWaveSteps

    one, arguments = fields(n, real)
    voxels = Voxels((n,) * 3, 400.0, one, one, 0.0, 0.9)
    processors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    shapes = [voxel_shape(real, voxels.shape, processors)]
    for (x, y), chunks in itertools.product(TILES[real], CHUNKS):
        shapes.append(VoxelShape(x, y, -(-n // chunks), 2, 1))
    for shape in shapes:

        def make(shape=shape):
            waves.check(lambda w: GpuWaveSteps(w, real, shape), real)
            return GpuWaveSteps(voxels, real, shape)

        timed(f"{np.dtype(real)} {shape}", n, make, arguments)


def sweep_int8(n: int) -> None:
    """Time the march with seven digits in other sizes of blocks."""
    from afterslip_solver.backend.cuda.variants import VoxelShape
    from afterslip_solver.backend.cuda.wave_steps import GpuInt8Steps

    one, arguments = fields(n, np.float64)
    voxels = Voxels((n,) * 3, 400.0, one, one, 0.75, 0.75)
    for (x, y, resident), chunks in itertools.product(BLOCKS, (1, 4)):
        shape = VoxelShape(x, y, -(-n // chunks), 1, resident)

        def make(shape=shape):
            def small(w):
                return GpuInt8Steps(w, 7, shape)

            waves.check(small, np.float64, "orthogonal")
            return GpuInt8Steps(voxels, 7, shape)

        timed(f"int8 {shape}", n, make, arguments)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--slabs", type=int, default=1, help="GPUs to compare with one")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.slabs > 1:
        size = options.nodes or 384
        found = list(waves.scaling(options.backend, options.slabs, size))
    else:
        found = waves.records(options.backend, options.nodes)
    for item in found:
        ratio = f"{item['ratio']:.3f} of the baseline"
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
