"""One group over several GPUs: time, efficiency and what the exchange costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from afterslip_common.record import Record, record
from afterslip_solver.backend import LANES
from afterslip_solver.benchmarks.curve import coarse_slip
from afterslip_solver.greens.nested_guess import Solutions
from afterslip_solver.greens.space_error import loosened
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh import coarsened
from afterslip_solver.model import Float, GroupResult, Int, Model, SolverSettings
from afterslip_solver.multigrid import MultigridSettings
from afterslip_solver.parallel import (
    DistributedModel,
    PartNestedGuess,
    RankGroup,
    gpu_rank_group,
)
from afterslip_solver.parallel.coordinator import Coordinator
from afterslip_solver.parallel.distributed_model import FINE
from afterslip_solver.parallel.rank_backend import RankBackend
from afterslip_solver.parallel.rank_group import RankEndpoint

_REPEATS = 50


@dataclass(frozen=True, slots=True)
class _Measured:
    """One number of devices; times in s."""

    found: GroupResult
    elastic: float
    curve: float
    wall: float
    nested: float
    nested_iterations: list[int]
    exchange: float
    rows: int
    bytes: int
    seconds: float


class _Same(Coordinator):
    """Aggregates once for all numbers of devices: the matrix is the same."""

    _known: Any = None

    def aggregates(self, matrix: Any) -> Any:
        """See `Coordinator`."""
        self._known = self._known or super().aggregates(matrix)
        return self._known


def records(
    model: Model,
    slip: dict[str, Float],
    settings: SolverSettings,
    counts: Sequence[int] = (1, 2, 4),
    make_team: Callable[[int], RankGroup] = gpu_rank_group,
    say: Callable[[str], None] = print,
    keep: Callable[[list[Record]], None] = lambda _: None,
) -> list[Record]:
    """Solve one group over each number of devices.

    Parameters
    ----------
    slip : fault name → (n_fault_node, 3, lane) m.
    settings : polynomial scheme or elastic, so that all solves are with one matrix.
    counts : numbers of devices, in the order of the runs; efficiencies are against
        one, where that is among them.
    say : called with a line for each run. keep : given all records so far after each.
    """
    whole, coarse = _Same(model.mesh, model.fixed), coarsened(model, restoring_force)
    measured: dict[int, _Measured] = {}
    for count in counts:
        ranks = make_team(count)
        measured[count] = _measure(model, coarse, slip, settings, ranks, whole)
        m = measured[count]
        iterations = [h["iterations"] for h in m.found.history]
        say(
            f"{count} devices: set up in {m.seconds:.1f} s, elastic {m.elastic:.4f} s, "
            f"curve {m.curve:.4f} s of {m.wall:.4f} s, exchange {m.exchange:.4f} s of "
            f"the elastic solve, iterations {iterations}"
        )
        keep(_described(measured, model))
    return _described(measured, model)


def _described(measured: dict[int, _Measured], model: Model) -> list[Record]:
    size = f"{3 * len(model.mesh.nodes)} unknowns, {len(model.mesh.elements)} elements"
    out: list[Record] = []
    for count, m in sorted(measured.items()):
        out += _describe(count, m, measured.get(1), size)
    return out


def _measure(
    model: Model,
    coarse: Model | None,
    slip: dict[str, Float],
    settings: SolverSettings,
    ranks: RankGroup,
    whole: Coordinator,
) -> _Measured:
    started = time.perf_counter()
    parts = DistributedModel(model, settings, ranks, whole)
    seconds = time.perf_counter() - started
    trace = model.surface.nodes
    try:
        # the first run compiles, and meets the other ranks
        parts.solve(slip, trace)
        # the one in the middle of three
        runs = sorted((_timed(parts, slip, trace) for _ in range(3)), key=itemgetter(0))
        wall, found = runs[1]
        nested = wall, found
        if coarse is not None:
            both = coarse, model
            nested = sorted(_nested(parts, both, slip, settings), key=itemgetter(0))[1]
        costs = ranks.call(_exchange, [()] * ranks.size, {})
    finally:
        parts.close()
    own = [float(entry["seconds"]) for entry in found.history]
    applies = found.history[0]["iterations"]
    prices = np.max([cost for cost, _ in costs], axis=0)
    return _Measured(
        found=found,
        elastic=own[0],
        curve=sum(own),
        wall=wall,
        nested=nested[0],
        nested_iterations=[entry["iterations"] for entry in nested[1].history],
        exchange=float(prices @ _calls(applies)),
        rows=max(rows for _, rows in costs),
        bytes=max(parts.bytes_by_part),
        seconds=seconds,
    )


def _timed(
    parts: DistributedModel, slip: dict[str, Float], trace: Int
) -> tuple[float, GroupResult]:
    started = time.perf_counter()
    found = parts.solve(slip, trace)
    return time.perf_counter() - started, found


def _nested(
    parts: DistributedModel,
    models: tuple[Model, Model],
    slip: dict[str, Float],
    settings: SolverSettings,
) -> list[tuple[float, GroupResult]]:
    """Solve three times as campaigns do, on the mesh before the last refinement first.

    Parameters
    ----------
    models : that one and the fine one.

    Returns
    -------
    Seconds of both meshes, and the result of the fine one.
    """
    coarse, model = models
    on_coarse = coarse_slip(coarse, model, slip)
    other = parts.beside(coarse, loosened(settings), nested=True)
    nested = PartNestedGuess(other, parts)
    traces, found = (coarse.surface.nodes, model.surface.nodes), []
    # the first run compiles
    for _ in range(4):
        started = time.perf_counter()
        keep = Solutions()
        other.solve(on_coarse, traces[0], keep=keep)
        result = parts.solve(slip, traces[1], guesses=nested.guesses(keep))
        found.append((time.perf_counter() - started, result))
    return found[1:]


def _calls(iterations: int) -> Float:
    """Exchanges of an elastic solve, in the order of `_exchange`.

    A product and a V-cycle per iteration, with a sum for each step of a smoother but
    the first, each residual and the restriction to linear elements, and one over the
    aggregates. Three inner products. Sums of local smoothing are few rows, left out.
    """
    s = MultigridSettings()
    each = [1.0, 2.0 * s.degree, 2.0 * s.coarse_degree + 1.0, 1.0, 3.0]
    return np.array(each) * iterations


def _exchange(endpoint: RankEndpoint) -> tuple[list[float], int]:
    """Seconds of one exchange of each kind, and the rows that this rank sends."""
    prepared = endpoint.stored[FINE]
    backend: RankBackend = prepared.backend
    n, xp = prepared.space.n_node, backend.xp
    n_vertex = len(prepared.space.vertices)
    levels = prepared.elastic.system.cycle.levels
    aggregates = xp.zeros_like(levels[2].b) if len(levels) > 2 else xp.zeros(LANES)
    nodal = {
        (rows, real): xp.zeros((rows, 3, LANES), dtype=real)
        for rows, real in ((n, np.float64), (n, np.float32), (n_vertex, np.float32))
    }
    calls = [partial(backend.complete, x) for x in nodal.values()]
    one = nodal[n, np.float64][:LANES].copy()
    small = backend.inner.partial_dot(one, one)
    calls += [partial(endpoint.communicator.all_reduce, x) for x in (aggregates, small)]
    out = []
    for call in calls:
        call()
        backend.to_host(small)
        started = time.perf_counter()
        for _ in range(_REPEATS):
            call()
        backend.to_host(small)
        out.append((time.perf_counter() - started) / _REPEATS)
    return out, backend.halo(n).rows


def _describe(
    count: int, m: _Measured, one: _Measured | None, size: str
) -> list[Record]:
    iterations = [h["iterations"] for h in m.found.history]
    note = (
        f"{size}, four lanes, {count} GPUs, iterations {iterations}, residual "
        f"{m.found.residual.max():.1e}, {m.bytes / 1e9:.1f} GB used on the fullest GPU"
    )
    ideal = None if one is None else one.elastic / count
    out = [
        record(f"group_solve_{count}_gpus_s", m.elastic, "s", ideal, note),
        record(
            f"group_curve_{count}_gpus_s",
            m.curve,
            "s",
            None if one is None else one.curve / count,
            f"{m.found.solves} solves",
        ),
        record(
            f"group_wall_{count}_gpus_s",
            m.wall,
            "s",
            None if one is None else one.wall / count,
            "the whole curve, with loads, creep and what comes back to the host",
        ),
        record(
            f"group_nested_{count}_gpus_s",
            m.nested,
            "s",
            None if one is None else one.nested / count,
            "the same with the coarse mesh's curve before it, which tells the mesh's "
            f"error; iterations {m.nested_iterations}",
        ),
        record(f"group_setup_{count}_gpus_s", m.seconds, "s", None, size),
    ]
    if count == 1:
        return out
    if one is not None:
        size_of = np.abs(one.found.response).max()
        differ = np.abs(m.found.response - one.found.response).max() / size_of
        for what, mine, alone in (
            ("solve", m.elastic, one.elastic),
            ("curve", m.curve, one.curve),
            ("wall", m.wall, one.wall),
            ("nested", m.nested, one.nested),
        ):
            name = f"efficiency_{what}_{count}_gpus"
            note = f"{size}; response differs by {differ:.1e} from one GPU's"
            out.append(record(name, alone / (count * mine), "1", 0.8, note))
    share = m.exchange / m.elastic
    note = f"{size}; {m.rows} shared nodes of the part that has most, exchanged alone"
    note += ", each sum launched by the host"
    out.append(record(f"exchange_share_{count}_gpus", share, "1", None, note))
    return out
