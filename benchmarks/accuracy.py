"""What `mesh.accuracy` gives: the true error, unknowns and seconds of forward specs.

    python benchmarks/accuracy.py --json FILE                      # many minutes, 5 GB
    python benchmarks/accuracy.py NAME ... --accuracy 0.1          # some of them
    python benchmarks/accuracy.py --docs docs/verification.md --json FILE ...  # table

Errors are the largest at points an element or more from the fault's trace, relative to
the largest displacement, or to the largest change until then: against closed forms, the
propagator in wavenumber, or for curved interfaces the same mesh refined further, or
another one with shorter edges (`--finer 0 --shorter 0.7`), both with much shorter ones
at ends of slip.
A machine without gmsh takes meshes that another one made:

    python benchmarks/accuracy.py NAME ... --keep MESHES           # where gmsh is
    python benchmarks/accuracy.py NAME ... --stored MESHES --finer 2 --truth TRUTHS
    python benchmarks/accuracy.py NAME ... --truth TRUTHS          # meshes by hand
"""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scec_specs
from interfaces import write_files
from space_error import (
    PROBLEMS,
    Problem,
    reference,
    spec,
    write_table,
)
from stored_meshes import stored, storing

from afterslip.spec import parse_forward
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip.units import KM
from afterslip_common.errors import MeshError
from afterslip_common.record import record, write_records
from afterslip_workers.engines.viscoelastic.building import build_model
from afterslip_workers.engines.viscoelastic.forward import run_forward

BEGIN, END = "<!-- accuracy -->", "<!-- end of accuracy -->"
NAMES = (
    "strike-slip",
    "thrust",
    "buried",
    "tapered",
    "inside",
    "normal",
    "shallow",
    *scec_specs.CASES,
    "layers",
    "through",
    "curved",
    "subduction",
)
# km, of the strike-slip fault where it does not reach the ground
SHALLOW = 0.2
# points keep clear of the trace by the edges of a mesh of 1 %, km
CLEAR = 3.0
# of what slips on the curved interface, km
CURVED = {"length": 90, "width": 60}
# meshes made by hand: of each growth and refinement so many, with edges far away of so
# many km, or this share of the domain's depth
GROWN, STEPS, FAR, DEEP = ((0.35, 0), (0.5, 1), (0.7, 1)), 9, 700.0, 0.6
# of true answers: edges at ends of slip over those on the fault
TRUE_ENDS = 0.1


def problem_of(name: str, accuracy: float) -> Problem:
    """Return the problem, with points as near to the trace as its mesh will allow."""
    dip = scec_specs.CASES.get(name)
    if name == "shallow":
        known = problem_of("strike-slip", accuracy)
        words = f"strike-slip from {SHALLOW:g} km down"
        return replace(known, words=words, plane=known.plane | {"top": SHALLOW})
    if dip is None:
        clear = CLEAR * min(accuracy, 1.0) ** 0.5
        return replace(PROBLEMS[name], size=(clear, 0.0, 0.5), refine=0)
    words, plane = scec_specs.WORDS[dip], scec_specs.plane(dip)
    return Problem(words, (0.0, 0.0, 0.0), plane=plane, years=scec_specs.YEARS)


def asked(name: str, problem: Problem, accuracy: float, folder: Path) -> dict:
    """Return the spec, whose mesh has an accuracy in place of sizes."""
    if name in scec_specs.CASES:
        dip = scec_specs.CASES[name]
        scec_specs.write_slip(dip, folder)
        made = scec_specs.spec(dip)
    else:
        made = spec(problem, 0)
        if problem.layered and problem.plane:  # as wide as the accuracy needs
            del made["model"]["domain"]
    made["model"]["mesh"] = {"accuracy": f"{accuracy:g} %"}
    return made


def with_sizes(made: dict, size: dict, refine: int) -> dict:
    """Return a spec on a mesh of given sizes."""
    mine = made | {"solver": {"space_error": False}}
    mine["model"] = made["model"] | {"mesh": {"size": size, "refine": refine}}
    return mine


def sizes(tried: dict) -> dict:
    """Return the sizes of a mesh of a search, before it was refined."""
    lengths = {"fault": tried["fault_km"], "far": tried["far_km"]}
    return lengths | {"growth": tried["growth"], "ends": tried["ends"]}


def beyond(points: np.ndarray, problem: Problem, edge: float) -> np.ndarray:
    """(n_point,) which points are farther from the trace than edges on the fault."""
    if problem.plane is None:
        trace = 1.2e-3 * points[:, 1] ** 2
    elif problem.plane["top"] <= SHALLOW:
        trace = np.zeros(len(points))
    else:
        return np.ones(len(points), dtype=bool)
    return np.abs(points[:, 0] - trace) > min(edge, CLEAR)


def largest(
    problem: Problem, ours: np.ndarray, exact: np.ndarray, counted: np.ndarray
) -> dict[str, float]:
    """Return the error of each part, as shares of the largest motion of a time."""
    worst: dict[str, float] = {}
    for row, years in enumerate(problem.years):
        change = years > 0
        right = exact[row] - exact[0] if change else exact[0]
        off = (ours[row] - ours[0] if change else ours[0]) - right
        peak = float(np.linalg.norm(right[counted], axis=1).max())
        error = float(np.linalg.norm(off[counted], axis=1).max()) / peak
        part = "change" if change else "elastic"
        worst[part] = max(error, worst.get(part, 0.0))
    return worst


def by_hand(
    problem: Problem, made: dict, exact: np.ndarray, accuracy: dict, folder: Path
) -> str:
    """Return the unknowns of the smallest mesh with sizes whose true error is allowed.

    Edges on the fault become shorter by a quarter from mesh to mesh, up to as many
    unknowns as the mesh has whose sizes were chosen.

    Parameters
    ----------
    accuracy : what was asked for, and the meshes that were tried.
    """
    points, best = np.array(made["points"]), accuracy["tried"][-1]["n_unknowns"]
    found, allowed = "none smaller", accuracy["asked"]
    if problem.finer:
        # in one domain with what it is compared with: what its sides change counts too
        allowed *= max(1.0 - (accuracy["domain"] / accuracy["asked"]) ** 2, 0.0) ** 0.5
    for growth, refine in GROWN:
        for size, count in ladder(problem, made, (growth, refine), best, folder):
            mine = run_forward(with_sizes(made, size, refine), base=folder)
            counted = beyond(points, problem, size["fault"] / 2**refine)
            worst = largest(problem, mine["displacement"].values, exact, counted)
            print(f"by hand: {size} {refine} {count:,} {worst}", flush=True)
            if max(worst.values()) <= allowed:
                best, found = count, f"{count:,}"
                break
    return found


def ladder(
    problem: Problem, made: dict, kind: tuple[float, int], most: int, folder: Path
) -> Iterator[tuple[dict, int]]:
    """Make meshes by hand of fewer than so many unknowns; yield sizes and unknowns.

    Parameters
    ----------
    kind : growth, and how often meshes are refined.
    """
    growth, refine = kind
    width = min((problem.plane or CURVED)[key] for key in ("length", "width"))
    files = LocalFiles(folder)
    for step in range(STEPS):
        edge = 0.2 * 2**refine * width * 0.75**step
        size = {"fault": edge, "far": FAR, "growth": growth}
        forward = parse_forward(with_sizes(made, size, refine))
        inputs = resolve(forward, files)
        # no element as deep as the domain
        size["far"] = min(FAR, DEEP * inputs.box.depth / KM)
        forward = parse_forward(with_sizes(made, size, refine))
        try:
            _, facts = build_model(forward.model, inputs, files, lambda _: None)
        except MeshError as error:
            print(f"by hand: {size}: {error}", flush=True)
            continue
        if facts["n_unknowns"] >= most:
            break
        yield size, facts["n_unknowns"]


def keep_ladders(problem: Problem, made: dict, most: int, folder: Path) -> None:
    """Make the meshes by hand of up to so many unknowns, and solve nothing."""
    for kind in GROWN:
        for size, count in ladder(problem, made, kind, most, folder):
            print(f"{size} {kind[1]}: {count:,} unknowns", flush=True)


def truth(
    name: str, problem: Problem, made: dict, last: dict, folder: Path,
    options: argparse.Namespace,
) -> np.ndarray:  # fmt: skip
    """(n_time, n_point, 3) m; taken from a file where there is one."""
    file = None
    if options.truth is not None:
        file = options.truth / f"{name}-{made['model']['mesh']['accuracy'][:-2]}.npy"
        if file.exists():
            return np.load(file)
    if name in scec_specs.CASES:
        exact = scec_specs.reference(scec_specs.CASES[name])
    elif problem.finer:
        edges = sizes(last)
        for key in ("fault", "far", "growth"):
            edges[key] *= options.shorter
        edges["ends"] = TRUE_ENDS
        finer = with_sizes(made, edges, 1 + options.finer)
        found = run_forward(finer, base=folder)
        print(f"{name}: truth of {found.attrs['n_unknowns']:,} unknowns", flush=True)
        exact = found["displacement"].values
    else:
        exact = reference(problem, folder)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, exact)
    return exact


def measure(
    name: str, accuracy: float, folder: Path, options: argparse.Namespace
) -> list:
    """Return the record of a problem, by its worst part."""
    problem, began = problem_of(name, accuracy), time.perf_counter()
    made = asked(name, problem, accuracy, folder)
    found = run_forward(made, base=folder)
    seconds = time.perf_counter() - began
    reached = json.loads(found.attrs["accuracy"])
    print(f"{name}: {seconds:.0f} s, {reached}", flush=True)
    if options.keep is not None:
        if not options.alone:
            most = int(found.attrs["n_unknowns"])
            keep_ladders(problem, made, most, folder)
        return []
    last = reached["tried"][-1]
    exact = truth(name, problem, made, last, folder, options)
    counted = beyond(np.array(made["points"]), problem, 0.5 * last["fault_km"])
    worst = largest(problem, found["displacement"].values, exact, counted)
    hand = "not made"
    if not options.alone:
        hand = by_hand(problem, made, exact, reached, folder)
    count, out = int(found.attrs["n_unknowns"]), []
    for part, error in worst.items():
        against = "exact"
        if problem.finer:
            against = f"refined {options.finer} times more"
        if problem.finer and options.shorter < 1.0:
            against = f"edges {options.shorter:g} times as long"
        note = f"{problem.words}; {accuracy:g} %; {part}; {against}; "
        note += f"{count:,} unknowns; {seconds:.0f} s; by hand {hand}; "
        note += f"meshes {len(reached['tried'])}; met {reached['met']}"
        metric = f"accuracy_{name}_{accuracy:g}_{part}"
        out.append(record(metric, error, "1", reached[part], note))
        print(f"{note}: true {error:.2e} estimate {reached[part]:.2e}", flush=True)
    return out


def meshes(options: argparse.Namespace, name: str) -> AbstractContextManager[None]:
    """Return what keeps meshes of a search, or takes stored ones."""
    if options.keep is not None:
        return storing(options.keep / name)
    return nullcontext() if options.stored is None else stored(options.stored / name)


def table(contents: list[dict]) -> list[str]:
    """Return the page's lines."""
    where = dict.fromkeys(
        f"{content['device']} (commit {content['commit']})" for content in contents
    )
    lines = [
        f"On {'; then on '.join(where)}.",
        "",
        "| Problem | Asked | Part | Largest error | Estimate | Unknowns | By hand "
        "| Over it | Meshes | s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for item in (item for content in contents for item in content["records"]):
        words, wish, part, against, size, took, hand, meshes, _ = item["note"].split(
            "; "
        )
        star = "" if against == "exact" else f" ({against})"
        figures = f"{item['value']:.2%} | {item['baseline']:.2%}"
        size, meshes = size.removesuffix(" unknowns"), meshes.removeprefix("meshes ")
        hand = hand.removeprefix("by hand ")
        over = ""
        if hand == "none smaller":
            over = "at most 1"
        elif hand[0].isdigit():
            over = f"{int(size.replace(',', '')) / int(hand.replace(',', '')):.2f}"
        took = took.removesuffix(" s")
        lines.append(
            f"| {words} | {wish} | {part}{star} | {figures} | {size} | {hand} "
            f"| {over} | {meshes} | {took} |"
        )
    return lines


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], default=[])
    parser.add_argument("--accuracy", type=float, nargs="*", default=[1.0])
    parser.add_argument("--alone", action="store_true", help="make no mesh by hand")
    parser.add_argument("--keep", type=Path, help="write its meshes there, no more")
    parser.add_argument("--stored", type=Path, help="take the meshes from there")
    parser.add_argument("--finer", type=int, default=1, help="refinements of the truth")
    parser.add_argument("--shorter", type=float, default=1.0, help="its edges")
    parser.add_argument("--truth", type=Path, help="keep true answers there")
    parser.add_argument("--json", type=Path, nargs="+", default=[])
    parser.add_argument("--commit")
    parser.add_argument("--docs", type=Path)
    return parser.parse_args()


def main() -> None:
    """Measure, or write the page's table."""
    options = parsed()
    if options.docs is not None:
        contents = [json.loads(path.read_text()) for path in options.json]
        write_table(options.docs, (BEGIN, END), table(contents))
        return
    found: list = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        for accuracy in options.accuracy:
            for problem in options.names or NAMES:
                with meshes(options, f"{problem}-{accuracy:g}"):
                    found += measure(problem, accuracy, folder, options)
                for path in options.json:
                    write_records(path, found, options.commit)


if __name__ == "__main__":
    main()
