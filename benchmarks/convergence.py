"""How much the error of a mesh falls when all of its sizes are halved, and again.

    python benchmarks/convergence.py --json FILE
    python benchmarks/convergence.py --docs docs/verification.md --json FILE   # table

Forward specs with `mesh.size`, against Okada (1985); root mean squares of the error's
length over points of the surface, an element of the first mesh or more from the trace.
"""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from one_table import run
from space_error import PROBLEMS, Problem, reference, rms, spec

from afterslip_common.record import Record, record
from afterslip_workers.engines.viscoelastic.forward import run_forward

BEGIN, END = "<!-- convergence -->", "<!-- end of convergence -->"
NAMES = ("buried", "thrust", "strike-slip", "normal")


def errors(problem: Problem, factors: tuple[float, ...]) -> list[tuple[float, int]]:
    """Return error over peak, and unknowns, of sizes times factors."""
    fault, far, growth = problem.size
    first = replace(problem, size=(fault * factors[0], far, growth))
    made = spec(first, 0) | {"solver": {"space_error": False}}
    exact = reference(first, Path())[0]
    peak = float(np.linalg.norm(exact, axis=1).max())
    out = []
    for factor in factors:
        size = {"fault": fault * factor, "far": far * factor, "growth": growth * factor}
        made["model"]["mesh"] = {"size": size}
        found = run_forward(made)
        off = np.linalg.norm(found["displacement"].values[0] - exact, axis=1)
        out.append((rms(off) / peak, int(found.attrs["n_unknowns"])))
    return out


def measure(name: str) -> list[Record]:
    """Return the record of each halving."""
    problem = PROBLEMS[name]
    found = errors(problem, (2.0, 1.0, 0.5))
    out = []
    for (before, fewer), (after, more) in pairwise(found):
        note = f"{problem.words}; {fewer:,} to {more:,} unknowns; ratio is the fall"
        out.append(record(f"convergence_{name}", before, "1", after, note))
        print(f"{note}: {before:.2e} to {after:.2e}, {before / after:.2f}", flush=True)
    return out


def table(content: dict) -> list[str]:
    """Return the page's lines."""
    lines = [
        f"On {content['device']}, commit {content['commit']}.",
        "",
        "| Problem | Unknowns | Error before | After | Fall |",
        "| --- | --- | --- | --- | --- |",
    ]
    for item in content["records"]:
        words, size, _ = item["note"].split("; ")
        lines.append(
            f"| {words} | {size.removesuffix(' unknowns')} | {item['value']:.2%} "
            f"| {item['baseline']:.2%} | {item['ratio']:.2f} |"
        )
    return lines


def measured() -> list:
    """Return the records of all problems."""
    return [one for name in NAMES for one in measure(name)]


if __name__ == "__main__":
    run(__doc__, (BEGIN, END), table, measured)
