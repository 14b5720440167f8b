"""One rank's part of a model: how it is set up, and how a group is solved on it.

Functions here run on the ranks of a `RankGroup`; what a rank has to ask of the whole
has one of the names below. A rank stores its models by their label, and the solutions
of the last group of the coarse one (see `greens.nested_guess`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.array_cache import ArrayCache, CacheScope
from afterslip_solver.greens.checkpoint import State, StateError
from afterslip_solver.greens.elastic_model import ElasticModel
from afterslip_solver.greens.group_solve import GroupSolve
from afterslip_solver.greens.nested_guess import NestedGuess, Solutions
from afterslip_solver.greens.prepared import Prepared
from afterslip_solver.greens.settings import SettingsError
from afterslip_solver.model import Bool, Float, GroupResult, Int, SolverSettings
from afterslip_solver.multigrid import MultigridSettings, Preconditioner
from afterslip_solver.operators import Elasticity, Space
from afterslip_solver.parallel.operators import RankCreep, RankSprings
from afterslip_solver.parallel.partition import Part
from afterslip_solver.parallel.rank_backend import RankBackend
from afterslip_solver.parallel.rank_group import RankEndpoint
from afterslip_solver.parallel.rank_hierarchy import build_part

REPORT, STOP, LOAD, DUE, SAVE = "report", "stop", "load", "due", "save"
# what a rank stores beside its models
GUESS, SOLUTIONS = "guess", "solutions"


class RankSolve(GroupSolve):
    """A run on one part, which has only the trace nodes that it owns.

    Responses are posted when they are there, as (mode, lane, values).

    Parameters
    ----------
    endpoint : the rank's. backend, limits : see `GroupSolve`.
    """

    def __init__(self, endpoint: RankEndpoint, backend: Any, *limits: Any) -> None:
        tolerance, max_iterations, trace, *hooks = limits
        self._parts: RankBackend = backend
        self._endpoint, self._n_posted = endpoint, 0
        super().__init__(backend, tolerance, max_iterations, trace[trace >= 0], *hooks)

    def ready(self, response: list[Float]) -> None:
        """See `GroupSolve`."""
        for mode in range(self._n_posted, len(response)):
            # one lane at a time: questions to the whole may go between them
            for lane, values in enumerate(response[mode]):
                self._endpoint.post((mode, lane, values))
        self._n_posted = len(response)

    def gathered(self, response: list[Float], n_lane: int) -> Float:
        """See `GroupSolve`; without values, which the whole gathers."""
        self.ready(response)
        return np.empty((n_lane, len(response), 0, 3))

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
        at, here = self._found(nodes)
        mine = here & (self._part.sharing[at] < 2)
        places = np.where(mine, self.space.rank[at], -1)
        self._known = nodes, places
        return places

    def fault_nodes(self, name: str) -> Int:
        """See `ElasticModel`; those that the part has."""
        at, here = self._found(super().fault_nodes(name))
        return at[here]

    def agree(self, u: Any) -> None:
        """See `ElasticModel`; copies get what their owner has."""
        u[self._ranks.halo(len(u)).owned :] = 0.0
        self._ranks.complete(u)

    def _found(self, nodes: NDArray[np.integer]) -> tuple[Int, Bool]:
        """Return the part's numbers of the whole mesh's nodes, and which it has."""
        own = self._part.nodes
        at = np.minimum(np.searchsorted(own, nodes), len(own) - 1)
        return at, own[at] == nodes


class _RankCheckpointer:
    """A rank's way to the checkpointer of the whole; see `Checkpointer`."""

    def __init__(self, endpoint: RankEndpoint) -> None:
        self._endpoint = endpoint

    def load(self) -> State | None:
        """See `Checkpointer`."""
        state: State | None = self._endpoint.ask(LOAD, None)
        return state

    def due(self) -> bool:
        """See `Checkpointer`."""
        return bool(self._endpoint.ask(DUE, None))

    def save(self, state: State) -> None:
        """See `Checkpointer`."""
        self._endpoint.ask(SAVE, state)


@dataclass(frozen=True, slots=True)
class Rows:
    """An array by its rows that are not zero: of a source's slip there are few."""

    shape: tuple[int, ...]
    rows: Int
    values: Float

    @classmethod
    def of(cls, whole: Float) -> Rows:
        """Take those of an array."""
        rows = np.flatnonzero(whole.reshape(len(whole), -1).any(axis=1))
        return cls(whole.shape, rows, whole[rows])

    def whole(self) -> Float:
        """Return the array."""
        out = np.zeros(self.shape)
        out[self.rows] = self.values
        return out


def each(slip: Any, change: Callable[[Any], Any]) -> Any:
    """Change the arrays of `Slip`."""
    if isinstance(slip, Mapping):
        return {name: change(values) for name, values in slip.items()}
    if isinstance(slip, np.ndarray | Rows):
        return change(slip)
    return [change(values) for values in slip]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is to be done while a group is solved.

    Attributes
    ----------
    reports, stops, checkpoints : the whole wants to be asked of these.
    stores : the solutions, as guesses of the fine model.
    guessed : those of the coarse model's last group are taken.
    """

    reports: bool
    stops: bool
    checkpoints: bool
    stores: bool
    guessed: bool


def prepare_part(
    endpoint: RankEndpoint,
    label: str,
    part: Part,
    settings: SolverSettings,
    cache: ArrayCache | None,
) -> tuple[int, str]:
    """Set a part up and store it; returns its bytes and its scheme."""
    elastic = RankElasticModel(part, endpoint, cache)
    prepared = Prepared(elastic, settings, RankCreep, partial(RankSolve, endpoint))
    endpoint.stored[label] = prepared
    return prepared.bytes, prepared.scheme


def connect_parts(endpoint: RankEndpoint, coarse: str, fine: str) -> None:
    """Store what makes guesses on a fine part of solutions on the coarse one."""
    parts = (endpoint.stored[label].elastic for label in (coarse, fine))
    endpoint.stored[GUESS] = NestedGuess(*parts)


def solve_part(
    endpoint: RankEndpoint,
    label: str,
    slip: Any,
    trace_nodes: NDArray[np.integer],
    wishes: Wishes,
) -> tuple[GroupResult, Int] | Exception:
    """Solve on a part; returns what it found and which trace nodes are its own.

    Responses are posted, see `RankSolve`.
    """
    stored = endpoint.stored
    prepared: Prepared = stored[label]

    def report(news: dict[str, Any]) -> None:
        endpoint.ask(REPORT, news)

    def asked_to_stop() -> bool:
        return bool(endpoint.ask(STOP, None))

    if wishes.stores:
        stored[SOLUTIONS] = Solutions()
    try:
        found = prepared.solve(
            each(slip, Rows.whole),
            trace_nodes,
            report if wishes.reports else None,
            asked_to_stop if wishes.stops else None,
            _RankCheckpointer(endpoint) if wishes.checkpoints else None,
            stored[GUESS].guesses(stored[SOLUTIONS]) if wishes.guessed else None,
            stored[SOLUTIONS] if wishes.stores else None,
        )
    except (SettingsError, StateError) as error:
        # all ranks see the same before they compute, and are ready for another job
        return error
    if not wishes.stores or found.outcome != "converged":
        # nobody will ask for guesses any more, and their memory is needed
        stored[SOLUTIONS] = Solutions()
    return found, np.flatnonzero(prepared.elastic.places(trace_nodes) >= 0)
