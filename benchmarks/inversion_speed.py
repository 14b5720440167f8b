r"""Time of whole inversions and of draws, beside other solvers on the same matrices.

    python benchmarks/inversion_speed.py --json benchmarks/inversion-speed-2core.json
    python benchmarks/inversion_speed.py --size huge --json FILE

A thrust of rectangles (Okada 1985), both components with positive dip slip, and three
components of motion at each station. `choice` is `invert` with its defaults: smoothness
and variance by evidence, 1000 draws, the check by five folds. `effective draws` is the
time per 1000 independent draws of the slowest unknown. Peers solve the convex problem
once at the smoothness that was chosen (CVXPY with Clarabel, bounded least squares of
SciPy's `lsq_linear`, and `Lasso` of scikit-learn with `positive` and next to no
weight, for slip that is all positive), to tolerances at which their own error is far
below a millionth of the largest slip: Clarabel's usual ones, 1e-8, leave it at that,
with an objective above ours. `difference` is the largest one to our slip, in parts of
its largest; `excess` is a peer's objective less ours, in parts of it. emcee draws slip
alone, its scales given, for
as long as ours took, with twice as many walkers as unknowns. Peers that are not
installed are left out, and all of them with `--size huge` (5,000 unknowns and 100,002
data on 16 cores at most, 1800 s and 16 GiB) and `--size fifth` (1,000 and 20,001),
which time the whole inversion alone and print how far it is, with the most memory so
far: with fewer than 1000 `--draws`, a record says how long each 100 took and what 1000
would take in all.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import mmap
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize

from afterslip_common.record import Record, document, processor_name, record
from afterslip_solver.inversion import (
    InversionProblem,
    InversionSettings,
    Laplacian,
    invert,
)
from afterslip_solver.inversion.convex import minimise
from afterslip_solver.inversion.hierarchy import effective_size
from afterslip_solver.inversion.normal import normal_equations
from afterslip_solver.inversion.posterior import draw_posterior
from afterslip_solver.model import Float
from afterslip_solver.reference import Rectangles, surface_displacement

SIZE, DIP, SIGMA = 15e3, 20.0, 0.01
AGREE = 1e-6  # of the largest slip
# patches along strike and down dip, stations; all but the first time one inversion
SIZES = {"usual": (31, 6, 3334), "fifth": (50, 10, 6667), "huge": (100, 25, 33334)}
HUGE_CORES = 16


def problem_of(along: int, down: int, stations: int) -> InversionProblem:
    """Pose a problem of 2 along down unknowns and three data for each station."""
    rng = np.random.default_rng(0)
    reach = 0.5 * along * SIZE
    xy = rng.uniform([0.0, -1.2 * reach], [4.0 * down * SIZE, 1.2 * reach],
                     (stations, 2))  # fmt: skip
    cos, sin = np.cos(np.deg2rad(DIP)), np.sin(np.deg2rad(DIP))
    places = [(i, j) for i in range(along) for j in range(down)]
    grid = np.array([[0, c, i, j] for c in (0, 1) for i, j in places])
    # shared with the processes that fill it
    G = np.frombuffer(mmap.mmap(-1, 24 * stations * len(grid)))
    G = G.reshape(3 * stations, len(grid))

    def fill(k: int) -> None:
        _, c, i, j = grid[k]
        top = 5e3 + j * SIZE * sin
        middle = (i - (along - 1) / 2) * SIZE
        patch = Rectangles(j * SIZE * cos, middle, top, 0.0, DIP, SIZE, SIZE)
        G[:, k] = surface_displacement(xy, patch, np.eye(3)[c]).ravel()

    in_processes(fill, len(grid))
    off = (
        (grid[:, 2] - 0.5 * along) / (0.2 * along),
        (grid[:, 3] - 0.4 * down) / (0.3 * down),
    )
    truth = np.exp(-(off[0] ** 2) - off[1] ** 2) * np.where(grid[:, 1] == 1, 5.0, 1.0)
    n, rows = len(grid), len(G)
    return InversionProblem(
        G=G,
        data=G @ truth + SIGMA * rng.standard_normal(rows),
        sigma=np.full(rows, SIGMA),
        station=np.repeat(np.arange(stations), 3),
        kind=np.full(rows, "gnss"),
        grid=grid,
        area=np.full(n, SIZE**2),
        rigidity=np.full(n, 40e9),
        sign=grid[:, 1],
        spacing=np.array([[SIZE, SIZE]]),
        open_top=np.array([False]),
        position=xy,
    )


def in_processes(work: Callable[[int], None], count: int) -> None:
    """Do each of some numbered pieces of work, on all cores."""
    cores = os.cpu_count() or 1

    def share(first: int) -> None:
        for k in range(first, count, cores):
            work(k)

    fork = multiprocessing.get_context("fork")
    started = [fork.Process(target=share, args=(first,)) for first in range(cores)]
    for process in started:
        process.start()
    for process in started:
        process.join()


def pin(cores: int) -> None:
    """Leave some cores alone to all threads of this process."""
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), chosen)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what some work gives, its wall time and its processor time, s."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def peers(problem: InversionProblem, smoothness: float) -> dict[str, Callable[[], Any]]:
    """Return the convex problem as each other solver states it."""
    root = np.linalg.cholesky(smoothness * Laplacian().precision(problem.sources)).T
    rows = np.vstack((problem.G / problem.sigma[:, None], root))
    data = np.concatenate((problem.data / problem.sigma, np.zeros(len(root))))
    lower, upper = problem.bounds
    found: dict[str, Callable[[], Any]] = {
        "SciPy lsq_linear": lambda: (
            scipy.optimize.lsq_linear(rows, data, (lower, upper), tol=1e-10).x
        )
    }
    if importlib.util.find_spec("cvxpy"):
        found["CVXPY"] = lambda: _cvxpy(rows, data, lower)
    if importlib.util.find_spec("sklearn"):
        found["scikit-learn Lasso"] = lambda: _lasso(rows, data)
    return found


def _cvxpy(rows: Float, data: Float, lower: Float) -> Float:
    import cvxpy

    a = cvxpy.Variable(rows.shape[1])
    bounded = np.flatnonzero(np.isfinite(lower))
    goal = cvxpy.Minimize(cvxpy.sum_squares(rows @ a - data))
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12)
    cvxpy.Problem(goal, [a[bounded] >= 0]).solve("CLARABEL", **tight)
    return np.asarray(a.value)


def _lasso(rows: Float, data: Float) -> Float:
    from sklearn.linear_model import Lasso

    peer = Lasso(
        alpha=1e-9, fit_intercept=False, positive=True, tol=1e-8, max_iter=20_000
    )
    return np.asarray(peer.fit(rows, data).coef_)


def excess(
    problem: InversionProblem, smoothness: float, value: Float, ours: Float
) -> float:
    """Objective of some slip less that of ours, in parts of that."""
    L = smoothness * Laplacian().precision(problem.sources)
    rows = problem.G / problem.sigma[:, None]
    rest = problem.data / problem.sigma - rows @ ours
    least = rest @ rest + ours @ L @ ours
    # by the step between them: the objectives agree to more digits than they have
    step = value - ours
    rise = rows @ step
    first = -2.0 * (rise @ rest) + 2.0 * (step @ L @ ours)
    return float((first + rise @ rise + step @ L @ step) / least)


def emcee_rate(problem: InversionProblem, smoothness: float, seconds: float) -> float:
    """Effective draws per second of an ensemble, or nan where emcee is missing."""
    if not importlib.util.find_spec("emcee"):
        return float("nan")
    import emcee

    normal = normal_equations(problem, Laplacian().precision(problem.sources))
    Q, b = normal.with_roughness(smoothness, normal.roughness), normal.right
    lower, _ = problem.bounds
    start = minimise(Q, b, np.zeros(len(b)), *problem.bounds).value

    def log_density(value: Float) -> float:
        if (value < lower).any():
            return -np.inf
        return float(value @ b - 0.5 * value @ Q @ value)

    rng = np.random.default_rng(0)
    first = np.abs(start + 0.05 * rng.standard_normal((2 * len(b), len(b))))
    sampler = emcee.EnsembleSampler(len(first), len(b), log_density)
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds:
        first = sampler.run_mcmc(first, 10)
    took = time.perf_counter() - begun
    chain = sampler.get_chain()
    # the mean over walkers has the autocorrelation of each; all of them count
    least = min(effective_size(chain[:, :, k].mean(axis=1)) for k in range(len(b)))
    return least * chain.shape[1] / took


def gib() -> float:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def large(problem: InversionProblem, draws: int) -> list[Record]:
    """Time one whole inversion, its draws hundred by hundred; return records."""
    begun = time.perf_counter()
    marks: list[float] = []

    def report(count: int, misfit: float) -> None:
        # draws report each hundred, then folds trial by trial
        if count == 100 * len(marks) and count < draws:
            marks.append(time.perf_counter() - begun)
        passed = time.perf_counter() - begun
        print(f"{passed:8.1f} s, {gib():5.2f} GiB: {count}, {misfit:.3g}", flush=True)

    out, wall, cpu = timed(
        lambda: invert(problem, InversionSettings(draws=draws), report)
    )
    what = f"{problem.G.shape[1]} unknowns, {len(problem.data)} data, {draws} draws"
    hundred = (marks[-1] - marks[0]) / max(len(marks) - 1, 1)
    whole = wall + (1000 - draws) / 100 * hundred
    effective = out.posterior.effective if out.posterior else 0.0
    pace = f"{hundred:.1f} s for each 100, first one after {marks[0]:.0f} s"
    records = [
        record("inversion_large_s", wall, "s", 1800.0,
                f"{what}, {effective:.0f} effective; {pace}; processor {cpu:.0f} s"),
        record("inversion_large_gib", gib(), "GiB", 16.0, f"{what}; most memory"),
    ]  # fmt: skip
    if draws < 1000:
        note = f"{what}; 1000 draws extrapolated"
        records.append(record("inversion_large_1000_draws_s", whole, "s", 1800.0, note))
    return records


def study(problem: InversionProblem, patience: float) -> list[Record]:
    """Time everything and return records."""
    n, rows = problem.G.shape[1], len(problem.data)
    what = f"{n} unknowns, {rows} data"
    out, wall, cpu = timed(lambda: invert(problem, InversionSettings()))
    records = [
        record("inversion_choice_s", wall, "s", 60.0, f"{what}; processor {cpu:.0f} s")
    ]
    normal = normal_equations(problem, Laplacian().precision(problem.sources))
    settings = InversionSettings(draws=1000)
    drawn, wall, cpu = timed(lambda: draw_posterior(problem, normal, settings, None))
    per = 1000.0 * wall / drawn.effective
    records.append(
        record("inversion_1000_draws_s", per, "s", 120.0,
                f"{what}; {drawn.effective:.0f} effective of 1000 in {wall:.1f} s, "
            f"processor {cpu:.1f} s")
    )  # fmt: skip
    weighed = problem.reweighted(out.variance)
    rate = emcee_rate(weighed, out.smoothness, min(wall, patience))
    note = (
        f"{what}; emcee, scales given, effective draws per second at most: short chains"
    )
    ours = drawn.effective / wall
    if np.isfinite(rate):
        records.append(record("inversion_emcee_rate", rate, "1/s", ours, note))
    held = InversionSettings(smoothness=out.smoothness, folds=0, draws=0)
    own, one, _ = timed(lambda: invert(weighed, held))
    positive = replace(weighed, sign=np.ones(n, dtype=int))
    for name, solve in peers(weighed, out.smoothness).items():
        value, seconds, _ = timed(solve)
        note = f"{what}; one solve by {name}"
        ours = invert(positive, held) if "Lasso" in name else own
        off = np.abs(ours.slip - value).max() / np.abs(ours.slip).max()
        more = excess(weighed, out.smoothness, value, ours.slip)
        own_gap = f"gap of ours {ours.optimality_gap:.1e}"
        records += [
            record("inversion_peer_s", seconds, "s", one,
                   f"{note}, ours {one:.2f} s with all it reports"),
            record("inversion_peer_difference", off, "1", AGREE,
                   f"{note}; excess {more:.1e}, {own_gap}"),
        ]  # fmt: skip
    return records


def main() -> None:
    """Print and write the records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="usual")
    parser.add_argument("--patience", type=float, default=60.0, help="s, for emcee")
    parser.add_argument("--cores", type=int, help="to run on once the problem is posed")
    parser.add_argument("--draws", type=int, default=1000, help="of one inversion")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    size = arguments.size
    begun = time.perf_counter()
    posed = problem_of(*SIZES[size])
    print(f"posed in {time.perf_counter() - begun:.1f} s, {gib():.2f} GiB", flush=True)
    cores = arguments.cores or (HUGE_CORES if size == "huge" else None)
    if cores:
        pin(cores)
    if size != "usual":
        records = large(posed, arguments.draws)
    else:
        records = study(posed, arguments.patience)
    for item in records:
        print(
            f"{item['metric']:24s} {item['value']:10.4g} {item['unit']} {item['note']}"
        )
    if arguments.json:
        where = f"{processor_name()}, load {os.getloadavg()[0]:.1f}"
        whole = document(records, where)
        arguments.json.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
