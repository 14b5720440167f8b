"""Iterations on the CPU, without a matrix and with one, beside a copy of the bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from afterslip_common.record import Record, record
from afterslip_solver.backend import Blocks
from afterslip_solver.backend.cpu.backend import CpuBackend
from afterslip_solver.krylov import pcg
from afterslip_solver.krylov.result import Precision
from afterslip_solver.multigrid import Cycle
from afterslip_solver.operators import Elasticity

# entries of the arrays that are copied; far more than caches hold
_COPIED = 1 << 26
_ITERATIONS = 12


class _Clocked(Cycle):
    """A cycle that notes when it is applied."""

    def __init__(self, cycle: Cycle, clock: Callable[[], float]) -> None:
        # the same levels and buffers
        vars(self).update(vars(cycle))
        self._clock = clock
        self.marks: list[float] = []

    def descend(self, sums: Any = None) -> Any:
        """See `Cycle`."""
        self.marks.append(self._clock())
        return super().descend(sums)


def iterations(operator: Elasticity, cycle: Cycle, f: Any) -> list[Record]:
    """Measure `iteration` in both precisions, and each with an assembled matrix."""
    modes: tuple[Precision, ...] = ("mixed", "double")
    with_matrix = assembled(operator, cycle)
    names = {"mixed": "cpu_iteration", "double": "cpu_iteration_double"}
    found = []
    for precision in modes:
        moved = moved_bytes(*with_matrix, precision)
        for system, way in (((operator, cycle), ""), (with_matrix, "_matrix")):
            name = f"{names[precision]}{way}_ms"
            found.append(iteration(*system, f, precision, name, moved))
    return found


def assembled(operator: Elasticity, cycle: Cycle) -> tuple[Elasticity, Cycle]:
    """Return the same with matrices of 3 x 3 blocks for the quadratic elements."""
    backend, host = operator.backend, operator.host

    def blocks(unit: float, real: type[np.floating[Any]]) -> Blocks:
        data = (host.data / unit).astype(real)
        return backend.blocks(host.indptr, host.indices, data, len(host.indptr) - 1)

    found, operator = cycle.twin(), copy(operator)
    finest, single = found.levels[0], blocks(cycle.unit, np.float32)
    finest.smoother.matrix = operator.single = single
    found.levels[0] = replace(finest, matrix=single)
    # in place of what the property would make
    vars(operator)["matrix"] = blocks(1.0, np.float64)
    return operator, found


def iteration(
    operator: Elasticity,
    cycle: Cycle,
    f: Any,
    precision: Precision,
    name: str,
    moved: float,
) -> Record:
    """Fastest iteration over the time of a copy of bytes.

    One thread is timed by its own time on a core, so that a busy machine counts only
    as far as it takes bandwidth and cache away; several are timed by the clock.

    Parameters
    ----------
    f : (n_node, 3, lane) float64, a load.
    precision : of the iterations; those that compute the residual anew take longer
        than the fastest.
    moved : bytes that one with an assembled matrix must move.
    """
    backend = operator.backend
    threads = backend.threads if isinstance(backend, CpuBackend) else 1
    clock = time.thread_time if threads == 1 else time.perf_counter
    clocked = _Clocked(cycle, clock)
    rates = [copy_rate(threads, clock)]
    limits: Any = {"tolerance": 1e-30, "max_iterations": _ITERATIONS}
    pcg(operator, clocked, f, precision=precision, **limits)
    rates.append(copy_rate(threads, clock))
    seconds = float(np.diff(clocked.marks).min())
    own = moved_bytes(operator, cycle, precision)
    return record(
        name,
        1e3 * seconds,
        "ms",
        1e3 * moved / max(rates),
        f"{f[..., 0].size} unknowns, four lanes, {threads} threads, fastest of "
        f"{len(clocked.marks) - 1}, {own / 1e9:.2f} GB to move; baseline: a copy of "
        f"{moved / 1e9:.2f} GB, which one with an assembled matrix must move, at "
        f"{max(rates) / 1e9:.1f} GB/s, read and written, in the same process",
    )


def copy_rate(threads: int, clock: Callable[[], float]) -> float:
    """Bytes per second, read and written, of the fastest of five copies."""
    a, b = np.ones(_COPIED, dtype=np.float32), np.zeros(_COPIED, dtype=np.float32)
    parts = list(zip(np.split(b, threads), np.split(a, threads), strict=True))
    times = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(5):
            begin = clock()
            if threads == 1:
                np.copyto(b, a)
            else:
                list(pool.map(lambda part: np.copyto(*part), parts))
            times.append(clock() - begin)
    return 2.0 * a.nbytes / min(times)


def moved_bytes(operator: Elasticity, cycle: Cycle, precision: Precision) -> float:
    """Bytes of an iteration if every operation reads and writes its arrays once."""
    finest = cycle.levels[0]
    if precision == "mixed":
        # product 2, inner products 5, updates 9
        total = finest.matrix.bytes + 16.0 * finest.b.nbytes
    else:
        # FP64: the same, and change of precision 3
        total = operator.matrix.bytes + 38.0 * finest.b.nbytes
    entries = 1
    for level in cycle.levels:
        smoother, v = level.smoother, level.b.nbytes
        degree, visits = len(smoother.factors), level.visits
        relaxed = level.matrix.bytes + smoother.inverse.nbytes + 3 * v
        own = (degree * (1 + visits) - 1) * relaxed + smoother.inverse.nbytes + 2 * v
        own += visits * (level.matrix.bytes + 3 * v + level.transfer.bytes + 3 * v)
        if level.local is not None:
            local = level.local
            steps = len(local.factors) * (1 + visits)
            own += steps * (
                local.bytes + local.share * (smoother.inverse.nbytes + 5 * v)
            )
        total += entries * own
        entries *= visits
    return float(total)
