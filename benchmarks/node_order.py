"""FP64 products element by element, and FP32 ones by stencils, in orders of the nodes.

    python benchmarks/node_order.py --mesh MESH.npz --refine 3 [--json FILE]

MESH.npz is written by `trench.py`. The orders: nodes of a block of elements side by
side, nodes of a macro element by the ranks of its stencils, and nodes of a macro
element by blocks of elements. Times are medians, products are checked.
"""

import argparse
from pathlib import Path

import cupy
import numpy as np
from trench import load

from afterslip_common.record import record, write_records
from afterslip_solver.backend.base import LANES, Tets
from afterslip_solver.backend.cuda import variants
from afterslip_solver.backend.cuda.backend import GpuBackend
from afterslip_solver.backend.cuda.macro_plan import (
    Macros,
    find_macros,
    macro_numbering,
)
from afterslip_solver.backend.cuda.plan import block_numbering
from afterslip_solver.backend.cuda.stencils import DESCENDANTS
from afterslip_solver.benchmarks.kernels import milliseconds
from afterslip_solver.mesh.tables.bisection import centres
from afterslip_solver.model import Int, Model, TetMesh
from afterslip_solver.operators import Space

REPEATS = 31


def orders(mesh: TetMesh, macros: Macros) -> dict[str, tuple[Int, Int]]:
    """Return the numberings by name."""
    middles = centres(mesh.nodes, mesh.elements)
    block = block_numbering(mesh.elements, middles, variants.SHAPE.block)
    ranked = macro_numbering(mesh.nodes, macros, variants.MACRO_THREADS // 32)
    n = len(mesh.nodes)
    by_block, owner = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    by_block[block[0]] = np.arange(n)
    order = ranked[1][::DESCENDANTS] // DESCENDANTS
    for place in range(len(order))[::-1]:
        owner[macros.nodes[order[place]]] = place
    both = np.lexsort((by_block, owner))
    return {"blocks": block, "ranks": ranked, "ranks_by_block": (both, ranked[1])}


def measure(model: Model, numbering: tuple[Int, Int]) -> dict[str, float]:
    """Return times in ms of one numbering."""
    space = Space.build(model.mesh, model.fixed, numbering)
    lam = model.materials.lam[space.element_order]
    mu = model.materials.mu[space.element_order]
    unit = float(np.median(mu))
    lam, mu = lam / unit, mu / unit
    gpu = GpuBackend()
    free = cupy.asarray(~space.fixed)[:, :, None]
    parts = (space.elements, space.gradients, space.volume)
    tets = Tets(*(cupy.asarray(part) for part in parts))
    u = cupy.random.default_rng(1).standard_normal((space.n_node, 3, LANES)) * free
    exact = gpu.elastic_forces(tets, cupy.asarray(lam), cupy.asarray(mu), u) * free
    del tets
    found = {}
    for real in (np.float64, np.float32):
        matrix = gpu.stiffness(space, lam, mu, real, lambda: ((), (), ()))
        kind = type(matrix.parts[0]).__name__
        x = u.astype(real)
        out = cupy.full_like(x, np.nan)
        gpu.multiply(matrix, x, out)
        off = float(cupy.linalg.norm((out - exact).ravel()))
        off /= float(cupy.linalg.norm(exact.ravel()))
        allowed = 1e-13 if real is np.float64 else 1e-6
        if not off < allowed:
            message = f"a product is wrong: {off:.1e}"
            raise ArithmeticError(message)
        name = f"{np.dtype(real).name} {kind}"
        call = gpu.multiply, matrix, x, out
        found[f"{name} apply"] = milliseconds(cupy, *call, repeats=REPEATS)
        if real is np.float32:
            inverse = cupy.random.random((space.n_node, 3, 3), dtype=np.float32)
            b = exact.astype(real)
            more = gpu.relax, matrix, inverse, b, x, 0.1, out
            found[f"{name} chebyshev"] = milliseconds(cupy, *more, repeats=REPEATS)
        del matrix
    return found


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=3)
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    model, _ = load(options.mesh, options.refine)
    mesh = model.mesh
    macros = find_macros(mesh.elements)
    if macros is None or not macros.found.all():
        parser.error("the mesh is not one of macro elements alone")
    figures: dict[str, dict[str, float]] = {}
    for name, numbering in orders(mesh, macros).items():
        figures[name] = measure(model, numbering)
        print(name, figures[name], flush=True)
        cupy.get_default_memory_pool().free_all_blocks()
    found = []
    for name, times in figures.items():
        for what, value in times.items():
            other = figures["blocks"].get(what)
            note = f"{3 * len(mesh.nodes)} unknowns, nodes by {name}; {what}"
            found.append(record(f"order_{name}_ms", value, "ms", other, note))
    write_records(options.json, found, options.commit)


if __name__ == "__main__":
    main()
