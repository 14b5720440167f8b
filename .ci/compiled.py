"""Write the lists of functions that are compiled ahead, or check them.

    python .ci/compiled.py [--check]

Of the CPU, what `afterslip_solver.compile_ahead` calls; of a GPU, what makes its tables
and the guesses of refined meshes, for which none is needed.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from afterslip_solver.backend.cuda import macro_plan, variants
from afterslip_solver.backend.cuda.macro_blocks import plan_blocks
from afterslip_solver.backend.cuda.plan import block_numbering, make_plan
from afterslip_solver.compile_ahead import compile_ahead, small_refined, solve_nested
from afterslip_solver.jit import ahead
from afterslip_solver.mesh.tables.bisection import centres
from afterslip_solver.operators import Space

WARM = "--warm"
# packages; what a campaign needs last comes first, as another process has begun with
# its mesh and compiles what that takes
ORDER = ("greens", "backend", "operators", "mesh")


def make_tables() -> None:
    """Make what a GPU's products on refined meshes go by."""
    fine = small_refined()
    mesh, fixed = fine.mesh, fine.fixed
    shape = variants.SHAPE
    middles = centres(mesh.nodes, mesh.elements)
    block_numbering(mesh.elements, middles, shape.block)
    macros = macro_plan.find_macros(mesh.elements)
    assert macros is not None
    warps = variants.MACRO_THREADS // 32
    space = Space.build(
        mesh, fixed, macro_plan.macro_numbering(mesh.nodes, macros, warps)
    )
    tables = space.elements, space.nodes, space.fixed
    make_plan(*tables, shape.block, shape.threads // 32, shape.per_task)
    macros = macro_plan.find_macros(space.elements)
    assert macros is not None
    macro_plan.shapes(space, macros)
    shape = variants.MACRO_SHAPE
    also = np.zeros(len(space.nodes), dtype=np.int64)
    which = np.flatnonzero(macros.found)
    sizes = shape.threads // 32, shape.per_task
    plan_blocks(macros, which, space.fixed, also, *sizes)


def in_order(lines: set[str]) -> list[str]:
    """Sort by packages."""
    return sorted(lines, key=lambda line: (ORDER.index(line.split(".")[1]), line))


def main() -> int:
    """Write or check; the status to exit with."""
    if WARM not in sys.argv:
        # what another process has compiled is loaded, without what it calls itself
        command = [sys.executable, __file__, WARM]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    compile_ahead()
    cpu = ahead.called()
    solve_nested("cpu", refine=1)
    make_tables()
    found = {"cpu": in_order(cpu), "gpu": in_order(ahead.called() - cpu)}
    wrong = 0
    for backend, lines in found.items():
        path = ahead.list_of(backend)
        if "--check" in sys.argv:
            differing = sorted(set(lines) ^ set(ahead.listed(backend)))
            print(*differing, sep="\n", end="\n" if differing else "")
            wrong += len(differing)
        elif WARM not in sys.argv:
            path.write_text("\n".join(lines) + "\n", "utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
