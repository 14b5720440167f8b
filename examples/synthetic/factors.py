"""Which factor keeps intervals from holding the truth: the earth, or rough slip.

    python examples/synthetic/factors.py --out DIR [--draws 60] [--jobs 2] [--json FILE]

The first earthquakes of study.py, with their own rough slip and with a smooth one of
the same moment and rake, are inverted beside the seven other earths, beside these and
the true one, and in the true one alone. Responses that DIR, which may be that of
study.py, lacks are solved first.
"""

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import study

from afterslip import Campaign, Client
from afterslip_common.record import Record, device_name, document, record
from afterslip_solver.inversion import (
    InversionProblem,
    InversionSettings,
    InversionSolution,
    invert,
    limits,
    rigidity_in,
)
from afterslip_solver.model import Float
from afterslip_workers.inverting.resolution import resolution_length

EARTHS = ("seven others", "seven others and the true one", "the true one alone")
ASKED = ("Mw", "potency, km³", "slip of blocks, m")
MEAN, LEAST = "mean about the largest slip", "largest slip above its least"
COLUMNS = (*ASKED, MEAN, LEAST)
BUMP = (20e3, 12e3)  # m, along strike and down dip, of smooth slip


def solve(folder: Path) -> None:
    """Solve what a folder lacks: all earths, and the true one on the other's mesh."""
    others = [
        name for change in study.CHANGES.items() for name in study.names_of(*change)
    ]
    if not all((folder / f"{name}.npz").exists() for name in (*study.NAMES, *others)):
        study.solve(folder)
    if not (folder / "true.npz").exists():
        solve_true(folder)


def solve_true(folder: Path) -> None:
    """Solve the true layers with the mesh and the sources of the inversion."""
    known = [Campaign.from_yaml(study.HERE / f"{n}.yaml") for n in study.NAMES]
    layers, model = known[0].model.layers, known[1].model
    spec = known[1].model_copy(
        update={"name": "true", "model": model.model_copy(update={"layers": layers})}
    )
    with Client.embedded(folder / "service") as client:
        study.keep(client, folder, "true", spec)


def slip_of(truth: study.Greens, seed: int, *, smooth: bool) -> Float:
    """(n_source,) m, the slip of an earthquake of study.py, or one bump like it."""
    rough = study.random_slip(truth, np.random.default_rng((1, seed)))
    if not smooth:
        return rough
    rng = np.random.default_rng((2, seed))
    middle = rng.uniform(35e3, 85e3), rng.uniform(18e3, 38e3)
    size = np.array([study.LENGTH, study.WIDTH]) / truth.count
    place = (truth.patch + 0.5) * size
    bump = np.exp(-0.5 * (((place - middle) / BUMP) ** 2).sum(axis=1))
    moment = truth.rigidity * truth.area * rough
    way = np.array([moment[truth.component == c].sum() for c in (0, 1)])
    slip = bump * (way / np.hypot(*way))[truth.component]
    found = [truth.moment(s[None, :], truth.rigidity)[0] for s in (rough, slip)]
    return np.asarray(slip * found[0] / found[1])


def with_the_true_one(
    folder: Path, model: study.Greens, problem: InversionProblem
) -> InversionProblem:
    """Return the problem with the true earth as one more change."""
    true = study.read(folder, "true")
    change = (true.response - model.response).reshape(len(model.patch), -1).T
    rigidity = true.rigidity - model.rigidity
    return replace(
        problem,
        changes=np.concatenate((problem.changes, change[None])),
        rigidity_changes=np.vstack((problem.rigidity_changes, rigidity)),
    )


def trial(folder: Path, earths: str, smooth: bool, seed: int) -> dict[str, Float]:
    """Say of each quantity whether its 68 and 95 % intervals hold the truth."""
    truth = study.read(folder, "truth")
    model = study.read(folder, "true" if earths == EARTHS[2] else "inversion")
    slip = slip_of(truth, seed, smooth=smooth)
    problem = study.problem_of(truth, model, slip, 10_000 + seed)
    if earths != EARTHS[2]:
        problem = study.with_other_earths(folder, model, problem)
    if earths == EARTHS[1]:
        problem = with_the_true_one(folder, model, problem)
    out = invert(problem, InversionSettings(seed=seed, folds=0))
    found = out.posterior
    if found is None:
        raise RuntimeError("the data leave slip undetermined")
    rigidity = rigidity_in(problem, found.earth)
    exact = study.quantities(truth, slip[None, :], truth.rigidity)
    free = study.quantities(model, found.free, rigidity)
    within = study.quantities(model, found.slip, rigidity)
    free[ASKED[2]] = np.maximum(free[ASKED[2]], 0.0)
    held = {}
    for name in ASKED:
        ends = [limits(free[name], within[name], share) for share in study.SHARES]
        value = exact[name][0]
        held[name] = np.array([np.mean((a <= value) & (value <= b)) for a, b in ends])
    cells = about_peak(model, problem, out)
    true, free_mean, mean = (
        np.hypot(*g.slip(a)[:, :, cells].mean(axis=2).T)
        for g, a in ((truth, slip[None]), (model, found.free), (model, found.slip))
    )
    ends = [limits(free_mean, mean, share) for share in study.SHARES]
    held[MEAN] = np.array([float(a <= true[0] <= b) for a, b in ends])
    most = exact["peak slip, m"][0]
    held[LEAST] = np.array([float(a <= most) for a, _ in ends])
    return held


def about_peak(
    model: study.Greens, problem: InversionProblem, out: InversionSolution
) -> np.ndarray:
    """(n, m) bool, the cells over which a result averages slip about its largest."""
    slip = model.slip(out.slip[None])[0]
    most = np.unravel_index(np.argmax(np.hypot(*slip)), study.CELLS)
    size = np.array([study.LENGTH, study.WIDTH]) / study.CELLS
    cell = (np.stack(np.indices(study.CELLS), axis=-1) + 0.5) * size
    apart = ((cell - cell[most]) ** 2).sum(axis=2)
    # B-splines with free edges: the first is centred on the edge
    place = model.patch * problem.spacing[0]
    own = model.component == np.argmax(np.abs(slip[:, *most]))
    off = ((place - cell[most]) ** 2).sum(axis=1)
    near = int(np.argmin(np.where(own, off, np.inf)))
    row = resolution_length(out.resolution, problem.grid[:, :2], place, [near])
    length = max(float(np.sqrt(model.area[near])), 2.0 * float(row[0]))
    return np.asarray(apart <= 0.25 * length**2)


def row(kind: str, earths: str, found: list[dict[str, Float]]) -> list[Record]:
    """Print a line of the table and return its records."""
    mean = {name: np.mean([one[name] for one in found], axis=0) for name in COLUMNS}
    cells = [f"{100 * a:.0f}, {100 * b:.0f} %" for a, b in mean.values()]
    print(f"| {kind} | {earths} | {' | '.join(cells)} |", flush=True)
    note = f"{kind} slip; {earths}; {len(found)} earthquakes"
    return [
        record(f"synthetic_factors {name.split(',')[0]} in {share:.0%}", part, "1",
               share, note)
        for name, parts in mean.items()
        for share, part in zip(study.SHARES, map(float, parts), strict=True)
    ]  # fmt: skip


def main() -> None:
    """Solve what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("synthetic-out"))
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    solve(options.out)
    # each process has a core: its linear algebra must not ask for all of them
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    records: list[Record] = []
    print(f"| slip | earths | {' | '.join(COLUMNS)} |", flush=True)
    print("|---" * (2 + len(COLUMNS)) + "|", flush=True)
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for smooth in (False, True):
            for earths in EARTHS:
                one = partial(trial, options.out, earths, smooth)
                found = list(pool.map(one, range(options.draws), chunksize=4))
                records += row("smooth" if smooth else "rough", earths, found)
                if options.json:
                    made = json.dumps(document(records, device_name()), indent=1)
                    options.json.write_text(made + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
