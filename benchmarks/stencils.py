"""Products, solves and curves by stencils of macro elements beside elements one by one.

    python benchmarks/stencils.py --mesh MESH.npz --refine 3 [--json FILE]

MESH.npz is written by `trench.py`. Every product is checked against elements in FP64.
Each kind has its own numbering and set-up; times are medians of runs in turn.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from trench import load

from afterslip_common.record import Record, record, write_records
from afterslip_solver.backend.base import LANES, Tets
from afterslip_solver.backend.cuda.backend import GpuBackend
from afterslip_solver.benchmarks.kernels import milliseconds
from afterslip_solver.benchmarks.timing import DAY, wait
from afterslip_solver.greens import Prepared, evaluate_curve, prepare
from afterslip_solver.krylov import pcg
from afterslip_solver.model import Float, SolverSettings

TIMES = np.linspace(0.0, 30.0 * DAY, 31)
SETTINGS = SolverSettings(times=tuple(TIMES.tolist()), until=float(TIMES[-1]))
KINDS = {"stencils": True, "elements": False}
# rounding of a product of random vectors; by stencils in FP32 those that smooth are in
# FP16
ALLOWED = {np.float32: 1e-6, np.float64: 1e-13}
SMOOTHING = 2e-3


def error(found: Any, exact: Any, smoothing: bool) -> float:
    """Return the relative error of a vector."""
    off = cupy.linalg.norm((found - exact).ravel()) / cupy.linalg.norm(exact.ravel())
    single = found.dtype == np.float32
    if not off < (SMOOTHING if single and smoothing else ALLOWED[found.dtype.type]):
        message = f"a product is wrong: {float(off):.1e}"
        raise ArithmeticError(message)
    return float(off)


def products(made: Prepared, real: Any) -> dict[str, tuple[float, float]]:
    """Return time, ms, and error of what is done with K u, by name."""
    space, gpu = made.space, made.backend
    lam, mu = made.elastic.lam, made.elastic.mu
    unit = float(np.median(mu))
    lam, mu = lam / unit, mu / unit
    free = cupy.asarray(~space.fixed)[:, :, None]
    rng = cupy.random.default_rng(int(time.time()))
    shape = (space.n_node, 3, LANES)
    u, b = (rng.standard_normal(shape, dtype=real) * free for _ in range(2))
    inverse = cupy.random.random((space.n_node, 3, 3), dtype=real)
    inverse += inverse.swapaxes(1, 2).copy()
    parts = (space.elements, space.gradients, space.volume)
    tets = Tets(*(cupy.asarray(part) for part in parts))
    moduli = cupy.asarray(lam), cupy.asarray(mu)
    exact = (gpu.elastic_forces(tets, *moduli, u.astype(float)) * free).astype(real)
    matrix = gpu.stiffness(space, lam, mu, real)
    out = cupy.full_like(u, np.nan)
    step = cupy.einsum("nij,njl->nil", inverse, b - exact)
    cases: dict[str, tuple[Callable[..., None], tuple[Any, ...], Any]] = {
        "apply": (gpu.multiply, (matrix, u, out), exact),
        "residual": (gpu.residual, (matrix, b, u, out), b - exact),
        "chebyshev": (gpu.relax, (matrix, inverse, b, u, 0.1, out), u + 0.1 * step),
    }
    found = {}
    for name, (call, arguments, expected) in cases.items():
        out[...] = np.nan
        call(*arguments)
        off = error(out, expected, name != "apply")
        found[name] = milliseconds(cupy, call, *arguments), off
    return found


def in_turn(
    made: dict[str, Prepared], run: Callable[[Prepared], Any], repeats: int
) -> tuple[dict[str, float], dict[str, Any]]:
    """Median seconds of runs in turn after one of each, and the last results."""
    seconds: dict[str, list[float]] = {kind: [] for kind in made}
    last = {}
    for _ in range(repeats + 1):
        for kind, one in made.items():
            wait(one.backend)
            begin = time.perf_counter()
            last[kind] = run(one)
            wait(one.backend)
            seconds[kind].append(time.perf_counter() - begin)
    return {kind: float(np.median(s[1:])) for kind, s in seconds.items()}, last


def solves(made: dict[str, Prepared], slip: dict[str, Float]) -> list[Record]:
    """Time elastic solves and curves of four sources."""
    size = f"{made['stencils'].n_unknowns} unknowns, four lanes"
    loads = {id(one): one.elastic.load(slip) for one in made.values()}

    def solve(one: Prepared) -> Any:
        system = one.elastic.system
        return pcg(system.operator, system.cycle, loads[id(one)])

    seconds, last = in_turn(made, solve, 5)
    counts = [last[kind].iterations for kind in KINDS]
    note = f"{size}, iterations {counts[0]}; baseline: {counts[1]} element by element"
    found = [record("group_solve_s", *_both(seconds, "s"), note)]
    nodes = made["stencils"].model.surface.nodes
    seconds, last = in_turn(made, lambda one: one.solve(slip, nodes), 3)
    curves = {kind: evaluate_curve(last[kind], TIMES) for kind in KINDS}
    changes = {kind: curve - curve[:, :1] for kind, curve in curves.items()}
    exact = changes["elements"]
    off = np.abs(changes["stencils"] - exact).max() / np.abs(exact).max()
    each = [[e["iterations"] for e in last[kind].history] for kind in KINDS]
    note = f"{size}, iterations {each[0]}, {off:.1e} of the change apart; baseline: "
    note += f"{each[1]} element by element"
    found.append(record("group_curve_30d_s", *_both(seconds, "s"), note))
    return found


def _both(seconds: dict[str, float], unit: str) -> tuple[float, str, float]:
    return seconds["stencils"], unit, seconds["elements"]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=3)
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    model, slip = load(options.mesh, options.refine)
    made, timed = {}, {}
    for kind, stencils in KINDS.items():
        backend = GpuBackend(stencils=stencils)
        made[kind] = prepare(model, SETTINGS, backend)
        timed[kind] = {}
        for real, digits in ((np.float32, "fp32"), (np.float64, "fp64")):
            for name, one in products(made[kind], real).items():
                timed[kind][f"p2_{name}_{digits}_ms"] = one
            cupy.get_default_memory_pool().free_all_blocks()
        print(kind, timed[kind], flush=True)
    size = f"{made['stencils'].n_unknowns} unknowns, four lanes, error"
    found = []
    for name, (value, off) in timed["stencils"].items():
        other, apart = timed["elements"][name]
        note = f"{size} {off:.1e}; baseline: element by element, {apart:.1e}"
        found.append(record(name, value, "ms", other, note))
    found += solves(made, slip)
    for item in found:
        print(item["metric"], item["value"], item["baseline"], item["note"])
    write_records(options.json, found, options.commit)


if __name__ == "__main__":
    main()
