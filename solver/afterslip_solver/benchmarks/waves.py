"""Steps of waves on voxels beside a copy of the bytes that they must move.

A step is all of it: sides, loads of the source and the march. The baseline is the rate
at which a copy in the same run would move u twice, v twice, coefficients and moduli,
each once: 212 bytes a node of four lanes in FP32, 416 in FP64.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from afterslip_common.record import Record, record
from afterslip_common.source_time import smooth_step
from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cpu.digits import MOST
from afterslip_solver.backend.select import available
from afterslip_solver.backend.waves import Voxels, WaveSteps, wave_steps
from afterslip_solver.benchmarks.bandwidth import copy_rate
from afterslip_solver.model import Int
from afterslip_solver.waves.element import (
    SCHEMES,
    Scheme,
    corner_offsets,
    element_matrix,
)
from afterslip_solver.waves.grid import Medium, VoxelGrid
from afterslip_solver.waves.loads import moment_loads
from afterslip_solver.waves.march import Prepared, Recording
from afterslip_solver.waves.record import receivers
from afterslip_solver.waves.sides import Sides

# nodes along each axis
NODES = {"cpu": 97, "gpu": 256}
_REPEATS = 7
_STEPS = {"cpu": 2, "gpu": 20}
_ALLOWED = {np.float32: 2e-6, np.float64: 1e-14}
_LAYERS = ((6000.0, 3464.0, 2700.0), (7800.0, 4500.0, 3300.0))


def records(backend: str = "auto", nodes: int | None = None) -> list[Record]:
    """Time whole steps in FP32 and FP64, and by INT8 tensor cores on a GPU.

    Parameters
    ----------
    backend : "cpu", "gpu" or "auto". nodes : along each axis.

    Raises
    ------
    ArithmeticError
        A product is wrong.
    BackendError
        If no CUDA device can be used.
    """
    if backend == "auto":
        backend = "cpu" if available()["gpu"] else "gpu"
    n = NODES[backend] if nodes is None else nodes
    found = []
    for real, name in ((np.float32, "fp32"), (np.float64, "fp64")):
        check(partial(wave_steps, backend, real=real), real)
        found.append(_step(backend, name, n))
    if backend == "gpu":
        found.append(_integers(n))
    return found


def check(
    make: Callable[[Voxels], WaveSteps], real: Any, name: str = "selective"
) -> float:
    """Compare a product with dense element matrices on random input.

    Parameters
    ----------
    name : of the scheme.

    Returns
    -------
    The relative error, of 2-norms. Raises ArithmeticError where it is wrong.
    """
    scheme = SCHEMES[name]
    # neither a whole number of tiles nor of chunks
    shape, random = (19, 11, 37), np.random.default_rng(7)
    size = tuple(n - 1 for n in shape[::-1])
    mu = random.uniform(1.0, 2.0, size).astype(np.float32)
    lam = random.uniform(0.5, 3.0, size).astype(np.float32)
    voxels = Voxels(shape, 2.0, lam, mu, scheme.beta_lam, scheme.beta_mu)
    steps = make(voxels).slabs[0].steps
    u = random.standard_normal((3, int(np.prod(shape)), LANES)).astype(real)
    force = steps.force(steps.xp.asarray(u))
    got = np.asarray(force.get() if hasattr(force, "get") else force, dtype=np.float64)
    exact = dense_force(shape, lam, mu, scheme, u.astype(np.float64))
    error = float(np.linalg.norm(got - exact) / np.linalg.norm(exact))
    if not error <= _ALLOWED[real]:
        text = f"a product in {np.dtype(real)} is wrong by {error:.1e}"
        raise ArithmeticError(text)
    return error


def dense_force(shape: Any, lam: Any, mu: Any, scheme: Scheme, u: Any) -> Any:
    """Return K u by dense element matrices, on the host in FP64."""
    nx, ny, _ = shape
    found = np.zeros_like(u)
    k, j, i = (axis.ravel() for axis in np.indices(lam.shape))
    nodes: Int = ((k * ny + j) * nx + i)[:, None] + corner_offsets(nx, ny)
    local = u[:, nodes].transpose(1, 2, 0, 3).reshape(len(nodes), 24, LANES)
    parts = [element_matrix(*pair, 2.0, scheme) for pair in ((1.0, 0.0), (0.0, 1.0))]
    force = sum(
        values.ravel()[:, None, None] * np.einsum("ab,ebl->eal", part, local)
        for values, part in zip((lam, mu), parts, strict=True)
    )
    force = np.asarray(force).reshape(len(nodes), 8, 3, LANES).transpose(2, 0, 1, 3)
    for component, own in zip(found, force, strict=True):
        np.add.at(component, nodes, own)
    return found


def prepared(
    backend: str, precision: Any, n: int, name: str = "selective", slabs: int = 1
) -> Prepared:
    """Return two layers of rock with sides that absorb, n nodes along each axis."""
    grid = VoxelGrid((n, n, n), (0.0, 0.0, -400.0 * (n - 1)), 400.0)
    parts = []
    for vp, vs, rho in _LAYERS:
        mu = rho * vs**2
        parts.append((rho * vp**2 - 2.0 * mu, mu, rho))
    upper = np.arange(n - 1) > 2 * n // 3
    column = np.where(upper[:, None], parts[0], parts[1]).astype(np.float32)
    whole = np.broadcast_to(column[:, None, None], (n - 1, n - 1, n - 1, 3))
    arrays = [np.ascontiguousarray(whole[..., item]) for item in range(3)]
    middle = 200.0 * n
    sides = Sides(centre=(middle, middle, -middle))
    scheme = SCHEMES[name]
    medium = Medium(*arrays)
    how = scheme, sides, precision, backend
    return Prepared.of(grid, medium, *how, slabs=slabs)


def begun(ready: Prepared) -> WaveSteps:
    """Return steps of motion everywhere, with a small source in the middle."""
    grid, n = ready.grid, ready.grid.shape[0]
    random = np.random.default_rng(3)
    points = 400.0 * np.array([0.5 * n, 0.5 * n, 0.5 - 0.5 * n])
    points = points + 4e3 * random.uniform(-1.0, 1.0, (200, 3))
    moment = random.standard_normal((200, LANES, 3, 3)) * 1e15
    medium = Medium(*(np.ones((n - 1,) * 3, np.float32) for _ in range(3)))
    loads = moment_loads(grid, medium, points, moment + moment.swapaxes(2, 3))
    middle = np.array([200.0 * n])
    record_ = Recording(receivers(grid, middle, middle), np.zeros(0, dtype=np.int64))
    plan = ready.plan(0.2, 0.2)
    ready.run(plan, loads, smooth_step(2.0), record_)
    steps = ready.steps
    # numbers so small that processors take long for them are at fronts alone
    some = random.standard_normal(100_003, dtype=np.float32)
    u = np.resize(some, (3, grid.n_node, LANES))
    steps.restore({"u": u, "v": u})
    return steps


def seconds(steps: WaveSteps, count: int, repeats: int = _REPEATS) -> float:
    """Median time of a step, s: of the thread on a CPU, which others may load."""
    clock = time.perf_counter if steps.name == "gpu" else time.thread_time

    def wait() -> None:
        for slab in steps.slabs if steps.name == "gpu" else ():
            with slab.on():
                slab.steps.xp.cuda.Device().synchronize()

    times = []
    for _ in range(repeats + 1):
        wait()
        begin = clock()
        for _ in range(count):
            steps.step(1e-3)
        wait()
        times.append((clock() - begin) / count)
    return float(np.median(times[1:]))


def copied(backend: str, steps: WaveSteps) -> float:
    """Bytes per second, read and written, of a copy."""
    if backend == "cpu":
        return copy_rate(1, time.thread_time)
    from afterslip_solver.benchmarks.kernels import copy_bandwidth

    return copy_bandwidth(steps.slabs[0].steps.xp)


def node_bytes(real: Any) -> int:
    """Bytes that a step must move for a node of four lanes."""
    size = int(np.dtype(real).itemsize)
    return 4 * 3 * LANES * size + 3 * size + 2 * 4


def _step(backend: str, precision: str, n: int) -> Record:
    ready = prepared(backend, precision, n)
    steps = begun(ready)
    taken = seconds(steps, _STEPS[backend])
    rate = LANES * ready.grid.n_node / taken / 1e9
    bandwidth = copied(backend, steps)
    floor = LANES * bandwidth / node_bytes(steps.real) / 1e9
    suffix = "" if backend == "gpu" else "_cpu"
    return record(
        f"voxel_step_{precision}_gnodes{suffix}",
        rate,
        "G/s",
        floor,
        f"node-lane steps of {n}^3 nodes, selective, sides and source included, "
        f"{1e3 * taken:.3g} ms; baseline: {node_bytes(steps.real)} B a node at the "
        f"copy's {bandwidth / 1e12:.3g} TB/s",
    )


def scaling(backend: str, slabs: int, nodes: int) -> Iterator[Record]:
    """Time steps of the same voxels whole, and cut into slabs.

    Parameters
    ----------
    slabs : each on a GPU of its own. nodes : along each axis.
    """
    for precision in ("fp32", "fp64"):
        times, fastest = [], []
        for parts in (1, slabs):
            ready = prepared(backend, precision, nodes, slabs=parts)
            fastest.append(ready.fastest)
            times.append(seconds(begun(ready), _STEPS[backend]))
            del ready
        planes = (
            2 * (slabs - 1) * 3 * nodes**2 * LANES * (4 if precision == "fp32" else 8)
        )
        yield record(
            f"voxel_efficiency_{precision}_{slabs}_gpus",
            times[0] / times[1] / slabs,
            "1",
            1.0,
            f"whole steps of {nodes}^3 nodes, {1e3 * times[0]:.4g} ms on one and "
            f"{1e3 * times[1]:.4g} ms on {slabs}, which exchange {planes / 1e6:.3g} "
            "MB; highest frequency the same within "
            f"{abs(fastest[1] / fastest[0] - 1.0):.0e}",
        )


def _integers(n: int) -> Record:
    """Time steps with seven digits beside FP64's of the same element."""
    make = partial(wave_steps, "gpu", real=np.float64, digits=MOST)
    error = check(make, np.float64, "orthogonal")
    rates = []
    for precision in ("int8", "fp64"):
        ready = prepared("gpu", precision, n, "orthogonal")
        taken = seconds(begun(ready), _STEPS["gpu"])
        rates.append(LANES * ready.grid.n_node / taken / 1e9)
        del ready
    return record(
        "voxel_int8_gcols",
        rates[0],
        "G/s",
        rates[1],
        f"columns (elements times lanes) a second of whole steps, {MOST} digits, {n}^3 "
        f"nodes, orthogonal, sides and source included; error {error:.1e} of the "
        "2-norm; baseline: the same in FP64 without tensor cores",
    )
