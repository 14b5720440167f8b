"""Curves of one group and iterations in mixed precision beside those in FP64.

    python benchmarks/precision.py --mesh MESH.npz --refine 3 [--json FILE]

MESH.npz is written by `trench.py`. Times are medians of runs in turn, after one of
each; errors are those of the change, against tolerances of 1e-11 and 1e-9.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from trench import load

from afterslip_common.record import Record, record, write_records
from afterslip_solver.benchmarks import bandwidth
from afterslip_solver.benchmarks.timing import DAY, wait
from afterslip_solver.greens import Prepared, evaluate_curve, prepare
from afterslip_solver.model import Float, GroupResult, SolverSettings

TIMES = np.linspace(0.0, 30.0 * DAY, 31)
PRECISIONS = ("mixed", "double")


def change(result: GroupResult) -> Float:
    """Return what follows the elastic response, (lane, time, node, 3)."""
    curve = evaluate_curve(result, TIMES)
    return np.asarray(curve - curve[:, :1])


def curves(made: Prepared, slip: dict[str, Float], repeats: int) -> list[Record]:
    """Time and check both precisions in turn."""
    settings, nodes = made.settings, made.model.surface.nodes
    tight = replace(settings, tolerance=1e-11, time_tolerance=1e-9, precision="double")
    exact = change(made.adapted(tight).solve(slip, nodes))
    size = np.abs(exact).max(axis=(1, 2, 3))
    seconds: dict[str, list[float]] = {name: [] for name in PRECISIONS}
    last = {}
    for _ in range(repeats + 1):
        for name in PRECISIONS:
            part = made.adapted(replace(settings, precision=name))
            wait(made.backend)
            begin = time.perf_counter()
            last[name] = part.solve(slip, nodes)
            wait(made.backend)
            seconds[name].append(time.perf_counter() - begin)
    notes, found = {}, []
    for name, result in last.items():
        off = np.abs(change(result) - exact).max(axis=(1, 2, 3)) / size
        counts = [entry["iterations"] for entry in result.history]
        reached = max(result.history[0]["residuals"])
        notes[name] = (
            f"{result.outcome}, iterations {counts}, true error of the curve "
            f"{off.max():.1e}, elastic residual {reached:.1e}"
        )
        print(name, np.median(seconds[name][1:]), notes[name], flush=True)
    middle = {name: float(np.median(seconds[name][1:])) for name in PRECISIONS}
    words = f"{made.n_unknowns} unknowns, 30 days, four lanes: {notes['mixed']}; "
    words += f"baseline: in FP64, {notes['double']}"
    found.append(
        record("group_curve_mixed_s", middle["mixed"], "s", middle["double"], words)
    )
    total = [last[name].iterations for name in PRECISIONS]
    found.append(record("group_curve_mixed_iterations", total[0], "1", total[1], words))
    return found


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=3)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    model, slip = load(options.mesh, options.refine)
    settings = SolverSettings(times=tuple(TIMES.tolist()), until=float(TIMES[-1]))
    made = prepare(model, settings, options.backend)
    found = curves(made, slip, options.repeats)
    if made.backend.name == "cpu":
        system = made.elastic.system
        load_of_slip = made.elastic.load(slip)
        found += bandwidth.iterations(system.operator, system.cycle, load_of_slip)
    for row in found:
        print(row["metric"], row["value"], row["baseline"], row["note"])
    write_records(options.json, found, options.commit)


if __name__ == "__main__":
    main()
