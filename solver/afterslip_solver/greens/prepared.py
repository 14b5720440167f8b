"""Everything about a model that is set up once and used for every group."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import fields
from functools import partial

import numpy as np
from numpy.typing import NDArray

from afterslip_solver import backend as backends
from afterslip_solver.array_cache import ArrayCache, digest, makers
from afterslip_solver.backend import LANES, Backend
from afterslip_solver.greens.checkpoint import Checkpointer
from afterslip_solver.greens.elastic_model import ElasticModel
from afterslip_solver.greens.group_solve import GroupSolve, Modes
from afterslip_solver.greens.nested_guess import Guesses, Solutions
from afterslip_solver.greens.relaxation import Relaxation
from afterslip_solver.greens.settings import check_settings
from afterslip_solver.greens.source import Slip, padded
from afterslip_solver.greens.time_plan import Scheme
from afterslip_solver.model import (
    Float,
    GroupResult,
    Model,
    Progress,
    ShouldStop,
    SolverSettings,
)
from afterslip_solver.operators import Creep, Space, check_model


def prepare(
    model: Model,
    settings: SolverSettings,
    backend: str | Backend = "auto",
    cache: ArrayCache | None = None,
) -> Prepared:
    """Check a model and set up its operators and preconditioners.

    Parameters
    ----------
    model : mesh, materials, constraints and faults.
    settings : integrator, tolerances and times.
    backend : name of a backend, or one that `backend.get` returned.
    cache : where the set-up's arrays are stored from one process to the next.

    Raises
    ------
    ModelError
        If the problem has no unique solution.
    SettingsError
        If the settings make no sense together.
    """
    check_settings(settings)
    chosen = backend
    if isinstance(chosen, str):
        chosen = backends.get(chosen, deterministic=settings.deterministic)
    with ThreadPoolExecutor(1) as beside:
        checked = beside.submit(check_model, model)
        elastic = ElasticModel(
            model, chosen, settings.preconditioner, cache, checked.result
        )
    return Prepared(elastic, settings)


class Prepared:
    """A model ready to be solved for group after group; see `prepare`.

    Parameters
    ----------
    elastic : the model. settings : that `check_settings` has passed.
    creep_kind, solve_kind : classes of a part of a model that several devices share.

    Attributes
    ----------
    elastic, settings : as given. relaxation : on top of the elastic model.
    """

    def __init__(
        self,
        elastic: ElasticModel,
        settings: SolverSettings,
        creep_kind: type[Creep] = Creep,
        solve_kind: Callable[..., GroupSolve] = GroupSolve,
    ) -> None:
        self.elastic = elastic
        self.settings = settings
        self.relaxation = Relaxation(elastic, settings, creep_kind)
        self._solve_kind = solve_kind
        self._beside = elastic.backend.beside()

    @property
    def model(self) -> Model:
        """The model."""
        return self.elastic.model

    @property
    def backend(self) -> Backend:
        """Where it is solved."""
        return self.elastic.backend

    @property
    def space(self) -> Space:
        """The solver's numbering."""
        return self.elastic.space

    @property
    def n_unknowns(self) -> int:
        """Displacement components of all nodes."""
        return 3 * self.space.n_node

    @property
    def bytes(self) -> int:
        """Memory used on the backend between groups."""
        return self.elastic.bytes + self.relaxation.bytes

    @property
    def scheme(self) -> Scheme:
        """Say how time is treated: elastic, polynomial, shift_invert or stepping."""
        return self.relaxation.plan.scheme

    def solve(
        self,
        slip: Slip,
        trace_nodes: NDArray[np.integer],
        progress: Progress | None = None,
        should_stop: ShouldStop | None = None,
        checkpointer: Checkpointer | None = None,
        guesses: Guesses | None = None,
        keep: Solutions | None = None,
    ) -> GroupResult:
        """Responses of the trace to at most four slip distributions.

        Parameters
        ----------
        slip : per fault (n_fault_node, 3, n_lane) float64, m, jump u(+) - u(-) in
            x, y, z: by the fault's name, in a list like ``model.faults``, or one
            array where there is one fault. A lane of zeros is idle.
        trace_nodes : (n_trace,) mesh nodes whose motion is recorded.
        progress : called after every solve and every ten iterations with {phase,
            solve, solves_expected, iteration, residual, lane_residuals}.
        should_stop : asked at the same moments.
        checkpointer : stores states after solves, and returns an earlier one to go
            on from.
        guesses : of the solves, from `NestedGuess.guesses`.
        keep : gets the solutions.

        Returns
        -------
        GroupResult; failure to converge is an outcome, not an exception.

        Raises
        ------
        StateError
            If the checkpointer's state is of another problem.
        """
        by_fault, n_lane = padded(self.model, slip)
        hooks = progress, should_stop, checkpointer, guesses
        with self._beside:
            return self._solve(by_fault, n_lane, trace_nodes, keep, *hooks)

    def _solve(
        self,
        by_fault: dict[str, Float],
        n_lane: int,
        trace_nodes: NDArray[np.integer],
        keep: Solutions | None,
        progress: Progress | None,
        should_stop: ShouldStop | None,
        checkpointer: Checkpointer | None,
        guesses: Guesses | None,
    ) -> GroupResult:
        settings, elastic, relaxation = self.settings, self.elastic, self.relaxation
        run = self._solve_kind(
            self.backend,
            settings.tolerance,
            settings.max_iterations,
            elastic.places(trace_nodes),
            progress,
            should_stop,
            checkpointer,
            lambda: self._digest(by_fault, trace_nodes),
            settings.precision,
            guesses,
            None if keep is None else partial(keep.add, self.backend),
        )
        if keep is not None:
            keep.slip = by_fault
        integrator = relaxation.integrator
        state = run.resumed() if integrator is not None else None
        if state is not None and integrator is not None:
            return _result(run, integrator.resume(run, state), n_lane)
        offsets = elastic.loads.offsets(by_fault)
        f = elastic.loads.force(elastic.system.operator, offsets)
        u = run.solve(elastic.system, f, "elastic").values
        response = run.trace_of(u)
        modes = Modes([response])
        run.ready(modes.response)
        if integrator is not None and run.going():
            strain = relaxation.strain(u, offsets)
            # two vectors that the integrator need not store beside its own
            del f, u
            modes = integrator.integrate(run, response, strain)
        return _result(run, modes, n_lane)

    def _digest(
        self, slip: dict[str, Float], trace_nodes: NDArray[np.integer]
    ) -> NDArray[np.uint8]:
        """Digest of all that changes a group's numbers: another version starts anew."""
        m = self.model.materials
        own = (getattr(m, item.name) for item in fields(m))
        named = (part for item in slip.items() for part in item)
        mesh, name = self.model.mesh, self.backend.name
        what = makers(), self.settings, name, mesh.nodes, *own, trace_nodes, *named
        return np.frombuffer(digest(*what), dtype=np.uint8)

    def twin(self) -> Prepared | None:
        """Return the same for a thread that solves while another one does.

        Both share the model and its matrices, and have work vectors of their own. None:
        no second one is possible, as where products must be repeatable.
        """
        elastic = None if self.settings.deterministic else self.elastic.twin()
        if elastic is None:
            return None
        other = copy(self)
        other.elastic = elastic
        other.relaxation = self.relaxation.adapted(self.settings, elastic)
        other._beside = self.backend.beside()  # noqa: SLF001
        return other

    def adapted(self, settings: SolverSettings) -> Prepared:
        """Return the same model under other settings; what they share is not redone.

        Raises
        ------
        SettingsError
            If the settings make no sense together.
        """
        check_settings(settings)
        other = copy(self)
        other.settings = settings
        other.relaxation = self.relaxation.adapted(settings)
        return other


def _result(run: GroupSolve, modes: Modes, n_lane: int) -> GroupResult:
    n_mode = len(modes.response)
    recurrence = np.zeros((n_mode, LANES, 2))
    if modes.recurrence:
        recurrence[:] = modes.recurrence
    return GroupResult(
        outcome=run.outcome,
        advice=run.advice,
        response=run.gathered(modes.response, n_lane),
        recurrence=np.ascontiguousarray(recurrence.transpose(1, 0, 2)[:n_lane]),
        start_norm=modes.start_norm[:n_lane],
        shift=np.full(n_lane, modes.shift),
        mode_count=modes.mode_count[:n_lane],
        step_times=np.array(modes.step_times),
        residual=run.residual[:n_lane],
        time_error=modes.time_error[:n_lane],
        iterations=run.iterations,
        solves=len(run.history),
        history=run.history,
    )
