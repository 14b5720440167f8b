"""A model prepared on several devices, with the interface of `greens.Prepared`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.array_cache import ArrayCache, Arrays, CacheScope
from afterslip_solver.greens.checkpoint import Checkpointer, State
from afterslip_solver.greens.nested_guess import Solutions
from afterslip_solver.greens.settings import SettingsError, check_settings
from afterslip_solver.greens.source import Slip
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.lattice import CHILDREN
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
from afterslip_solver.multigrid import MultigridSettings
from afterslip_solver.operators import check_model
from afterslip_solver.parallel.balance import Ancestor, ancestor
from afterslip_solver.parallel.coordinator import LEVELS, SLOW, Coordinator
from afterslip_solver.parallel.partition import divide, split
from afterslip_solver.parallel.rank_group import RankEndpoint, RankGroup
from afterslip_solver.parallel.rank_model import (
    DUE,
    LOAD,
    REPORT,
    SAVE,
    STOP,
    Rows,
    Wishes,
    connect_parts,
    each,
    prepare_part,
    solve_part,
)

# what ranks store the two models as
FINE, COARSE = "fine", "coarse"


@dataclass(frozen=True, slots=True)
class Device:
    """The kind of device that all ranks have."""

    name: str


class DistributedModel:
    """A model ready to be solved by ranks, group after group.

    Parameters
    ----------
    model, settings : as for `greens.prepare`.
    ranks : the ranks; one part for each.
    whole : makes the aggregates; a new one where left out.
    cache : where the set-up's arrays are stored from one process to the next.
    membership : (n_elem,) part of each element; found where left out.
    label : what ranks store their parts as.

    Attributes
    ----------
    ranks, membership, label : as given.
    backend : kind of the ranks' devices. n_unknowns : displacement components.
    bytes_by_part : memory of each. scheme : see `greens.Prepared`.

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
        membership: NDArray[np.integer] | None = None,
        label: str = FINE,
    ) -> None:
        check_model(model)
        check_settings(settings)
        _check_parallel(settings)
        self.ranks = ranks
        self.backend = Device(ranks.device)
        self.label, self._cache = label, cache
        mesh = model.mesh
        self.n_unknowns = 3 * len(mesh.nodes)
        stored = CacheScope(cache).keyed(mesh.nodes, mesh.elements, model.fixed)
        whole = whole or Coordinator(mesh, model.fixed, cache=stored)
        if membership is None:
            membership = _membership(model, ranks, stored)
        self.membership = membership
        sizes = ranks.call(
            prepare_part,
            [(label, part, settings, cache) for part in split(model, membership)],
            {LEVELS: whole.shares, SLOW: whole.slow},
        )
        self.bytes_by_part = [size for size, _ in sizes]
        self.scheme = sizes[0][1]

    def beside(
        self, coarse: Model, settings: SolverSettings, nested: bool
    ) -> DistributedModel:
        """Set up a coarse model on the same ranks.

        Parameters
        ----------
        nested : this model was refined from that one; its parts then have the parents
            of this one's.

        Raises
        ------
        PartitionError
            If it is too small to be cut; the ranks are as they were.
        """
        parts = self.membership[::CHILDREN] if nested else None
        given = coarse, settings, self.ranks, None, self._cache
        return DistributedModel(*given, membership=parts, label=COARSE)

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
        guesses: PartGuesses | None = None,
        keep: Solutions | None = None,
    ) -> GroupResult:
        """See `greens.Prepared.solve`.

        Parameters
        ----------
        guesses : of `PartNestedGuess.guesses`.
        keep : solutions are to be stored; they stay on the ranks.
        """
        size = self.ranks.size

        def report(news: list[Any]) -> list[None]:
            if progress is not None:
                progress(news[0])
            return [None] * size

        def stop(_: list[Any]) -> list[bool]:
            return [should_stop is not None and should_stop()] * size

        wishes = Wishes(
            reports=progress is not None,
            stops=should_stop is not None,
            checkpoints=checkpointer is not None,
            stores=keep is not None,
            guessed=guesses is not None,
        )
        answers = {REPORT: report, STOP: stop, **_keeping(checkpointer, size)}
        given = self.label, each(slip, Rows.of), trace_nodes, wishes
        posted: dict[tuple[int, int, int], Float] = {}

        def put(rank: int, response: tuple[int, int, Float]) -> None:
            mode, lane, values = response
            posted[rank, mode, lane] = values

        found = self.ranks.call(solve_part, [given] * size, answers, put)
        if isinstance(found[0], Exception):
            raise found[0]
        first: GroupResult = found[0][0]
        n_lane, n_mode = first.response.shape[:2]
        response = _joined(posted, [here for _, here in found], n_lane, n_mode)
        return replace(first, response=response)

    def close(self) -> None:
        """Let the ranks go."""
        self.ranks.close()


@dataclass(frozen=True, slots=True)
class PartGuesses:
    """Guesses that each rank makes of the solutions that it stores."""


class PartNestedGuess:
    """`greens.nested_guess.NestedGuess` on every part of two models.

    Parameters
    ----------
    coarse, fine : the former was set up `beside` the latter, which was refined from it.
    """

    def __init__(self, coarse: DistributedModel, fine: DistributedModel) -> None:
        size = fine.ranks.size
        labels = coarse.label, fine.label
        fine.ranks.call(connect_parts, [labels] * size, {})

    def guesses(self, _: Solutions) -> PartGuesses:
        """Return what guesses the solves of the group that was solved last."""
        return PartGuesses()


def _joined(
    posted: dict[tuple[int, int, int], Float],
    rows: list[Int],
    n_lane: int,
    n_mode: int,
) -> Float:
    """Put responses (n, 3) by rank, mode and lane together; ``rows`` of each rank."""
    response = np.empty((n_lane, n_mode, sum(map(len, rows)), 3))

    def join(first: int, last: int) -> None:
        for k in range(first, last):
            lane, mode = divmod(k, n_mode)
            for rank, here in enumerate(rows):
                response[lane, mode, here] = posted[rank, mode, lane]

    over(n_lane * n_mode, join, few=1, per_thread=1)
    return response


def _membership(
    model: Model, ranks: RankGroup, cache: CacheScope
) -> NDArray[np.integer]:
    """Part of every element, see `divide`; ``cache`` is keyed by the mesh."""

    def make() -> Arrays:
        work = expected_work(model, ranks)
        return {"part": divide(model.mesh, ranks.size, work).astype(np.uint8)}

    moduli = model.materials.lam, model.materials.mu
    cache = cache.keyed(*moduli, MultigridSettings.suiting(len(model.mesh.cells)))
    found = cache.keyed(ranks.size, ranks.device).get("parts", make)
    return found["part"]


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

    return {LOAD: load, DUE: lambda _: [checkpointer.due()] * size, SAVE: save}
