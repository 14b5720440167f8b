"""Iterations and cost of multigrid cycles on the Japan Trench, counted in products.

    python benchmarks/cycles.py --mesh MESH.npz --refine 1 [--backend cpu]

MESH.npz is written by `trench.py`. Every row solves for the slip of four unit sources
from zero to 1e-8. The cost of an iteration is that of its products with the FP32
stiffness: those of the cycle, local ones by their share of rows, and 2.7 for the FP64
product and the vectors. Levels below are left out; they cost about two.
"""

import argparse
from pathlib import Path

from trench import load

from afterslip_solver.greens import prepare
from afterslip_solver.krylov import pcg
from afterslip_solver.model import SolverSettings
from afterslip_solver.multigrid import MultigridSettings, build

OUTSIDE = 2.7
ROWS = [
    MultigridSettings(degree=degree, local_degree=local)
    for degree in (1, 2, 3, 4)
    for local in (0, 2, 4)
]
ROWS += [MultigridSettings(coarse_degree=2), MultigridSettings(safety=1.1)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=1)
    parser.add_argument("--backend", default="cpu")
    options = parser.parse_args()
    model, slip = load(options.mesh, options.refine)
    made = prepare(model, SolverSettings(), options.backend)
    operator = made._elastic.operator
    f = made._loads.force(operator, made._loads.offsets(made._lanes(slip)[0]))
    print(f"{made.n_unknowns} unknowns")
    print("degree local coarse safety | iterations cost")
    for settings in ROWS:
        cycle = build(operator, settings)
        local = cycle.levels[0].local
        share = 0.0 if local is None else local.share
        found = pcg(operator, cycle, f)
        each = 2 * settings.degree + 2 * settings.local_degree * share + OUTSIDE
        print(
            f"{settings.degree:6} {settings.local_degree:5} "
            f"{settings.coarse_degree:6} {settings.safety:6} | "
            f"{found.iterations:10} {found.iterations * each:.0f} {found.ending}",
            flush=True,
        )


if __name__ == "__main__":
    main()
