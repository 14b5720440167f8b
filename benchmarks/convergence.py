"""How much the error of a mesh falls when all of its sizes are halved, and again.

    python benchmarks/convergence.py --json FILE
    python benchmarks/convergence.py --docs docs/verification.md --json FILE   # table

Forward specs with `mesh.size`, against Okada (1985); root mean squares of the error's
length over points of the surface, an element of the first mesh or more from the trace.
"""

import argparse
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from space_error import PROBLEMS, Problem, reference, rms, spec, write_table

from afterslip_common.record import Record, device_name, document, record
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


def main() -> None:
    """Measure, or write the page's table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    if options.docs is not None:
        content = json.loads(options.json.read_text())
        write_table(options.docs, (BEGIN, END), table(content))
        return
    found = [one for name in NAMES for one in measure(name)]
    content = document(found, device_name())
    options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
