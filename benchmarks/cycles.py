"""Iterations and cost of multigrid cycles on the Japan Trench, counted in products.

    python benchmarks/cycles.py --mesh MESH.npz --refine 1 [--backend cpu] [--below]

MESH.npz is written by `trench.py`. With --below only what lies below the mesh's linear
elements is varied. Every row solves for the slip of four unit sources from zero to
1e-8. The cost of an iteration is that of its products with the FP32 stiffness: those of
the cycle, local ones by their share of rows, and 2.7 for the FP64 product and the
vectors. Levels below are left out; they cost about two. Then come the set-up of the
hierarchy, s, an iteration, ms, and the memory, GB.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from trench import load

from afterslip_solver.benchmarks.timing import wait
from afterslip_solver.greens import prepare
from afterslip_solver.krylov import pcg
from afterslip_solver.model import SolverSettings
from afterslip_solver.multigrid import MultigridSettings, build
from afterslip_solver.operators import Elasticity

OUTSIDE = 2.7
ROWS = [
    MultigridSettings(degree=degree, local_degree=local)
    for degree in (1, 2, 3, 4)
    for local in (0, 2, 4)
]
ROWS += [MultigridSettings(coarse_degree=2), MultigridSettings(safety=1.1)]
# parents' linear elements, and aggregates visited twice or once
BELOW = [
    MultigridSettings(),
    MultigridSettings(nested=False),
    MultigridSettings(nested=False, visits=1),
]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=1)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--below", action="store_true")
    options = parser.parse_args()
    model, slip = load(options.mesh, options.refine)
    begin = time.perf_counter()
    made = prepare(model, SolverSettings(), options.backend)
    wait(made.backend)
    print(f"{made.n_unknowns} unknowns, set up in {time.perf_counter() - begin:.1f} s")
    operator = made.elastic.system.operator
    f = made.elastic.load(slip)
    print("degree local coarse safety nested visits | iterations cost | s ms GB")
    for settings in BELOW if options.below else ROWS:
        _row(operator, f, settings)


def _row(operator: Elasticity, f: Any, settings: MultigridSettings) -> None:
    backend = operator.backend
    begin = time.perf_counter()
    cycle = build(operator, settings)
    # the first solve compiles
    pcg(operator, cycle, f, max_iterations=2)
    wait(backend)
    middle = time.perf_counter()
    found = pcg(operator, cycle, f)
    wait(backend)
    each = 1e3 * (time.perf_counter() - middle) / found.iterations
    local = cycle.levels[0].local
    share = 0.0 if local is None else local.share
    cost = 2 * settings.degree + 2 * settings.local_degree * share + OUTSIDE
    print(
        f"{settings.degree:6} {settings.local_degree:5} {settings.coarse_degree:6} "
        f"{settings.safety:6} {settings.nested:6} {settings.visits:6} | "
        f"{found.iterations:10} {found.iterations * cost:.0f} {found.ending} | "
        f"{middle - begin:.1f} {each:.1f} {cycle.bytes / 1e9:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
