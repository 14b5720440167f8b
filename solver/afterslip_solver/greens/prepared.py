"""Everything about a model that is set up once and used for every group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from afterslip_solver import backend as backends
from afterslip_solver.array_cache import ArrayCache, Arrays, CacheScope, digest, makers
from afterslip_solver.backend import LANES, Backend
from afterslip_solver.backend.base import Tets
from afterslip_solver.greens.checkpoint import Checkpointer
from afterslip_solver.greens.exponential_step import ExponentialStep
from afterslip_solver.greens.group_solve import GroupSolve, Modes, Solvable
from afterslip_solver.greens.settings import SettingsError, check_settings
from afterslip_solver.greens.source import Loads
from afterslip_solver.greens.spectral import Spectral
from afterslip_solver.greens.stepping import Stepping
from afterslip_solver.greens.time_parallel import TimeParallel
from afterslip_solver.greens.time_plan import plan_time
from afterslip_solver.model import (
    Float,
    GroupResult,
    Int,
    Model,
    Progress,
    ShouldStop,
    SolverSettings,
)
from afterslip_solver.multigrid import Preconditioner, make_preconditioner
from afterslip_solver.operators import (
    Creep,
    Elasticity,
    Resolvent,
    Space,
    Springs,
    along_curve,
    check_model,
)

Slip = Mapping[str, Float] | Sequence[Float] | Float


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
    check_model(model)
    check_settings(settings)
    chosen = backend
    if isinstance(chosen, str):
        chosen = backends.get(chosen, deterministic=settings.deterministic)
    return Prepared(model, settings, chosen, cache)


class Prepared:
    """A model ready to be solved for group after group; see `prepare`.

    Attributes
    ----------
    model, settings, backend : as given.
    space : the solver's numbering.
    """

    # a part of a model that several devices share has its own kinds of these
    _springs_kind: type[Springs] = Springs
    _creep_kind: type[Creep] = Creep
    _solve_kind: type[GroupSolve] = GroupSolve

    def __init__(
        self,
        model: Model,
        settings: SolverSettings,
        backend: Backend,
        cache: ArrayCache | None = None,
    ) -> None:
        self.model = model
        self.settings = settings
        self.backend = backend
        self.space = space = _space(model, backend, CacheScope(cache))
        order = space.element_order
        materials = model.materials
        self._lam, self._mu = materials.lam[order], materials.mu[order]
        self._viscosity = materials.viscosity[order]
        kelvin = None
        modulus, slow = materials.kelvin_modulus, materials.kelvin_viscosity
        if modulus is not None and slow is not None:
            kelvin = modulus[order], slow[order]
        self._tets = Tets(
            backend.asarray(space.elements),
            backend.asarray(space.gradients),
            backend.asarray(space.volume),
        )
        self._springs = None
        if model.restoring is not None:
            self._springs = self._springs_kind(backend, space, model.restoring)
        self._soft: tuple[Float, Solvable] | None = None
        self._elastic = self._system(self._mu)
        self._creep = self._creep_kind(
            backend, space, self._mu, self._viscosity, kelvin
        )
        self._loads = Loads(backend, space, self._tets, model.splits, self._creep)
        self._integrator = self._choose()

    @property
    def n_unknowns(self) -> int:
        """Displacement components of all nodes."""
        return 3 * self.space.n_node

    @property
    def bytes(self) -> int:
        """Memory used on the backend between groups."""
        total = self._elastic.bytes + self._tets.bytes + self._creep.bytes
        if self._integrator and self._integrator.system is not self._elastic:
            total += self._integrator.system.bytes
        if self._springs is not None:
            total += self._springs.bytes
        return total

    @property
    def scheme(self) -> str:
        """Say how time is treated: elastic, polynomial, shift_invert or stepping."""
        return "elastic" if self._integrator is None else self._integrator.plan.scheme

    def solve(
        self,
        slip: Slip,
        trace_nodes: NDArray[np.integer],
        progress: Progress | None = None,
        should_stop: ShouldStop | None = None,
        checkpointer: Checkpointer | None = None,
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

        Returns
        -------
        GroupResult; failure to converge is an outcome, not an exception.

        Raises
        ------
        StateError
            If the checkpointer's state is of another problem.
        """
        by_fault, n_lane = self._lanes(slip)
        settings = self.settings
        run = self._solve_kind(
            self.backend,
            settings.tolerance,
            settings.max_iterations,
            self._places(trace_nodes),
            progress,
            should_stop,
            checkpointer,
            lambda: self._digest(by_fault, trace_nodes),
        )
        state = run.resumed() if self._integrator is not None else None
        if state is not None and self._integrator is not None:
            return _result(run, self._integrator.resume(run, state), n_lane)
        operator = self._elastic.operator
        offsets = self._loads.offsets(by_fault)
        f = self._loads.force(operator, offsets)
        u = run.solve(self._elastic, f, "elastic").values
        elastic = run.trace_of(u)
        modes = Modes([elastic])
        if self._integrator is not None and run.going():
            strain = self._creep.strain(u)
            self._loads.add_strain(offsets, strain)
            # two vectors that the integrator need not hold beside its own
            del f, u
            modes = self._integrator.integrate(run, elastic, strain)
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

    def _lanes(self, slip: Slip) -> tuple[dict[str, Float], int]:
        """Slip by fault, padded to four lanes, and the number of real ones."""
        names = list(self.model.splits)
        if isinstance(slip, np.ndarray):
            slip = [slip]
        if not isinstance(slip, Mapping):
            if len(slip) != len(names):
                message = f"slip is given for {len(slip)} of {len(names)} faults"
                raise SettingsError(message)
            slip = dict(zip(names, slip, strict=True))
        counts = {values.shape[2] for values in slip.values()}
        if len(counts) != 1 or not 1 <= max(counts) <= LANES:
            message = f"slip must have the same 1 to {LANES} lanes on every fault"
            raise SettingsError(message)
        n_lane = counts.pop()
        padded = {}
        for name, values in slip.items():
            if name not in names:
                message = f"there is no fault {name!r}; there are {', '.join(names)}"
                raise SettingsError(message)
            expected = (len(self.model.faults[name].nodes), 3, n_lane)
            if values.shape != expected:
                message = f"slip on {name!r} has shape {values.shape}, not {expected}"
                raise SettingsError(message)
            if not np.isfinite(values).all():
                raise SettingsError(f"slip on {name!r} is not finite everywhere")
            padded[name] = np.zeros((*values.shape[:2], LANES))
            padded[name][:, :, :n_lane] = values
        return padded, n_lane

    def _system(self, mu: Float) -> Solvable:
        """Operator with shear modulus mu and the model's bulk modulus."""
        lam = self._lam + 2.0 / 3.0 * (self._mu - mu)
        operator = Elasticity(
            self.backend, self.space, self._tets, lam, mu, self._springs
        )
        return Solvable(operator, self._preconditioner(operator))

    def _preconditioner(self, operator: Elasticity) -> Preconditioner:
        return make_preconditioner(self.settings.preconditioner, operator)

    def _places(self, trace_nodes: NDArray[np.integer]) -> Int:
        """Positions of mesh nodes in vectors."""
        places: Int = self.space.rank[trace_nodes]
        return places

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
        other._integrator = other._choose()
        return other

    def _softened(self, values: Float) -> Solvable:
        """K^v of shear moduli (n_visco,); the last one is stored."""
        if self._soft is None or not np.array_equal(self._soft[0], values):
            mu = self._mu.copy()
            mu[self._creep.which] = values
            self._soft = None
            self._soft = values, self._system(mu)
        return self._soft[1]

    def _choose(self) -> Spectral | Stepping | None:
        """Make the plan's integrator, or None for a purely elastic problem."""
        settings, creep = self.settings, self._creep
        plan = plan_time(creep, settings)
        if plan.scheme == "elastic":
            return None
        if plan.scheme == "stepping":
            local = ExponentialStep(creep, plan.step)
            four = settings.predictor == "four_steps"
            return (TimeParallel if four else Stepping)(
                self.backend,
                creep,
                local,
                self._softened(local.softened),
                plan,
                settings.predictor,
            )
        system = self._elastic
        if plan.scheme == "shift_invert":
            system = self._softened(Resolvent(creep, plan.shift).softened)
        return Spectral(self.backend, creep, system, plan, settings.time_tolerance)


def _space(model: Model, backend: Backend, cache: CacheScope) -> Space:
    """Give a model's mesh the numbering that suits the backend."""
    mesh, force = model.mesh, model.restoring
    cache = cache.keyed(backend.name, mesh.nodes, mesh.elements)

    def orders() -> Arrays:
        found = backend.numbering(mesh.nodes, mesh.elements)
        nodes, elements = found or along_curve(mesh.nodes, mesh.elements)
        return {"nodes": nodes, "elements": elements}

    numbering = cache.get("numbering", orders)
    springs = () if force is None else (force.faces, force.stiffness, force.owners)
    return Space.build(
        mesh,
        model.fixed,
        (numbering["nodes"], numbering["elements"]),
        cache.keyed(model.fixed, *springs),
    )


def _result(run: GroupSolve, modes: Modes, n_lane: int) -> GroupResult:
    n_mode = len(modes.response)
    recurrence = np.zeros((n_mode, LANES, 2))
    if modes.recurrence:
        recurrence[:] = modes.recurrence
    return GroupResult(
        outcome=run.outcome,
        advice=run.advice,
        response=np.stack(modes.response, axis=1)[:n_lane],
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
