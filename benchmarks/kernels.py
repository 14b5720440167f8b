"""The CUDA kernels on the Japan Trench, see `afterslip bench kernels`.

    python benchmarks/kernels.py --mesh MESH.npz --refine 3 [--json FILE]

MESH.npz is written by `trench.py`. With --solve, `afterslip bench solve` instead.
"""

import argparse
import time
from pathlib import Path

from trench import load

from afterslip_common.record import write_records
from afterslip_solver.benchmarks import kernels, solve
from afterslip_solver.model import SolverSettings


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, nargs="*", default=[3])
    parser.add_argument("--solve", action="store_true")
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    module = solve if options.solve else kernels
    found = []
    for refine in options.refine:
        begin = time.perf_counter()
        model, slip = load(options.mesh, refine)
        print(f"model after {time.perf_counter() - begin:.1f} s", flush=True)
        more = module.records(model, slip, SolverSettings(), options.backend)
        for item in more:
            print(item["metric"], f"{item['value']:.4g}", item["note"], flush=True)
        found += more
        write_records(options.json, found, options.commit)


if __name__ == "__main__":
    main()
