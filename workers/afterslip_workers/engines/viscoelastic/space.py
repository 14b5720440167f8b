"""The same problem on a mesh of twice as long edges, for the error of the finer one."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip.archive import SurfaceInterpolator
from afterslip.archive.tables import POLYGON_ORDER
from afterslip.frame import Frame
from afterslip.physics.viscoelastic.solver import Solver
from afterslip_solver.greens import Prepared, prepare
from afterslip_solver.greens.nested_guess import NestedGuess, Solutions
from afterslip_solver.greens.space_error import (
    BUILT,
    NESTED,
    elastic_and_change,
    leave_out_trace,
    loosened,
    space_error_between,
)
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh import coarsened, placed, placed_slip
from afterslip_solver.mesh.slit_surface import Trace, two_sided
from afterslip_solver.model import (
    Float,
    GroupResult,
    Int,
    Model,
    Progress,
    ShouldStop,
    SolverSettings,
)
from afterslip_solver.parallel import (
    DistributedModel,
    PartitionError,
    PartNestedGuess,
)
from afterslip_workers.engines.viscoelastic.ground import local_motion
from afterslip_workers.engines.viscoelastic.settings import backend_of
from afterslip_workers.engines.viscoelastic.sources import UnitSources, unit_slip
from afterslip_workers.machine.setup_cache import SetupCache


def coarse_model(model: Model, solver: Solver) -> Model | None:
    """Return the model to compare with; None where there is none, or none is asked."""
    if not solver.space_error:
        return None
    if model.coarser is not None:
        return model.coarser
    return coarsened(model, restoring_force)


def was_refined(model: Model) -> bool:
    """Say whether a model was refined from its coarse one; else both were built."""
    return model.coarser is None


def richardson_of(model: Model) -> float:
    """Return the factor between the difference of two meshes and the finer one's error.

    Parameters
    ----------
    model : the fine one.
    """
    return NESTED if was_refined(model) else BUILT


def prepared_coarse(
    model: Model,
    settings: SolverSettings,
    solver: Solver,
    backend: str,
    fine: Prepared | DistributedModel | None = None,
    nested: bool = True,
) -> Prepared | DistributedModel:
    """Prepare the coarse model; its solves need not be exact.

    Parameters
    ----------
    fine : the fine model where that is prepared already; GPUs that share it share the
        coarse one, too.
    nested : the fine model was refined from this one.
    """
    on_earth, loose = placed(model), loosened(settings)
    chosen = backend_of(solver, backend)
    if isinstance(fine, DistributedModel):
        try:
            return fine.beside(on_earth, loose, nested)
        except PartitionError:
            # a hundred vertices are no work
            chosen = "cpu"
    return prepare(on_earth, loose, chosen, SetupCache.here())


def nested_guess(
    coarse: Prepared | DistributedModel, fine: Prepared | DistributedModel
) -> NestedGuess | PartNestedGuess | None:
    """Return what takes solutions to the model that was refined from the coarse one.

    None if they are on different devices.
    """
    if isinstance(coarse, DistributedModel) and isinstance(fine, DistributedModel):
        return PartNestedGuess(coarse, fine)
    if isinstance(coarse, Prepared) and isinstance(fine, Prepared):
        return NestedGuess(coarse.elastic, fine.elastic)
    return None


def slipping(found: GroupResult) -> Float:
    """Modes that hold the slip itself: all steps, or the elastic response."""
    return found.response if len(found.step_times) else found.response[:, :1]


@dataclass(frozen=True, slots=True)
class CoarseGroup:
    """A group of sources, solved on the coarse model.

    Attributes
    ----------
    curve : of (n_lane, 1 + n_time, n_coarse_trace, 3) float64, m,
        `elastic_and_change`; None where the solves did not converge.
    guesses : of the same solves on the fine model, as its ``solve`` takes them; None
        where it was not refined.
    """

    curve: Future[Float] | None
    guesses: Any


@dataclass(frozen=True, slots=True)
class Coarse:
    """A coarse model, ready for the groups of the fine one.

    Attributes
    ----------
    nodes, weights : (n_trace, 6) rows of the coarse trace, and their weights, at each
        row of the fine one.
    faces, on_fault : of the fine trace: its faces, and its rows on traces of faults.
    richardson : of `richardson_of`.
    frame : of the models.
    nested : takes solutions to the fine model; None before `guessing`, and where that
        was not refined.
    beside : thread of what is done while the fine model is solved.
    solving : held by the thread that solves it, of which there may be one.
    """

    model: Model
    prepared: Prepared | DistributedModel
    trace: Trace
    nodes: Int
    weights: Float
    faces: Int
    on_fault: Int
    richardson: float
    frame: Frame
    nested: NestedGuess | PartNestedGuess | None = None
    beside: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 1))
    solving: Lock = field(default_factory=Lock)

    @classmethod
    def of(
        cls,
        coarse: Model,
        prepared: Prepared | DistributedModel,
        unplaced: Model,
        fine_trace: Trace,
        frame: Frame,
    ) -> Coarse:
        """Find the fine trace in the coarse one.

        Parameters
        ----------
        prepared : of the coarse model. unplaced : the fine one.
        """
        trace = two_sided(coarse)
        xy = coarse.mesh.nodes[trace.nodes, :2]
        found = SurfaceInterpolator(xy, trace.faces[:, list(POLYGON_ORDER)])
        at = unplaced.mesh.nodes[fine_trace.nodes]
        nodes, weights = found.weights(at[:, 0], at[:, 1])
        rows = [side.rows for side in fine_trace.sides]
        on_fault = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
        return cls(
            coarse,
            prepared,
            trace,
            nodes,
            weights,
            fine_trace.faces,
            on_fault,
            richardson_of(unplaced),
            frame,
        )

    def guessing(self, fine: Prepared | DistributedModel) -> Coarse:
        """Return the same that also makes guesses for the fine model."""
        if self.richardson != NESTED:
            return self
        return replace(self, nested=nested_guess(self.prepared, fine))

    def solve(
        self,
        units: UnitSources,
        chosen: list[int],
        times: Float,
        should_stop: ShouldStop,
        progress: Progress | None = None,
    ) -> CoarseGroup:
        """Solve a group, before the fine model is solved for it.

        Parameters
        ----------
        units, chosen : the fine model's sources, and those that will be solved.
        times : (n_time,) s, of the estimate.
        progress : as in `Prepared.solve`.
        """
        faults = {name: self.model.faults[name] for name in units.faults}
        slip = unit_slip(UnitSources(faults, units.sources), chosen)
        slip = placed_slip(self.model, slip)
        keep = None if self.nested is None else Solutions()
        with self.solving:
            found = self.prepared.solve(
                slip, self.trace.nodes, progress, should_stop, keep=keep
            )
        if found.outcome != "converged":
            return CoarseGroup(None, None)
        # not before the fine solves: a GPU would wait for it
        curve = self.beside.submit(self._curve, found, slip, times)
        if self.nested is None or keep is None:
            return CoarseGroup(curve, None)
        return CoarseGroup(curve, self.nested.guesses(keep))

    def _curve(self, found: GroupResult, slip: dict[str, Float], times: Float) -> Float:
        self.trace.add_offsets(slipping(found), slip)
        at = self.model.mesh.nodes[self.trace.nodes]
        return local_motion(elastic_and_change(found, times), self.frame, at)

    def error(
        self, fine: GroupResult, coarse: CoarseGroup, times: Float
    ) -> NDArray[np.floating[Any]] | None:
        """Estimate the error of a group's responses.

        Parameters
        ----------
        fine : with the motion of each side along faults.
        times : as `solve` was given.

        Returns
        -------
        (n_lane, 1 + n_time, n_trace), m: of the elastic response, then of the change
        since. None where the coarse solves did not converge.
        """
        if coarse.curve is None:
            return None
        parts = self.nodes, self.weights, self.richardson
        error = space_error_between(fine, times, coarse.curve.result(), *parts)
        leave_out_trace(error, self.faces, self.on_fault)
        return error
