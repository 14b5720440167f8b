"""Write the lists of functions that are compiled ahead, or check them.

    python .ci/compiled.py [--check]

Of the CPU, what `solve_samples` of `compile_ahead` calls, and of a GPU, with the
modules that are compiled for it. Where there is no GPU only what makes its tables and
the guesses of refined meshes is found: that must be in the list, which then is not
written. With PYTHONPATH=tests/solver/device_on_cpu, and DEVICE_ON_CPU a folder for its
libraries, a CPU stands for the GPU (three minutes).
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from afterslip_solver.backend import available
from afterslip_solver.backend.cuda import macro_plan, variants
from afterslip_solver.backend.cuda.colouring import Colouring
from afterslip_solver.backend.cuda.macro_blocks import plan_blocks
from afterslip_solver.backend.cuda.plan import block_numbering, make_plan
from afterslip_solver.compile_ahead import small_refined, solve_nested, solve_samples
from afterslip_solver.jit import ahead
from afterslip_solver.mesh.tables.bisection import centres
from afterslip_solver.operators import Space

PACKAGE = "afterslip_solver"
WARM = "--warm"
# packages, as campaigns need them: while Gmsh works what goes on with its mesh is
# compiled; one function of the backend takes longest
ORDER = ("mesh", "materials", "backend", "operators", "greens")


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
    colouring = Colouring.of(macros, space.fixed)
    which = np.flatnonzero(macros.found)
    plan_blocks(macros, which, colouring, shape)


def in_order(lines: set[str]) -> list[str]:
    """Sort by packages."""
    return sorted(lines, key=lambda line: (ORDER.index(line.split(".")[1]), line))


def called() -> set[str]:
    """Return lines of what this process has compiled, or loaded from the cache."""
    found = set[str]()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == PACKAGE:
            for function in vars(module).values():
                if isinstance(function, Dispatcher):
                    found |= lines_of(function)
    return found


def lines_of(function: Any) -> set[str]:
    """Return those lines of a function that name its types exactly.

    The list has no words for some types, such as arrays that may not be written to.
    """
    place = f"{function.py_func.__module__}.{function.py_func.__qualname__}"
    lines = {f"{place} {', '.join(map(str, sig))}" for sig in function.signatures}
    return {line for line in lines if is_exact(line, function)}


def is_exact(line: str, function: Any) -> bool:
    """Tell whether a line means types that a function was called with."""
    try:
        return ahead.resolve(line)[1] in function.signatures
    except (AttributeError, TypeError):
        return False


def record() -> dict[Path, list[str]]:
    """Call what campaigns call; the lines of each list."""
    solve_samples()
    cpu = called()
    solve_nested("cpu", refine=1)
    make_tables()
    found = {ahead.list_of("cpu"): in_order(cpu)}
    if not available()["gpu"]:
        solve_samples("gpu")
        loader = import_module("afterslip_solver.backend.cuda.loader")
        found[loader.LIST] = sorted(loader.asked)
    beside = {line for line in called() - cpu if ahead.CPU_ONLY not in line}
    found[ahead.list_of("gpu")] = in_order(beside)
    return found


def main() -> int:
    """Write or check; the status to exit with."""
    if WARM in sys.argv:
        record()
        return 0
    # what another process has compiled is loaded, without what it calls itself
    subprocess.run([sys.executable, __file__, WARM], check=True)
    wrong, whole = list[str](), not available()["gpu"]
    for path, lines in record().items():
        known = set(path.read_text("utf-8").splitlines()) if path.exists() else set()
        if not whole and path == ahead.list_of("gpu"):
            wrong += sorted(set(lines) - known)
        elif "--check" in sys.argv:
            wrong += sorted(set(lines) ^ known)
        else:
            path.write_text("\n".join(lines) + "\n", "utf-8")
    for line in wrong:
        print(line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
