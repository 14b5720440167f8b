"""How often intervals of slip, potency and Mw hold the truth.

    python benchmarks/interval_coverage.py --json OUT.json

A thrust of 6 by 4 patches of 25 km under 16 GNSS stations (Okada 1985); errors of 2 cm
whose variance is estimated, as is the scale of the prior: what `invert` draws by
default. The truth is made anew in every trial,

- `prior`: drawn from the prior, to the signs, at one scale;
- `smooth`: 2 m on a Gaussian bump of random place, width (0.9 to 2 patches) and rake
  (60 to 90 degrees), close to zero on most of the fault and of one rake: nothing that
  the prior, whose components are independent, would draw;
- `von_karman`: such a bump times 1 + f / 2, but not below zero, where f is a random
  field of variance one with the covariance of Mai & Beroza (2002).

For a prior that has made the truth the intervals must hold their share of trials within
the binomial error; for the others the table says what they hold. `lengths` is the
moment as a sum of the patches' own lengths, for comparison: it counts errors that go
back and forth.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.stats

from afterslip_common.record import document
from afterslip_solver.inversion import (
    InversionProblem,
    InversionSettings,
    Laplacian,
    VonKarman,
    magnitude_of,
    moment_parts,
)
from afterslip_solver.inversion.convex import nearest
from afterslip_solver.inversion.normal import normal_equations
from afterslip_solver.inversion.posterior import (
    draw_posterior,
    limits,
)
from afterslip_solver.model import Float
from afterslip_solver.reference import Rectangles, surface_displacement

ALONG, DOWN, SIZE, DIP = 6, 4, 25e3, 20.0
STATIONS, SIGMA = 16, 0.02
SHARES = (0.68, 0.95)
SIGNS = {"positive": (1, 1), "dip positive": (0, 1), "free": (0, 0)}


def thrust(signs: tuple[int, int]) -> InversionProblem:
    """Pose the inversion, without data."""
    xy = np.random.default_rng(3).uniform([2e4, -1.2e5], [2.2e5, 1.2e5], (STATIONS, 2))
    cos, sin = np.cos(np.deg2rad(DIP)), np.sin(np.deg2rad(DIP))
    grid = np.array([[0, c, i, j] for c in (0, 1) for i in range(6) for j in range(4)])
    columns = []
    for _, c, i, j in grid:
        middle = (i - (ALONG - 1) / 2) * SIZE
        patch = Rectangles(j * SIZE * cos, middle, j * SIZE * sin, 0.0, DIP, SIZE, SIZE)
        columns.append(surface_displacement(xy, patch, np.eye(3)[c]).ravel())
    n, rows = len(grid), 3 * STATIONS
    return InversionProblem(
        G=np.column_stack(columns),
        data=np.zeros(rows),
        sigma=np.full(rows, SIGMA),
        station=np.repeat(np.arange(STATIONS), 3),
        kind=np.full(rows, "gnss"),
        grid=grid,
        area=np.full(n, SIZE**2),
        rigidity=np.full(n, 40e9),
        sign=np.array(signs)[grid[:, 1]],
        spacing=np.array([[SIZE, SIZE]]),
        open_top=np.array([True]),
    )


def bump(problem: InversionProblem, rng: np.random.Generator) -> Float:
    """(n_par,) m, smooth slip of one rake."""
    middle = rng.uniform([0.5, 0.0], [ALONG - 1.5, DOWN - 1.0])
    width = rng.uniform([0.9, 0.9], [2.0, 1.6])
    rake = np.deg2rad(rng.uniform(60.0, 90.0))
    off = (problem.grid[:, 2:] - middle) / width
    along = np.array([np.cos(rake), np.sin(rake)])[problem.grid[:, 1]]
    return np.asarray(2.0 * along * np.exp(-0.5 * (off**2).sum(axis=1)))


def drawn(precision: Float, rng: np.random.Generator) -> Float:
    """(n_par,) draw of a Gaussian without mean."""
    noise = rng.standard_normal(len(precision))
    return np.asarray(np.linalg.solve(np.linalg.cholesky(precision).T, noise))


def truth_of(family: str, problem: InversionProblem, rng: np.random.Generator) -> Float:
    """(n_par,) m, slip that is not all zero."""
    if family == "smooth":
        return bump(problem, rng)
    if family == "von_karman":
        field = drawn(VonKarman().precision(problem.sources), rng)
        one_rake = np.tile(field[: len(field) // 2], 2)
        return bump(problem, rng) * np.maximum(1.0 + 0.5 * one_rake, 0.0)
    L = Laplacian().precision(problem.sources)
    lower, upper = problem.bounds
    slip = np.zeros(len(L))
    while not slip.any():
        slip = nearest(L, drawn(L, rng), lower, upper, np.zeros(len(L)))
    return slip


def study(family: str, signs: str, trials: int) -> list[dict[str, object]]:
    """Share of trials whose truth lies in the intervals, by quantity."""
    rng = np.random.default_rng(0)
    problem = thrust(SIGNS[signs])
    L = Laplacian().precision(problem.sources)
    inside: dict[tuple[str, float], list[Float]] = {}
    for trial in range(trials):
        truth = truth_of(family, problem, rng)
        data = problem.G @ truth + SIGMA * rng.standard_normal(len(problem.G))
        posed = replace(problem, data=data)
        settings = InversionSettings(draws=400, folds=0, seed=trial)
        found = draw_posterior(posed, normal_equations(posed, L), settings, None)
        assert found is not None
        free = _quantities(posed, np.vstack((found.free, truth)))
        free["slip"] = np.vstack((found.held, truth))
        within = _quantities(posed, np.vstack((found.slip, truth)))
        for name, draws in free.items():
            exact = draws[-1]
            for share in SHARES:
                low, high = limits(draws[:-1], within[name][:-1], share)
                hit = np.atleast_1d((low <= exact) & (exact <= high))
                inside.setdefault((name, share), []).append(hit)
    return [
        _record(f"{family}, {signs}: {name}", share, np.array(hits), trials)
        for (name, share), hits in inside.items()
    ]


def _quantities(problem: InversionProblem, both: Float) -> dict[str, Float]:
    """Return what has an interval, of draws of slip."""
    part = moment_parts(problem, both)
    moment, potency = part.sum(axis=1), (part / problem.rigidity).sum(axis=1)
    half = problem.G.shape[1] // 2
    size = problem.rigidity * problem.area * both
    lengths = np.hypot(size[:, :half], size[:, half:]).sum(axis=1)
    magnitude = np.array([magnitude_of(m) for m in moment])
    return {"slip": both, "potency": potency, "Mw": magnitude, "lengths": lengths}


def _record(what: str, share: float, hits: Float, trials: int) -> dict[str, object]:
    """Return a record; patches of a trial are not independent, so trials count."""
    value = float(hits.mean())
    error = float(np.sqrt(share * (1.0 - share) / trials))
    low, high = scipy.stats.binom.interval(0.95, trials, share) / np.array(trials)
    return {
        "metric": f"coverage_{round(100 * share)}",
        "value": value,
        "unit": "share of trials",
        "baseline": share,
        "ratio": value / share,
        "note": f"{what}; {trials} trials, binomial error {error:.3f}, "
        f"95 % of studies within {low:.3f} to {high:.3f}",
    }


def main() -> None:
    """Print and write the records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    records = []
    for family in ("prior", "smooth", "von_karman"):
        for signs in SIGNS:
            for item in study(family, signs, arguments.trials):
                records.append(item)
                print(f"{item['metric']} {item['value']:.3f} {item['note']}")
    if arguments.json:
        whole = document(records, "2 cores")
        arguments.json.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
