"""Relaxation curves of one group on the Japan Trench, see `afterslip bench curve`.

    python benchmarks/curve.py --mesh MESH.npz --refine 3 [--json FILE]

MESH.npz is written by `trench.py`.
"""

import argparse
import logging
import time
from pathlib import Path

from trench import load

from afterslip_common.record import write_records
from afterslip_solver.benchmarks import curve
from afterslip_solver.model import SolverSettings


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=3)
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--predictors", nargs="*", default=())
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    form = "[%(relativeCreated)7.0f ms] %(message)s"
    logging.basicConfig(level=logging.INFO, format=form)
    begin = time.perf_counter()
    model, slip = load(options.mesh, options.refine)
    print(f"model after {time.perf_counter() - begin:.1f} s", flush=True)
    found = curve.records(
        model, slip, SolverSettings(), options.backend, tuple(options.predictors)
    )
    write_records(options.json, found, options.commit)


if __name__ == "__main__":
    main()
