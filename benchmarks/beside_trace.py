"""Errors beside the trace of a fault, and their estimates, over edges on the fault.

    python benchmarks/beside_trace.py --json FILE      # minutes
    python benchmarks/beside_trace.py --docs docs/verification.md --json FILE  # table

Largest ones relative to the largest displacement: at points one to two edges of a mesh
that was refined once from the trace, which is less than an edge of the mesh that it is
compared with, and at points farther away; against Okada (1985).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from one_table import run
from space_error import PROBLEMS, reference, spec

from afterslip.physics.viscoelastic.sizing import ENDS
from afterslip_common.record import record
from afterslip_workers.engines.viscoelastic.forward import run_forward

BEGIN, END = "<!-- beside trace -->", "<!-- end of beside trace -->"
# km, as `mesh.accuracy` chooses them first at 1 %
EDGES = {"thrust": 24.0, "ramp": 10.0, "normal-45": 8.0, "strike-slip": 8.0}
TIMES = (1.3, 1.15, 1.0, 0.85, 0.7)


def measure(name: str, edge: float) -> list:
    """Return the records of a problem on one mesh: beside the trace, and beyond."""
    problem = replace(PROBLEMS[name], size=(edge, 720.0, 0.7), refine=1, apart=4.0)
    made = spec(problem, 1)
    made["model"]["mesh"]["size"]["ends"] = ENDS
    found = run_forward(made)
    exact = reference(problem, Path())[0]
    peak = np.linalg.norm(exact, axis=1).max()
    error = np.linalg.norm(found["displacement"].values[0] - exact, axis=1) / peak
    estimate = found["space_error"].values[0, 0] / peak
    away = np.abs(found["x"].values) / 1e3 / (0.5 * edge)
    note = f"{problem.words}; {0.5 * edge:.2g} km; {found.attrs['n_unknowns']:,}"
    out = []
    for part, here in (("beside", (away > 1) & (away < 2)), ("beyond", away >= 2)):
        true, guess = (float(values[here].max()) for values in (error, estimate))
        metric = f"{part}_trace_{name}_{edge:.3g}"
        out.append(record(metric, true, "1", guess, f"{note}; {part}"))
        print(f"{note}; {part}: true {true:.2%} estimate {guess:.2%}", flush=True)
    return out


def table(content: dict) -> list[str]:
    """Return the page's lines."""
    lines = [
        f"On {content['device']}, commit {content['commit']}.",
        "",
        "| Problem | Edges | Unknowns | 1 to 2 edges: true | Estimate | Farther: true "
        "| Estimate |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    items = content["records"]
    for near, far in zip(items[::2], items[1::2], strict=True):
        words, edge, count, _ = near["note"].split("; ")
        figures = " | ".join(
            f"{item[key]:.2%}" for item in (near, far) for key in ("value", "baseline")
        )
        lines.append(f"| {words} | {edge} | {count} | {figures} |")
    return lines


def measured() -> list:
    """Return the records of all problems, on meshes of several edges."""
    pairs = ((name, times * edge) for name, edge in EDGES.items() for times in TIMES)
    return [item for pair in pairs for item in measure(*pair)]


if __name__ == "__main__":
    run(__doc__, (BEGIN, END), table, measured)
