"""The published algorithms beside ours on the Japan Trench, see docs/baseline.md.

    python benchmarks/paper.py --mesh MESH.npz --refine 3 [--json FILE]

MESH.npz is written by `trench.py`.
"""

import argparse
import time
from pathlib import Path

from trench import load

from afterslip_common.record import Record, write_records
from afterslip_solver.benchmarks import paper
from afterslip_solver.model import SolverSettings


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=3)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    begin = time.perf_counter()
    model, slip = load(options.mesh, options.refine)
    print(f"model after {time.perf_counter() - begin:.1f} s", flush=True)
    found: list[Record] = []

    def keep(item: Record) -> None:
        # a run that is cut short leaves what it has measured
        found.append(item)
        baseline = "" if item["baseline"] is None else f" ({item['baseline']:.4g})"
        figure = f"{item['metric']} {item['value']:.4g}{baseline} {item['unit']}"
        now = time.perf_counter() - begin
        print(f"[{now:5.1f} s] {figure}: {item['note']}", flush=True)
        write_records(options.json, found, options.commit)

    paper.records(model, slip, SolverSettings(), options.backend, keep)


if __name__ == "__main__":
    main()
