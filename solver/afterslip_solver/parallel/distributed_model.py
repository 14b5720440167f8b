"""A model prepared on several devices, with the interface of `greens.Prepared`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.array_cache import ArrayCache, Arrays, CacheScope
from afterslip_solver.greens.checkpoint import Checkpointer, State, StateError
from afterslip_solver.greens.elastic_model import ElasticModel
from afterslip_solver.greens.group_solve import GroupSolve
from afterslip_solver.greens.prepared import Prepared
from afterslip_solver.greens.settings import SettingsError, check_settings
from afterslip_solver.greens.source import Slip
from afterslip_solver.jit.threads import over
from afterslip_solver.model import (
    Bool,
    Float,
    GroupResult,
    Int,
    Model,
    Progress,
    ShouldStop,
    SolverSettings,
)
from afterslip_solver.multigrid import MultigridSettings, Preconditioner
from afterslip_solver.operators import Elasticity, Space, check_model
from afterslip_solver.parallel.balance import Ancestor, ancestor
from afterslip_solver.parallel.coordinator import LEVELS, SLOW, Coordinator
from afterslip_solver.parallel.operators import RankCreep, RankSprings
from afterslip_solver.parallel.partition import Part, divide, split
from afterslip_solver.parallel.rank_backend import RankBackend
from afterslip_solver.parallel.rank_group import RankEndpoint, RankGroup
from afterslip_solver.parallel.rank_hierarchy import build_part

_REPORT, _STOP, _LOAD, _DUE, _SAVE = "report", "stop", "load", "due", "save"


class RankSolve(GroupSolve):
    """A run on one part, which has only the trace nodes that it owns."""

    def __init__(self, backend: Any, *limits: Any) -> None:
        tolerance, max_iterations, trace, *hooks = limits
        self._parts: RankBackend = backend
        super().__init__(backend, tolerance, max_iterations, trace[trace >= 0], *hooks)

    def sizes_of(self, values: list[Any]) -> Any:
        """See `GroupSolve`; of all parts."""
        found = super().sizes_of(values)
        self._parts.communicator.maximise(found)
        return found


class RankElasticModel(ElasticModel):
    """One rank's part of an elastic model.

    Parameters
    ----------
    part : of the model. endpoint : the rank's.
    """

    _springs_kind = RankSprings

    def __init__(
        self, part: Part, endpoint: RankEndpoint, cache: ArrayCache | None
    ) -> None:
        self._part = part
        self._endpoint = endpoint
        self._known: tuple[NDArray[np.integer], Int] | None = None
        self._ranks = RankBackend(endpoint.backend, endpoint.communicator, part)
        super().__init__(part.model, self._ranks, cache=cache)

    def _numbered(self, cache: CacheScope) -> Space:
        """See `ElasticModel`; nodes are ordered by who shares them."""
        space = super()._numbered(cache.keyed(self._part.sharing))
        self._ranks.share(space.order)
        return space

    def preconditioner(self, operator: Elasticity) -> Preconditioner:
        """See `ElasticModel`; all ranks make it together."""
        nodes = self._part.nodes[self.space.order]
        settings = MultigridSettings.suiting(self._part.whole)
        vertices = nodes[self.space.vertices]
        return build_part(operator, self._endpoint, vertices, settings)

    def places(self, nodes: NDArray[np.integer]) -> Int:
        """See `ElasticModel`; nodes of the whole mesh."""
        # groups of a campaign have the same trace
        if self._known is not None and np.array_equal(self._known[0], nodes):
            return self._known[1]
        own = self._part.nodes
        at = np.minimum(np.searchsorted(own, nodes), len(own) - 1)
        mine = (own[at] == nodes) & (self._part.sharing[at] < 2)
        places = np.where(mine, self.space.rank[at], -1)
        self._known = nodes, places
        return places


class _RankCheckpointer:
    """A rank's way to the checkpointer of the whole; see `Checkpointer`."""

    def __init__(self, endpoint: RankEndpoint) -> None:
        self._endpoint = endpoint

    def load(self) -> State | None:
        """See `Checkpointer`."""
        state: State | None = self._endpoint.ask(_LOAD, None)
        return state

    def due(self) -> bool:
        """See `Checkpointer`."""
        return bool(self._endpoint.ask(_DUE, None))

    def save(self, state: State) -> None:
        """See `Checkpointer`."""
        self._endpoint.ask(_SAVE, state)


@dataclass(frozen=True, slots=True)
class _Rows:
    """An array by its rows that are not zero: of a source's slip there are few."""

    shape: tuple[int, ...]
    rows: Int
    values: Float

    @classmethod
    def of(cls, whole: Float) -> _Rows:
        rows = np.flatnonzero(whole.reshape(len(whole), -1).any(axis=1))
        return cls(whole.shape, rows, whole[rows])

    def whole(self) -> Float:
        out = np.zeros(self.shape)
        out[self.rows] = self.values
        return out


def _each(slip: Any, change: Callable[[Any], Any]) -> Any:
    """Change the arrays of `Slip`."""
    if isinstance(slip, Mapping):
        return {name: change(values) for name, values in slip.items()}
    if isinstance(slip, np.ndarray | _Rows):
        return change(slip)
    return [change(values) for values in slip]


def _prepare_part(
    endpoint: RankEndpoint,
    part: Part,
    settings: SolverSettings,
    cache: ArrayCache | None,
) -> tuple[int, str]:
    elastic = RankElasticModel(part, endpoint, cache)
    prepared = Prepared(elastic, settings, RankCreep, RankSolve)
    endpoint.stored["prepared"] = prepared
    return prepared.bytes, prepared.scheme


def _solve_part(
    endpoint: RankEndpoint,
    slip: Any,
    trace_nodes: NDArray[np.integer],
    reports: bool,
    stops: bool,
    keeps: bool,
) -> tuple[GroupResult, Int] | Exception:
    """Solve on a part; returns what it found and which trace nodes are its own."""
    prepared: Prepared = endpoint.stored["prepared"]

    def report(news: dict[str, Any]) -> None:
        endpoint.ask(_REPORT, news)

    def asked_to_stop() -> bool:
        return bool(endpoint.ask(_STOP, None))

    try:
        found = prepared.solve(
            _each(slip, _Rows.whole),
            trace_nodes,
            report if reports else None,
            asked_to_stop if stops else None,
            _RankCheckpointer(endpoint) if keeps else None,
        )
    except (SettingsError, StateError) as error:
        # all ranks see the same before they compute, and are ready for another job
        return error
    return found, np.flatnonzero(prepared.elastic.places(trace_nodes) >= 0)


@dataclass(frozen=True, slots=True)
class Device:
    """The kind of device that all ranks have."""

    name: str


class DistributedModel:
    """A model ready to be solved by a ranks, group after group.

    Parameters
    ----------
    model, settings : as for `greens.prepare`.
    ranks : the ranks; one part for each.
    whole : makes the aggregates; a new one where left out.
    cache : where the set-up's arrays are stored from one process to the next.

    Raises
    ------
    ModelError, SettingsError
        As `greens.prepare` does.
    PartitionError
        If the mesh is too small to be cut.
    """

    def __init__(
        self,
        model: Model,
        settings: SolverSettings,
        ranks: RankGroup,
        whole: Coordinator | None = None,
        cache: ArrayCache | None = None,
    ) -> None:
        check_model(model)
        check_settings(settings)
        _check_parallel(settings)
        self.ranks = ranks
        self.backend = Device(ranks.device)
        mesh = model.mesh
        self.n_unknowns = 3 * len(mesh.nodes)
        stored = CacheScope(cache).keyed(mesh.nodes, mesh.elements, model.fixed)
        whole = whole or Coordinator(mesh, model.fixed, cache=stored)
        parts = split(model, _membership(model, ranks, stored))
        sizes = ranks.call(
            _prepare_part,
            [(part, settings, cache) for part in parts],
            {LEVELS: whole.shares, SLOW: whole.slow},
        )
        self.bytes_by_part = [size for size, _ in sizes]
        self.scheme = sizes[0][1]

    @property
    def bytes(self) -> int:
        """Memory used on the devices between groups, all together."""
        return sum(self.bytes_by_part)

    def solve(
        self,
        slip: Slip,
        trace_nodes: NDArray[np.integer],
        progress: Progress | None = None,
        should_stop: ShouldStop | None = None,
        checkpointer: Checkpointer | None = None,
    ) -> GroupResult:
        """See `greens.Prepared.solve`."""
        size = self.ranks.size

        def report(news: list[Any]) -> list[None]:
            if progress is not None:
                progress(news[0])
            return [None] * size

        def stop(_: list[Any]) -> list[bool]:
            return [should_stop is not None and should_stop()] * size

        hooks = (
            progress is not None,
            should_stop is not None,
            checkpointer is not None,
        )
        answers = {_REPORT: report, _STOP: stop, **_keeping(checkpointer, size)}
        given = [(_each(slip, _Rows.of), trace_nodes, *hooks)] * size
        found = self.ranks.call(_solve_part, given, answers)
        if isinstance(found[0], Exception):
            raise found[0]
        first: GroupResult = found[0][0]
        response = _joined([(part.response, here) for part, here in found])
        return replace(first, response=response)

    def close(self) -> None:
        """Let the ranks go."""
        self.ranks.close()


def _joined(parts: list[tuple[Float, Int]]) -> Float:
    """Put responses (lane, mode, n, 3) and the places of their rows together."""
    n_lane, n_mode = parts[0][0].shape[:2]
    n_trace = sum(len(here) for _, here in parts)
    response = np.empty((n_lane, n_mode, n_trace, 3))

    def join(first: int, last: int) -> None:
        for k in range(first, last):
            lane, mode = divmod(k, n_mode)
            for own, here in parts:
                response[lane, mode, here] = own[lane, mode]

    over(n_lane * n_mode, join, few=1, per_thread=1)
    return response


def _membership(model: Model, ranks: RankGroup, cache: CacheScope) -> Int:
    """Part of every element, see `divide`; ``cache`` is keyed by the mesh."""

    def make() -> Arrays:
        work = expected_work(model, ranks)
        return {"part": divide(model.mesh, ranks.size, work).astype(np.uint8)}

    moduli = model.materials.lam, model.materials.mu
    cache = cache.keyed(*moduli, MultigridSettings.suiting(len(model.mesh.cells)))
    found = cache.keyed(ranks.size, ranks.device).get("parts", make)
    return found["part"].astype(np.int64)


def expected_work(model: Model, ranks: RankGroup) -> Float | None:
    """(n_elem,) work of each element in a solve, 1 for most; None where unknown.

    It is known of meshes that were refined; one of the ranks predicts it.
    """
    coarse = ancestor(model)
    if coarse is None:
        return None
    idle: list[tuple[Ancestor | None]] = [(None,)] * (ranks.size - 1)
    return coarse.work(ranks.call(_predict, [(coarse,), *idle], {})[0])


def _predict(endpoint: RankEndpoint, coarse: Ancestor | None) -> Bool | None:
    return None if coarse is None else coarse.slow(endpoint.backend)


def _check_parallel(settings: SolverSettings) -> None:
    if settings.predictor == "dmd" and settings.integrator == "stepping":
        raise SettingsError("the dmd predictor works on one device: use galerkin")
    if settings.preconditioner == "three_level":
        raise SettingsError("three_level works on one device: use multigrid")


def _keeping(checkpointer: Checkpointer | None, size: int) -> dict[str, Any]:
    """Answers that store the parts' states as one, names led by the part."""
    if checkpointer is None:
        return {}

    def load(_: list[Any]) -> Sequence[State | None]:
        state = checkpointer.load()
        if state is None:
            return [None] * size
        leads = [f"part{rank}of{size}." for rank in range(size)]
        return [
            {k.removeprefix(lead): v for k, v in state.items() if k.startswith(lead)}
            for lead in leads
        ]

    def save(states: list[State]) -> list[None]:
        whole: State = {"solves": states[0]["solves"]}
        for rank, state in enumerate(states):
            whole |= {f"part{rank}of{size}.{k}": v for k, v in state.items()}
        checkpointer.save(whole)
        return [None] * size

    return {_LOAD: load, _DUE: lambda _: [checkpointer.due()] * size, _SAVE: save}
