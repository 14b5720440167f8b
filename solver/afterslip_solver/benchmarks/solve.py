"""Elastic solves of one group, beside other solvers in the same run.

The peers: conjugate gradients with block Jacobi on the same backend and operator, and
on models that are small enough PyAMG's smoothed aggregation on the assembled matrix and
sparse factorisations of it, SuperLU on one core like PyAMG, and cuDSS on the device
where it is there.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import pyamg
from numpy.typing import NDArray
from scipy.sparse import bsr_array
from scipy.sparse.linalg import cg

from afterslip_common.record import Record, record
from afterslip_solver.benchmarks import bandwidth, direct
from afterslip_solver.benchmarks.timing import wait
from afterslip_solver.greens import Prepared, prepare
from afterslip_solver.krylov import SolveResult, pcg
from afterslip_solver.model import Float, Model, SolverSettings
from afterslip_solver.multigrid import Cycle
from afterslip_solver.operators import Elasticity
from afterslip_solver.operators.checks import rigid_motions

log = logging.getLogger(__name__)
# unknowns up to which a peer is asked
PYAMG_UP_TO = 600_000
SUPERLU_UP_TO = 60_000
CUDSS_UP_TO = 600_000
# unknowns up to which PyAMG is asked for all lanes, else for one
LANES_UP_TO = 100_000
JACOBI_ITERATIONS = 3_000


class BlockJacobi:
    """The preconditioner that everything else must beat."""

    varies = False

    def __init__(self, operator: Elasticity) -> None:
        self._backend = operator.backend
        inverse = np.linalg.inv(operator.diagonal)
        self._inverse = operator.backend.asarray(inverse)
        self._free = operator.free

    @property
    def bytes(self) -> int:
        """Memory of the inverse blocks."""
        return int(self._inverse.nbytes)

    def apply(self, r: Any, scale: NDArray[Any], out: Any) -> None:
        """See `Preconditioner`."""
        del scale
        self._backend.scale_blocks(self._inverse, r, 1.0, out)
        out *= self._free

    def inner_iterations(self) -> list[int]:
        """See `Preconditioner`."""
        return []


def records(
    model: Model,
    slip: dict[str, Float],
    settings: SolverSettings,
    backend: str = "auto",
) -> list[Record]:
    """Solve for the slip of four unit sources from zero, to settings.tolerance."""
    begin = time.perf_counter()
    made = prepare(model, _elastic(settings), backend)
    wait(made.backend)
    return measured(made, slip, settings, time.perf_counter() - begin)


def measured(
    made: Prepared, slip: dict[str, Float], settings: SolverSettings, setup: float
) -> list[Record]:
    """Measure a prepared model, which took ``setup`` s."""
    system = made.elastic.system
    operator = system.operator
    f = made.elastic.load(slip)
    _timed(made, f, system.cycle, settings)
    result, seconds = _timed(made, f, system.cycle, settings)
    jacobi = BlockJacobi(operator)
    plain, slow = _timed(made, f, jacobi, settings)
    size = f"{made.n_unknowns} unknowns, four lanes, slip on split nodes"
    found = [
        record(
            "group_solve_s",
            seconds,
            "s",
            slow,
            f"{size}, {result.iterations} iterations to {result.relative.max():.1e} "
            f"({result.ending}), {1e3 * seconds / max(result.iterations, 1):.1f} ms an "
            f"iteration; baseline: block Jacobi, {plain.iterations} iterations "
            f"({plain.ending}), same operator and device",
        ),
        record("group_iterations", result.iterations, "1", plain.iterations, size),
        record("group_setup_s", setup, "s", None, f"{size}: everything before a load"),
        record(
            "group_memory_gb",
            made.bytes / 1e9,
            "GB",
            None,
            f"{size}: operators, hierarchy {system.cycle.bytes / 1e9:.2f} GB",
        ),
    ]
    if made.backend.name == "cpu" and isinstance(system.cycle, Cycle):
        found += bandwidth.iterations(operator, system.cycle, f)
    host = made.backend.to_host(f)
    if made.n_unknowns <= PYAMG_UP_TO:
        found.append(_pyamg(operator, host, settings.tolerance, seconds))
    if made.n_unknowns <= SUPERLU_UP_TO:
        found.append(direct.superlu(_matrix(operator), host, seconds))
    if made.n_unknowns <= CUDSS_UP_TO and made.backend.name == "gpu":
        found += _cudss(made, host, seconds)
    return found


def _cudss(made: Prepared, f: Float, ours: float) -> list[Record]:
    library = direct.cudss_library()
    if library is None:
        log.warning("cuDSS is not there")
        return []
    matrix = _matrix(made.elastic.system.operator)
    try:
        return direct.cudss(library, made.backend.xp, matrix, f, ours)
    except ArithmeticError:
        # what else was measured stays
        log.exception("cuDSS did not solve")
        return []


def _elastic(settings: SolverSettings) -> SolverSettings:
    return SolverSettings(
        tolerance=settings.tolerance, deterministic=settings.deterministic
    )


def _timed(
    made: Prepared, f: Any, preconditioner: Any, settings: SolverSettings
) -> tuple[SolveResult, float]:
    wait(made.backend)
    begin = time.perf_counter()
    result = pcg(
        made.elastic.system.operator,
        preconditioner,
        f,
        tolerance=settings.tolerance,
        max_iterations=JACOBI_ITERATIONS,
    )
    wait(made.backend)
    return result, time.perf_counter() - begin


def _matrix(operator: Elasticity) -> bsr_array:
    host = operator.host
    return bsr_array((host.data, host.indices, host.indptr))


def _pyamg(operator: Elasticity, f: Float, tolerance: float, ours: float) -> Record:
    """Conjugate gradients with PyAMG's aggregation, one lane after the other."""
    a = _matrix(operator)
    modes = rigid_motions(operator.space.nodes)
    modes[operator.space.fixed] = 0.0
    begin = time.perf_counter()
    solver = pyamg.smoothed_aggregation_solver(a, B=modes.reshape(-1, 6))
    setup = time.perf_counter() - begin
    lanes = f.shape[2] if a.shape[0] <= LANES_UP_TO else 1
    begin, count = time.perf_counter(), []
    for lane in range(lanes):
        steps: list[int] = []
        cg(
            a,
            f[:, :, lane].ravel(),
            rtol=tolerance,
            M=solver.aspreconditioner(),
            callback=lambda _x: steps.append(1),  # noqa: B023
        )
        count.append(len(steps))
    return record(
        "pyamg_solve_s",
        time.perf_counter() - begin,
        "s",
        ours,
        f"{a.shape[0]} unknowns, {lanes} lanes in turn, {count} iterations, set-up "
        f"{setup:.1f} s, one core; baseline: group_solve_s, four lanes",
    )
