"""What `mesh.accuracy` gives: the true error, unknowns and seconds of forward specs.

    python benchmarks/accuracy.py --json FILE                      # many minutes, 5 GB
    python benchmarks/accuracy.py NAME ... --accuracy 1            # some of them
    python benchmarks/accuracy.py --docs docs/verification.md --json FILE   # table

Errors are the largest at points an element or more from the fault's trace, relative to
the largest displacement, or to the largest change until then: against closed forms, the
propagator in wavenumber, or for a curved interface the same mesh refined once more.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from interfaces import write_files
from space_error import (
    PROBLEMS,
    Problem,
    reference,
    spec,
    write_table,
)

from afterslip_common.record import device_name, document, record
from afterslip_workers.engines.viscoelastic.forward import run_forward

BEGIN, END = "<!-- accuracy -->", "<!-- end of accuracy -->"
NAMES = (
    "strike-slip",
    "thrust",
    "buried",
    "normal",
    "layers",
    "through",
    "curved",
    "subduction",
)
# points keep clear of the trace by the edges of a mesh of 1 %
CLEAR = 3.0
# of what slips on the curved interface, km
CURVED = {"length": 90, "width": 60}
# meshes made by hand of one growth
STEPS = 9


def asked(problem: Problem, accuracy: float) -> dict:
    """Return the spec, whose mesh has an accuracy in place of sizes."""
    made = spec(replace(problem, size=(CLEAR, 0.0, 0.5), refine=0), 0)
    made["model"]["mesh"] = {"accuracy": f"{accuracy:g} %"}
    return made


def truth(problem: Problem, made: dict, last: dict, folder: Path) -> np.ndarray:
    """(n_time, n_point, 3) m."""
    if not problem.finer:
        return reference(replace(problem, size=(CLEAR, 0.0, 0.5), refine=0), folder)
    size = {"fault": last["fault_km"], "far": last["far_km"], "growth": last["growth"]}
    finer = made | {"solver": {"space_error": False}}
    finer["model"] = made["model"] | {"mesh": {"size": size, "refine": 2}}
    return run_forward(finer, base=folder)["displacement"].values


def largest(problem: Problem, ours: np.ndarray, exact: np.ndarray) -> dict[str, float]:
    """Return the error of each part, as shares of the largest motion of a time."""
    worst: dict[str, float] = {}
    for row, years in enumerate(problem.years):
        change = years > 0
        right = exact[row] - exact[0] if change else exact[0]
        off = (ours[row] - ours[0] if change else ours[0]) - right
        peak = float(np.linalg.norm(right, axis=1).max())
        error = float(np.linalg.norm(off, axis=1).max()) / peak
        part = "change" if change else "elastic"
        worst[part] = max(error, worst.get(part, 0.0))
    return worst


def by_hand(
    problem: Problem, made: dict, exact: np.ndarray, asked: float, folder: Path
) -> int:
    """Return the unknowns of the smallest mesh with sizes whose true error is allowed.

    Edges on the fault become shorter by a quarter from mesh to mesh.
    """
    width = min((problem.plane or CURVED)[key] for key in ("length", "width"))
    best, longest = int(1e9), 0.4 * width
    for growth, refine in ((0.35, 0), (0.5, 1), (0.7, 1)):
        edge = longest / 2 ** (1 - refine)
        for _ in range(STEPS):
            size = {"fault": edge, "far": 700.0, "growth": growth}
            mine = made | {"solver": {"space_error": False}}
            mine["model"] = made["model"] | {"mesh": {"size": size, "refine": refine}}
            found = run_forward(mine, base=folder)
            count = int(found.attrs["n_unknowns"])
            if count > best:
                break
            shown = found["displacement"].values
            if max(largest(problem, shown, exact).values()) <= asked:
                best = count
                break
            edge *= 0.75
    return best


def measure(name: str, accuracy: float, folder: Path, compared: bool) -> list:
    """Return the record of a problem, by its worst part."""
    problem, began = PROBLEMS[name], time.perf_counter()
    made = asked(problem, accuracy)
    found = run_forward(made, base=folder)
    seconds = time.perf_counter() - began
    reached = json.loads(found.attrs["accuracy"])
    print(f"{name}: {reached}", flush=True)
    exact = truth(problem, made, reached["tried"][-1], folder)
    worst = largest(problem, found["displacement"].values, exact)
    hand = "not made"
    if compared:
        hand = f"{by_hand(problem, made, exact, 0.01 * accuracy, folder):,}"
    count, out = int(found.attrs["n_unknowns"]), []
    for part, error in worst.items():
        against = "refined once more" if problem.finer else "exact"
        note = f"{problem.words}; {accuracy:g} %; {part}; {against}; "
        note += f"{count:,} unknowns; {seconds:.0f} s; by hand {hand}; "
        note += f"meshes {len(reached['tried'])}; met {reached['met']}"
        metric = f"accuracy_{name}_{accuracy:g}_{part}"
        out.append(record(metric, error, "1", reached[part], note))
        print(f"{note}: true {error:.2e} estimate {reached[part]:.2e}", flush=True)
    return out


def table(content: dict) -> list[str]:
    """Return the page's lines."""
    lines = [
        f"On {content['device']}, commit {content['commit']}.",
        "",
        "| Problem | Asked | Part | Largest error | Estimate | Unknowns | By hand "
        "| Over it | Meshes | s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for item in content["records"]:
        words, wish, part, against, size, took, hand, meshes, _ = item["note"].split(
            "; "
        )
        star = "" if against == "exact" else " (refined once more)"
        figures = f"{item['value']:.2%} | {item['baseline']:.2%}"
        size, meshes = size.removesuffix(" unknowns"), meshes.removeprefix("meshes ")
        hand = hand.removeprefix("by hand ")
        over = ""
        if hand != "not made":
            over = f"{int(size.replace(',', '')) / int(hand.replace(',', '')):.2f}"
        took = took.removesuffix(" s")
        lines.append(
            f"| {words} | {wish} | {part}{star} | {figures} | {size} | {hand} "
            f"| {over} | {meshes} | {took} |"
        )
    return lines


def main() -> None:
    """Measure, or write the page's table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], default=[])
    parser.add_argument("--accuracy", type=float, nargs="*", default=[1.0])
    parser.add_argument("--alone", action="store_true", help="make no mesh by hand")
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
        folder = Path(name)
        write_files(folder)
        for accuracy in options.accuracy:
            for problem in options.names or NAMES:
                found += measure(problem, accuracy, folder, not options.alone)
                if options.json is not None:
                    content = document(found, device_name())
                    options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
