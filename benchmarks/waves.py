"""Steps of waves, see `afterslip bench waves`, and which sizes of blocks are best.

    python benchmarks/waves.py [--backend gpu] [--nodes N] [--sweep] [--json FILE]

With --sweep the march is also timed with other tiles, lanes of a thread and planes of
a block (on a GPU); each is checked first.
"""

import argparse
import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from afterslip_common.record import device_name, document, record
from afterslip_solver.backend.base import LANES
from afterslip_solver.benchmarks import waves

TILES = ((16, 8), (8, 8), (16, 16), (32, 4), (32, 8), (16, 4))
PLANES = (32, 64, 128)


def sweep(n: int, real) -> list:
    """Time the march in other sizes of blocks; those that do not fit are left out."""
    import cupy

    from afterslip_solver.backend.cuda.variants import VoxelShape
    from afterslip_solver.backend.cuda.wave_steps import GpuWaveSteps

    precision = "fp32" if real == np.float32 else "fp64"
    ready = waves.prepared("gpu", precision, n)
    waves.begun(ready)
    first = ready.steps
    found = []
    pers, residents = ((1, 2, 4) if real == np.float32 else (1, 2)), (1, 2, 3)
    for (x, y), per, resident in itertools.product(TILES, pers, residents):
        if x * y * (LANES // per) * resident > 2048 or x * y * (LANES // per) > 1024:
            continue
        for planes in PLANES:
            shape = VoxelShape(x, y, planes, per, resident)
            try:
                waves.check(lambda v, s=shape: GpuWaveSteps(v, real, s), real)
                # the same arrays, other blocks
                steps = GpuWaveSteps(first.voxels, real, shape)
                ready = replace(ready, steps=steps)
                taken = waves.seconds(waves.begun(ready), 10, 3)
            except (cupy.cuda.driver.CUDADriverError, ArithmeticError) as error:
                print(shape, error, flush=True)
                continue
            rate = LANES * ready.grid.n_node / taken / 1e9
            name = f"{precision} {x}x{y} planes {planes} per {per} resident {resident}"
            print(f"{rate:7.2f} {name}", flush=True)
            found.append(record(f"voxel_sweep {name}", rate, "G/s"))
    return found


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


if __name__ == "__main__":
    main()
