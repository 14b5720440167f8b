"""Which factor keeps intervals from holding the truth: the earth, or rough slip.

    python examples/synthetic/factors.py --out DIR [--draws 60] [--jobs 2] [--solved]

The first earthquakes of study.py, with their own rough slip and with a smooth one of
the same moment and rake, are inverted beside the seven other earths, beside these and
the true one, and in the true one alone. DIR is that of study.py, which has solved all
but the true earth on the inversion's mesh; ``--solved``: it has this one as well.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import study

from afterslip import Campaign, Client
from afterslip_solver.inversion import (
    InversionProblem,
    InversionSettings,
    invert,
    limits,
    rigidity_in,
)
from afterslip_solver.model import Float

EARTHS = ("seven others", "seven others and the true one", "the true one alone")
ASKED = ("Mw", "potency, km³", "slip of blocks, m")
BUMP = (20e3, 12e3)  # m, along strike and down dip, of smooth slip


def solve(folder: Path) -> None:
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
    found = invert(problem, InversionSettings(seed=seed, folds=0)).posterior
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
    return held


def main() -> None:
    """Solve what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("synthetic-out"))
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--solved", action="store_true", help="DIR has the true earth")
    options = parser.parse_args()
    if not options.solved:
        solve(options.out)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    print(f"| slip | earths | {' | '.join(ASKED)} |\n|---|---|---|---|---|")
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for smooth in (False, True):
            for earths in EARTHS:
                one = partial(trial, options.out, earths, smooth)
                found = list(pool.map(one, range(options.draws), chunksize=4))
                mean = [np.mean([f[name] for f in found], axis=0) for name in ASKED]
                cells = [f"{100 * a:.0f}, {100 * b:.0f} %" for a, b in mean]
                kind = "smooth" if smooth else "rough"
                print(f"| {kind} | {earths} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
