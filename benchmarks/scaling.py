"""One group over 1, 2, 4 GPUs of a host, on the trench that benchmarks share.

    python benchmarks/scaling.py --mesh MESH.npz --refine 3 --gpus 4,1,2 [--json FILE]

Aggregates are made once and the parts anew for each number of GPUs. After each number
the figures so far are written, so a run that is cut short still says something.
"""

import argparse
import json
import time
from pathlib import Path

from trench import load

from afterslip_solver.benchmarks import scaling
from afterslip_solver.benchmarks.record import Record, device_name, document
from afterslip_solver.model import SolverSettings

DAY = 86400.0


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=3)
    parser.add_argument("--gpus", default="1,2,4")
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    begin = time.perf_counter()

    def say(what: str) -> None:
        print(f"[{time.perf_counter() - begin:6.1f} s] {what}", flush=True)

    model, slip = load(options.mesh, options.refine)
    say(f"{len(model.mesh.elements)} elements, {3 * len(model.mesh.nodes)} unknowns")
    settings = SolverSettings(times=(0.0, 30 * DAY), until=30 * DAY)
    counts = [int(count) for count in options.gpus.split(",")]

    def keep(found: list[Record]) -> None:
        told = document(found, device_name())
        told["commit"] = options.commit or told["commit"]
        if options.json:
            options.json.write_text(json.dumps(told, indent=1) + "\n")

    for entry in scaling.records(model, slip, settings, counts, say=say, keep=keep):
        print(f"{entry['metric']:28} {entry['value']:9.4g} {entry['note']}")


if __name__ == "__main__":
    main()
