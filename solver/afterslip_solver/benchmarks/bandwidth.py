"""An iteration on the CPU beside a copy of as many bytes by the same cores."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_common.record import Record, record
from afterslip_solver.backend.cpu.backend import CpuBackend
from afterslip_solver.krylov import pcg
from afterslip_solver.multigrid import Cycle
from afterslip_solver.operators import Elasticity

# entries of the arrays that are copied; far more than caches hold
_COPIED = 1 << 26
_ITERATIONS = 12


class _Clocked:
    """A cycle that notes when it is applied."""

    varies = False

    def __init__(self, cycle: Cycle, clock: Callable[[], float]) -> None:
        self._cycle, self._clock = cycle, clock
        self.marks: list[float] = []

    @property
    def bytes(self) -> int:
        """Memory of the cycle."""
        return self._cycle.bytes

    def apply(self, r: Any, scale: NDArray[np.float64], out: Any) -> None:
        """See `Preconditioner`."""
        self.marks.append(self._clock())
        self._cycle.apply(r, scale, out)

    def inner_iterations(self) -> list[int]:
        """See `Preconditioner`."""
        return []


def iteration(operator: Elasticity, cycle: Cycle, f: Any) -> Record:
    """Fastest iteration over the time of a copy of the bytes that it must move.

    One thread is timed by its own time on a core, so that a busy machine counts only
    as far as it takes bandwidth and cache away; several are timed by the clock.

    Parameters
    ----------
    f : (n_node, 3, lane) float64, a load.
    """
    backend = operator.backend
    threads = backend.threads if isinstance(backend, CpuBackend) else 1
    clock = time.thread_time if threads == 1 else time.perf_counter
    clocked = _Clocked(cycle, clock)
    rates = [copy_rate(threads, clock)]
    pcg(operator, clocked, f, tolerance=1e-30, max_iterations=_ITERATIONS)
    rates.append(copy_rate(threads, clock))
    moved, seconds = moved_bytes(operator, cycle), float(np.diff(clocked.marks).min())
    return record(
        "cpu_iteration_ms",
        1e3 * seconds,
        "ms",
        1e3 * moved / max(rates),
        f"{f[..., 0].size} unknowns, four lanes, {threads} threads, fastest of "
        f"{len(clocked.marks) - 1}; baseline: a copy of {moved / 1e9:.2f} GB at "
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


def moved_bytes(operator: Elasticity, cycle: Cycle) -> float:
    """Bytes of an iteration if every operation reads and writes its arrays once."""
    vector = 24.0 * operator.shape[0] * operator.shape[2]
    # FP64: product 2, inner products 5, updates 9, change of precision 3
    total = operator.matrix.bytes + 19.0 * vector
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
    return total
