"""An iteration on the CPU beside a copy of bytes by the same cores.

Quadratic elements have no matrix, so that an iteration reads little. It is set against
the bytes of one that reads an assembled matrix, as others do; and against its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from afterslip_common.record import Record, record
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
    """Measure `iteration` in mixed precision and in FP64."""
    double = iteration(operator, cycle, f, "double")
    return [iteration(operator, cycle, f, "mixed"), double]


def iteration(
    operator: Elasticity, cycle: Cycle, f: Any, precision: Precision
) -> Record:
    """Fastest iteration over the time of a copy of what one with a matrix must move.

    One thread is timed by its own time on a core, so that a busy machine counts only
    as far as it takes bandwidth and cache away; several are timed by the clock.

    Parameters
    ----------
    f : (n_node, 3, lane) float64, a load.
    precision : of the iterations; those that compute the residual anew take longer
        than the fastest.
    """
    backend = operator.backend
    threads = backend.threads if isinstance(backend, CpuBackend) else 1
    clock = time.thread_time if threads == 1 else time.perf_counter
    clocked = _Clocked(cycle, clock)
    rates = [copy_rate(threads, clock)]
    limits: Any = {"tolerance": 1e-30, "max_iterations": _ITERATIONS}
    pcg(operator, clocked, f, precision=precision, **limits)
    rates.append(copy_rate(threads, clock))
    moved = moved_bytes(operator, cycle, precision, assembled=True)
    own = moved_bytes(operator, cycle, precision, assembled=False)
    seconds = float(np.diff(clocked.marks).min())
    return record(
        "cpu_iteration_ms" if precision == "mixed" else "cpu_iteration_double_ms",
        1e3 * seconds,
        "ms",
        1e3 * moved / max(rates),
        f"{f[..., 0].size} unknowns, four lanes, {threads} threads, fastest of "
        f"{len(clocked.marks) - 1}; baseline: a copy of {moved / 1e9:.2f} GB, which "
        f"one with an assembled matrix must move, at {max(rates) / 1e9:.1f} GB/s, read "
        f"and written, in the same process; this one must move {own / 1e9:.2f} GB, "
        f"{1e3 * own / max(rates):.0f} ms",
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


def moved_bytes(
    operator: Elasticity, cycle: Cycle, precision: Precision, *, assembled: bool
) -> float:
    """Bytes of an iteration if every operation reads and writes its arrays once.

    Parameters
    ----------
    assembled : as if the quadratic elements had a matrix of 3 x 3 blocks.
    """
    finest = cycle.levels[0]
    single, double = finest.matrix.bytes, operator.matrix.bytes
    if assembled:
        indptr, indices = operator.space.pattern
        single, double = (
            indptr.nbytes + len(indices) * (4 + 9 * real) for real in (4, 8)
        )
    if precision == "mixed":
        # product 2, inner products 5, updates 9
        total = single + 16.0 * finest.b.nbytes
    else:
        # FP64: the same, and change of precision 3
        total = double + 38.0 * finest.b.nbytes
    entries = 1
    for level in cycle.levels:
        smoother, v = level.smoother, level.b.nbytes
        degree, visits = len(smoother.factors), level.visits
        matrix = single if level is finest else level.matrix.bytes
        relaxed = matrix + smoother.inverse.nbytes + 3 * v
        own = (degree * (1 + visits) - 1) * relaxed + smoother.inverse.nbytes + 2 * v
        own += visits * (matrix + 3 * v + level.transfer.bytes + 3 * v)
        if level.local is not None:
            local = level.local
            steps = len(local.factors) * (1 + visits)
            own += steps * (
                local.bytes + local.share * (smoother.inverse.nbytes + 5 * v)
            )
        total += entries * own
        entries *= visits
    return float(total)
