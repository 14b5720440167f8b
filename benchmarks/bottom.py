"""What a bottom that is held or on rollers changes, through specs of forward runs.

    python benchmarks/bottom.py --json FILE                            # some minutes
    python benchmarks/bottom.py --docs docs/verification.md --json FILE    # table

Problems with flow in the domain that is chosen where a spec has none, on one fine mesh,
against the propagator in wavenumber; sides are on rollers. Beside the errors, which are
the mesh's too, is what sides and bottom are estimated to change.
"""

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from accuracy import CLEAR, asked, beyond, largest, problem_of, truth
from box import estimated
from numpy import array
from space_error import write_table

from afterslip_common.record import record, write_records
from afterslip_workers.engines.viscoelastic.forward import run_forward

BEGIN, END = "<!-- bottom -->", "<!-- end of bottom -->"
# edges on the fault before it is refined, km
CASES = {"scec-strike-slip": 3.6, "scec-reverse": 3.6, "layers": 6.0}
GROWTH = 0.25
BOTTOMS = ("fixed", "roller")


def measure(name: str, edge: float, folder: Path, options: argparse.Namespace) -> list:
    """Return the records of a problem."""
    problem, out = problem_of(name, 1.0), []
    made = asked(name, problem, 1.0, folder)
    exact = truth(name, problem, made, {}, folder, options)
    counted = beyond(array(made["points"]), problem, CLEAR)
    size = {"fault": edge, "far": 300.0, "growth": GROWTH}
    made["model"]["mesh"] = {"size": size, "refine": 1}
    for bottom in BOTTOMS:
        made["model"]["boundary"] = {"sides": "roller", "bottom": bottom}
        found = run_forward(made, base=folder)
        errors = largest(problem, found["displacement"].values, exact, counted)
        walls = estimated(made, folder)
        for part, error in errors.items():
            guess = getattr(walls, part)
            note = f"{problem.words}; {part}; {bottom}; {found.attrs['n_unknowns']:,}"
            metric = f"bottom_{name}_{part}_{bottom}"
            out.append(record(metric, error, "1", guess, note))
            print(f"{note}: {error:.2e}, walls {guess:.2e}", flush=True)
    return out


def table(content: dict) -> list[str]:
    """Return the page's lines."""
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for item in content["records"]:
        words, part, bottom, count = item["note"].split("; ")
        cell = f"{item['value']:.2%} ({item['baseline']:.2%})"
        found.setdefault((words, part, count), {})[bottom] = cell
    lines = [
        f"On {content['device']}, commit {content['commit']}.",
        "",
        "| Problem | Part | Unknowns | Bottom held | Bottom on rollers |",
        "| --- | --- | --- | --- | --- |",
    ]
    return lines + [
        f"| {words} | {part} | {count} | {' | '.join(row[b] for b in BOTTOMS)} |"
        for (words, part, count), row in found.items()
    ]


def main() -> None:
    """Measure, or write the page's table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", type=Path, help="keep true answers there")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--commit")
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    if options.docs is not None:
        content = json.loads(options.json.read_text())
        write_table(options.docs, (BEGIN, END), table(content))
        return
    found: list = []
    with TemporaryDirectory() as folder:
        for name, edge in CASES.items():
            found += measure(name, edge, Path(folder), options)
    if options.json is not None:
        write_records(options.json, found, options.commit)


if __name__ == "__main__":
    main()
