"""What a model's set-up costs when it is made, and when it is taken from a disk.

    python benchmarks/setup.py --mesh MESH.npz --refine 1 [--json FILE]
    python benchmarks/setup.py --mesh MESH.npz --refine 3 --parts in_parts --ranks 2

All in one run: the whole set-up on the CPU, and the tables that a GPU is given (its
numbering, the plan of its kernel, the coarse matrices), which the host makes; or, if
asked for, the set-up of a model that several processes share, each with a GPU where
there is one. Kernels are compiled before.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np
from trench import load

from afterslip_common.record import Record, record, write_records
from afterslip_common.terms import YEAR
from afterslip_solver.array_cache import ArrayCache, CacheScope
from afterslip_solver.backend import get
from afterslip_solver.backend.base import Tets
from afterslip_solver.backend.cuda import variants
from afterslip_solver.backend.cuda.plan import block_numbering, make_plan
from afterslip_solver.greens import prepare
from afterslip_solver.mesh.tables.bisection import centres
from afterslip_solver.model import Model, SolverSettings
from afterslip_solver.multigrid import MultigridSettings
from afterslip_solver.multigrid.coarse_levels import host_levels
from afterslip_solver.operators import Elasticity, Space
from afterslip_solver.parallel import (
    DistributedModel,
    ProcessRankGroup,
    RankGroup,
    gpu_rank_group,
)
from afterslip_solver.testing import host_exchange
from afterslip_workers.machine.device import graphics
from afterslip_workers.machine.setup_cache import SetupCache

CURVE = SolverSettings(times=(0.0, 10 * YEAR), until=10 * YEAR)


def whole(model: Model, shelf: ArrayCache | None) -> int:
    """Set everything up on the CPU; returns the unknowns."""
    return prepare(model, CURVE, "cpu", shelf).n_unknowns


def of_a_gpu(model: Model, shelf: ArrayCache | None) -> int:
    """Make what the host makes for a GPU; returns the unknowns."""
    mesh, shape = model.mesh, variants.SHAPE
    cache = CacheScope(shelf).keyed("gpu", mesh.nodes, mesh.elements)

    def number() -> dict:
        middle = centres(mesh.nodes, mesh.elements)
        nodes, elements = block_numbering(mesh.elements, middle, shape.block)
        return {"nodes": nodes, "elements": elements}

    orders = cache.get("numbering", number)
    numbering = orders["nodes"], orders["elements"]
    cache = cache.keyed(model.fixed)
    space = Space.build(mesh, model.fixed, numbering, cache)
    warps = shape.threads // 32

    def plan() -> dict:
        tables = space.elements, space.nodes, space.fixed
        return make_plan(*tables, shape.block, warps, shape.per_task).as_arrays()

    cache.get("plan", plan)
    order = space.element_order
    moduli = model.materials.lam[order], model.materials.mu[order]
    # on the CPU nothing is made of it before it is asked for
    operator = Elasticity(get("cpu"), space, Tets(*[np.empty(0)] * 3), *moduli)
    settings = MultigridSettings()
    unit = float(moduli[1].mean())
    host_levels(operator, settings, unit, np.float16, cache.keyed(*moduli, settings))
    return 3 * space.n_node


def in_parts(group: RankGroup, model: Model, shelf: ArrayCache | None) -> int:
    """Set up a model that processes share; returns the unknowns."""
    return DistributedModel(model, CURVE, group, cache=shelf).n_unknowns


@contextmanager
def ranks(count: int) -> Iterator[RankGroup]:
    """Have the processes of `in_parts`, whose start is not measured."""
    if graphics():
        group = gpu_rank_group(count)
    else:
        group = ProcessRankGroup(count, host_exchange.open_rank, host_exchange.ANSWERS)
    try:
        yield group
    finally:
        group.close()


def seconds(
    call: object, model: Model, shelf: ArrayCache | None
) -> tuple[float, float]:
    """Wall and CPU seconds of a set-up."""
    begin = time.perf_counter(), time.process_time()
    call(model, shelf)
    return time.perf_counter() - begin[0], time.process_time() - begin[1]


def compared(
    name: str, call: object, model: Model, folder: Path, repeats: int
) -> list[Record]:
    """Make, keep and take the same; the shortest time of each."""
    n = call(model, None)
    times = {"made": [], "kept": [], "taken": []}
    for k in range(repeats):
        shelf = SetupCache(folder / f"{name}-{k}")
        times["made"].append(seconds(call, model, None))
        times["kept"].append(seconds(call, model, shelf))
        times["taken"].append(seconds(call, model, shelf))
    size = sum(path.stat().st_size for path in shelf.folder.glob("*.npz"))
    wall, cpu = (
        {what: min(pair[k] for pair in pairs) for what, pairs in times.items()}
        for k in (0, 1)
    )
    what = f"{name}, {n / 1e6:.2f} M unknowns, {size / 1e6:.0f} MB on disk"
    return [
        record(f"{name}_{unit}_{key}", values[key], "s", values["made"], what)
        for unit, values in (("wall", wall), ("cpu", cpu))
        for key in times
    ]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=1)
    parser.add_argument("--parts", nargs="*", default=["whole", "of_a_gpu"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    model, _ = load(options.mesh, options.refine)
    found = []
    shared = ranks(options.ranks) if "in_parts" in options.parts else nullcontext()
    with shared as group, tempfile.TemporaryDirectory() as folder:
        for name in options.parts:
            own = name == "in_parts"
            call = partial(in_parts, group) if own else globals()[name]
            found += compared(name, call, model, Path(folder), options.repeats)
    for row in found:
        print(f"{row['metric']:24s} {row['value']:8.2f} s  {row['ratio']:.2f}")
        print(f"{'':24s} {row['note']}")
    write_records(options.json, found, commit=options.commit)


if __name__ == "__main__":
    main()
