"""What the sides and the bottom of the domain change, through specs of forward runs.

    python benchmarks/box.py --json FILE                           # a minute
    python benchmarks/box.py --docs docs/verification.md --json FILE   # table

Sides and bottom lie a number of fault lengths from the fault, the mesh around it stays.
Errors are against closed forms and the propagator in wavenumber, so that the largest
boxes show what the mesh leaves. Beside them is what is estimated from opposite walls.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from space_error import PROBLEMS, Problem, reference, spec, write_table

from afterslip.spec import parse_forward
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_common.record import device_name, document, record
from afterslip_workers.engines.viscoelastic.building import build_model
from afterslip_workers.engines.viscoelastic.error_shares import Shares
from afterslip_workers.engines.viscoelastic.forward import run_forward, walls_of_slip

BEGIN, END = "<!-- box -->", "<!-- end of box -->"
LENGTHS = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
CASES = {
    "buried": (12.0, "buried thrust"),
    "strike-slip": (5.0, "strike-slip to the surface"),
    "layers": (8.0, "lid over Maxwell rock"),
}


def boxed(problem: Problem, lengths: float) -> dict:
    """Return the spec in a box that leaves some fault lengths on every side."""
    plane = problem.plane or {}
    dip = np.radians(plane["dip"])
    wide = plane["width"] * np.cos(dip)
    reach = lengths * plane["length"]
    depth = plane["top"] + plane["width"] * np.sin(dip) + reach
    half = 0.5 * plane["length"] + reach
    made = spec(problem, 1)
    model = made["model"]
    model["domain"] = {"x": [-reach, wide + reach], "y": [-half, half], "depth": depth}
    model["layers"][-1]["bottom"] = depth
    model["mesh"]["size"]["far"] = max(0.5 * reach, 2.0 * problem.size[0])
    inside = [
        p for p in made["points"] if -reach < p[0] < wide + reach and abs(p[1]) < half
    ]
    return made | {"points": inside}


def estimated(made: dict, folder: Path) -> Shares:
    """Return what the walls are estimated to change."""
    run = parse_forward(made, folder)
    files = LocalFiles(run.base)
    inputs = resolve(run, files)
    model, _ = build_model(run.model, inputs, files, lambda _: None)
    walls = walls_of_slip(run, inputs)(model)
    assert walls is not None
    return walls.largest


def measure(name: str, folder: Path) -> list:
    """Return the records of a problem, one of each box and part."""
    size, words = CASES[name]
    problem = replace(PROBLEMS[name], size=(size, 0.0, 0.5), refine=1)
    exact, out = reference(problem, folder), []
    places = spec(problem, 1)["points"]
    for lengths in LENGTHS:
        made, began = boxed(problem, lengths), time.perf_counter()
        found = run_forward(made, base=folder)
        walls = estimated(made, folder)
        seconds = time.perf_counter() - began
        rows = [places.index(p) for p in made["points"]]
        right, ours = exact[:, rows], found["displacement"].values
        for row in (0, len(problem.years) - 1)[: len(problem.years)]:
            change = row > 0
            wanted = right[row] - right[0] if change else right[0]
            got = ours[row] - ours[0] if change else ours[0]
            whole = exact[row] - exact[0] if change else exact[0]
            off = np.linalg.norm(got - wanted, axis=1)
            error = float(off.max() / np.linalg.norm(whole, axis=1).max())
            guess = walls.change if change else walls.elastic
            part = f"change, {problem.years[row]:g} yr" if change else "elastic"
            cost = found.attrs["n_unknowns"]
            note = f"{words}; {part}; {lengths:g}; {cost:,}; {seconds:.0f} s"
            out.append(record(f"box_{name}_{row}_{lengths:g}", error, "1", guess, note))
            print(f"{note}: {error:.2e}, estimated {guess:.2e}", flush=True)
    return out


def table(content: dict) -> list[str]:
    """Return the page's lines."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for item in content["records"]:
        words, part, lengths, _, _ = item["note"].split("; ")
        cell = f"{item['value']:.2%} ({item['baseline']:.2%})"
        found.setdefault((words, part), {})[lengths] = cell
    heads = [f"{lengths:g}" for lengths in LENGTHS]
    lines = [
        f"On {content['device']}, commit {content['commit']}.",
        "",
        f"| Problem | Part | {' | '.join(heads)} |",
        f"| --- | --- |{' --- |' * len(heads)}",
    ]
    return lines + [
        f"| {words} | {part} | {' | '.join(row.get(h, '') for h in heads)} |"
        for (words, part), row in found.items()
    ]


def main() -> None:
    """Measure, or write the page's table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    if options.docs is not None:
        write_table(
            options.docs, (BEGIN, END), table(json.loads(options.json.read_text()))
        )
        return
    found: list = []
    with TemporaryDirectory() as name:
        for problem in CASES:
            found += measure(problem, Path(name))
    if options.json is not None:
        content = document(found, device_name())
        options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
