"""Elastic solves of models that grow: iterations, time, memory, and set-up."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from afterslip_common.record import Record, record
from afterslip_solver import memory
from afterslip_solver.backend import LANES
from afterslip_solver.benchmarks.timing import wait
from afterslip_solver.greens import Prepared, prepare
from afterslip_solver.krylov import SolveResult, pcg
from afterslip_solver.model import Float, Model, SolverSettings

DAY = 86400.0
_REPEATS = 3
# of thirty days, for the memory that is predicted
_MODES = 5
# a device that is not full takes as long for fewer unknowns
FULL = 4_000_000


def records(
    model: Model,
    slip: dict[str, Float],
    settings: SolverSettings,
    backend: str = "auto",
    before: Sequence[Record] = (),
    lanes: bool = False,
    curve: bool = False,
) -> list[Record]:
    """Measure one size, from nothing to four solved lanes.

    Parameters
    ----------
    slip : fault name → (n_fault_node, 3, lane) m. settings : its tolerance is used.
    before : of smaller models in this run; what grows is set against the smallest,
        times against the smallest that fills a device.
    lanes : also measure fewer and more functions than four.
    curve : also relax for thirty days.
    """
    begin = time.perf_counter()
    made = prepare(model, SolverSettings(tolerance=settings.tolerance), backend)
    wait(made.backend)
    setup = time.perf_counter() - begin
    n = made.n_unknowns
    result, seconds = _median(made, slip, settings.tolerance)
    predicted = memory.estimate(
        n,
        len(model.mesh.elements),
        len(made.relaxation.creep.which) if curve else 0,
        _MODES if curve else 0,
        made.backend.name,
        "polynomial" if curve else "elastic",
        span=0.0,
    )
    size = f"{n} unknowns, {len(model.mesh.elements)} elements, {LANES} lanes"
    note = f"{size}, to {result.relative.max():.1e} ({result.ending})"
    first = _first(before, "growth_iterations")
    full = _first(before, "growth_ns_per_unknown", FULL)
    each = 1e9 * seconds / n
    out = [
        record("growth_unknowns", n, "1", None, size),
        record("growth_iterations", result.iterations, "1", first, note),
        record("growth_solve_s", seconds, "s", None, note),
        record("growth_ns_per_unknown", each, "ns", full, f"{note}, all lanes"),
        record("growth_setup_s", setup, "s", None, f"{size}, the model being there"),
        record("growth_kept_gb", made.bytes / 1e9, "GB", None, f"{size}, by its count"),
        record(
            "growth_host_peak_gb",
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
            "GB",
            None,
            f"{size}, largest of the process so far",
        ),
    ]
    if curve:
        out.append(_curve(made, slip, size))
    if made.backend.name == "gpu":
        pool = made.backend.xp.get_default_memory_pool()
        text = f"{size}, largest taken; baseline: predicted"
        peak = pool.total_bytes() / 1e9
        out.append(record("growth_peak_gb", peak, "GB", predicted.needed / 1e9, text))
    if lanes:
        out += _lanes(made, slip, settings.tolerance, size)
    return out


def _first(before: Sequence[Record], metric: str, least: int = 0) -> float | None:
    """Value of the first size of at least ``least`` unknowns."""
    large = False
    for item in before:
        if item["metric"] == "growth_unknowns":
            large = item["value"] >= least
        if large and item["metric"] == metric:
            return item["value"]
    return None


def _median(
    made: Prepared, slip: dict[str, Float], tolerance: float
) -> tuple[SolveResult, float]:
    """Solve once to compile, then take the median of a few."""
    operator, cycle = made.elastic.system.operator, made.elastic.system.cycle
    f = made.elastic.load(slip)
    result = pcg(operator, cycle, f, tolerance=tolerance)
    seconds = []
    for _ in range(_REPEATS):
        wait(made.backend)
        begin = time.perf_counter()
        result = pcg(operator, cycle, f, tolerance=tolerance)
        wait(made.backend)
        seconds.append(time.perf_counter() - begin)
    return result, float(np.median(seconds))


def _curve(made: Prepared, slip: dict[str, Float], size: str) -> Record:
    """Relax for thirty days; the first of two runs compiles."""
    times = np.linspace(0.0, 30 * DAY, 31)
    settings = replace(
        made.settings, times=tuple(times), until=times[-1], time_tolerance=1e-6
    )
    relaxing = made.adapted(settings)
    for _ in range(2):
        wait(made.backend)
        begin = time.perf_counter()
        result = relaxing.solve(slip, made.model.surface.nodes)
        wait(made.backend)
        seconds = time.perf_counter() - begin
    note = (
        f"{size}, 30 daily epochs, {relaxing.scheme}, {result.solves} solves of "
        f"{[entry['iterations'] for entry in result.history]} iterations, estimated "
        f"error {result.time_error.max():.1e}"
    )
    return record("growth_curve_30d_s", seconds, "s", None, note)


def _lanes(
    made: Prepared, slip: dict[str, Float], tolerance: float, size: str
) -> list[Record]:
    """Cost of a function where one, two, four, eight or sixteen are asked for.

    A solve has four lanes; more functions are solved in turn, idle lanes come along.
    """
    out: list[Record] = []
    alone = 0.0
    for count in (1, 2, LANES):
        some = {name: values[:, :, :count] for name, values in slip.items()}
        result, seconds = _median(made, some, tolerance)
        alone = alone or seconds
        note = f"{size}, {count} of them busy, {result.iterations} iterations"
        name = f"lanes_{count}_s_per_function"
        out.append(record(name, seconds / count, "s", alone, note))
    for count in (2 * LANES, 4 * LANES):
        wait(made.backend)
        begin = time.perf_counter()
        for _ in range(count // LANES):
            made.solve(slip, made.model.surface.nodes)
        wait(made.backend)
        each = (time.perf_counter() - begin) / count
        note = f"{size}, {count // LANES} whole groups in turn, loads and traces too"
        out.append(record(f"lanes_{count}_s_per_function", each, "s", alone, note))
    return out
