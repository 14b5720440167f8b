"""Meshes that meet an accuracy: built, measured, and built again with shorter edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from afterslip.frame import Frame
from afterslip.physics.viscoelastic.sizing import ORDER, scaled, sized
from afterslip.physics.viscoelastic.spec import ViscoelasticCampaign
from afterslip.schemas import earth
from afterslip.schemas.fault import Sources
from afterslip.spec.files import Files
from afterslip.spec.inputs import Inputs
from afterslip_solver.greens.space_error import elastic_and_change
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh import MeshError, coarsened
from afterslip_solver.mesh.slit_surface import two_sided
from afterslip_solver.model import Bool, Float, Model
from afterslip_solver.sources import element_width
from afterslip_workers.engines.viscoelastic.building import (
    STEPS_COST,
    Phase,
    build_model,
)
from afterslip_workers.engines.viscoelastic.settings import settings_of
from afterslip_workers.engines.viscoelastic.sources import UnitSources, unit_slip
from afterslip_workers.engines.viscoelastic.space import Coarse, prepared_coarse

ROUNDS = 7
# what is aimed at, as a share of what is asked for
_AIM = 0.9
# factors of one round on all edges
_LEAST, _MOST = 0.4, 0.9
# after so many meshes, edges on faults and growth are no longer chosen apart
_APART = 4
# shorter edges on faults that leave more than this share of the elastic error are not
# what it comes from
_LEFT = 0.8
# changes smaller than this share of the elastic displacement are not resolved as such
NEGLIGIBLE = 0.01
# a mesh may become so many times larger than the first one, whose size was checked
_LARGER = 16.0
# of the curve, at which sources are looked at
_MOMENTS = (0.1, 1.0)


@dataclass(frozen=True, slots=True)
class Shares:
    """Largest estimated errors of the mesh over the largest displacements.

    Attributes
    ----------
    elastic, change : as shares; the change's is None where nothing creeps.
    """

    elastic: float
    change: float | None = None

    @property
    def largest(self) -> float:
        """The larger one."""
        return max(self.elastic, self.change or 0.0)

    @classmethod
    def of(
        cls, motion: Float, error: NDArray[np.floating[Any]], counted: Bool
    ) -> Shares:
        """Compare errors with displacements.

        Parameters
        ----------
        motion : (n_lane, 1 + n_time, n_point, 3) m, elastic displacement and changes.
        error : (n_lane, 1 + n_time, n_point) m.
        counted : (n_point,) which points count; all where none does.
        """
        counted = counted if counted.any() else np.ones_like(counted)
        size = np.linalg.norm(motion, axis=3).max(axis=2)
        wrong = error[:, :, counted].max(axis=2)
        elastic = float((wrong[:, 0] / size[:, 0]).max())
        # relative to the largest change until then
        reached = np.maximum.accumulate(size[:, 1:], axis=1)
        if not reached.size or not reached.any():
            return cls(elastic)
        reached = np.maximum(reached, NEGLIGIBLE * size[:, :1])
        return cls(elastic, float((wrong[:, 1:] / reached).max()))


def _smaller(error: float, asked: float) -> float:
    """Return the factor on edges that a mesh of such an error needs."""
    wanted = (_AIM * asked / error) ** (1.0 / ORDER)
    return float(np.clip(wanted, _LEAST, _MOST))


@dataclass(frozen=True, slots=True)
class Factors:
    """Sizes of a mesh over those of the first one of a search.

    Attributes
    ----------
    edges : on faults. away : of growth, and of edges far away.
    """

    edges: float = 1.0
    away: float = 1.0

    def after(self, found: Sequence[Shares], asked: float) -> Factors:
        """Return those of the next mesh.

        Edges on faults are the cheapest to shorten and decide on most: first they are,
        alone. Then they follow the elastic error, and what grows away from them that of
        the change, which flow far below makes. Where that does not suffice, or the
        elastic error hardly fell, both become shorter.

        Parameters
        ----------
        found : errors of the meshes so far, at least one.
        """
        last = found[-1]
        smaller = _smaller(last.largest, asked)
        if len(found) == 1:
            return Factors(self.edges * smaller, self.away)
        stays = last.elastic > max(asked, _LEFT * found[-2].elastic)
        if stays or len(found) > _APART:
            return Factors(self.edges * smaller, self.away * smaller)
        edges, away = (
            _smaller(part, asked) if part > asked else 1.0
            for part in (last.elastic, last.change or 0.0)
        )
        return Factors(self.edges * edges, self.away * away)

    def elements_over(self, before: Factors) -> float:
        """Return how many times more elements a mesh has than that of others.

        A fault's own elements are one over the square of their edges; those around it,
        one over the growth's third power if it alone decides.
        """
        edges, away = self.edges / before.edges, self.away / before.away
        return max(edges**-2 * away**-1, away**-3)


Measure = Callable[[Model, dict[str, Any]], Shares]
# how many times larger a model may be that can be solved here
Room = Callable[[Model], float]


@dataclass(slots=True)
class _Search:
    """Rounds of building and measuring."""

    spec: earth.Model
    inputs: Inputs
    files: Files
    phase: Phase
    measure: Measure
    room: Room
    asked: float
    max_elements: float = np.inf
    tried: list[dict[str, Any]] = field(default_factory=list)
    found: list[Shares] = field(default_factory=list)

    def run(self, first: earth.Model) -> tuple[Model, dict[str, Any]]:
        """Return the model that meets the accuracy, or the last one."""
        next_one, stopped = Factors(), f"after {ROUNDS} meshes"
        for _ in range(ROUNDS):
            factors = next_one
            model, facts = self._built(scaled(first, factors.edges, factors.away))
            self.phase(f"measuring a mesh of {facts['n_unknowns']:,} unknowns")
            found = self.measure(model, facts)
            self._note(first, factors, facts, found)
            self.phase(f"its error is {100.0 * found.largest:.2g} %")
            if not found.largest > self.asked:
                stopped = ""
                break
            next_one = factors.after(self.found, self.asked)
            larger = next_one.elements_over(factors)
            most = _LARGER * self.tried[0]["n_elements"]
            stopped = self._stops(facts["n_elements"] * larger, most)
            if not stopped and larger > self.room(model):
                stopped = "because it would not fit into the memory that is free"
            if stopped:
                break
            stopped = f"after {ROUNDS} meshes"
        facts["accuracy"] = {
            "asked": self.asked,
            "reached": found.largest,
            "elastic": found.elastic,
            "change": found.change,
            "met": not stopped,
            "tried": self.tried,
        }
        said = self._said(found, stopped)
        if STEPS_COST in facts["notes"]:
            said.append(
                f"warning: an accuracy of {100.0 * self.asked:g} % is not promised "
                "where the mesh steps around boundaries; the notes name them"
            )
        facts["notes"] = [*facts["notes"], *said]
        return model, facts

    def _stops(self, count: float, most: float) -> str:
        """Say why a mesh of so many elements is not made; nothing: it may be."""
        if count > self.max_elements:
            return (
                f"because it would have about {count:,.0f} elements, and "
                f"{self.max_elements:,.0f} are allowed here"
            )
        if count > most:
            times = f"{_LARGER:g} times larger than the first"
            return f"because it would be more than {times}"
        return ""

    def _built(self, spec: earth.Model) -> tuple[Model, dict[str, Any]]:
        """Build the model; sizes that gmsh fails on are made a little smaller."""
        for smaller in (1.0, 0.9, 0.8):
            try:
                return build_model(
                    scaled(spec, smaller), self.inputs, self.files, self.phase
                )
            except MeshError as error:
                last = error
        raise last

    def _note(
        self, first: earth.Model, factors: Factors, facts: dict[str, Any], found: Shares
    ) -> None:
        size = scaled(first, factors.edges, factors.away).mesh.size
        assert size is not None  # noqa: S101 - `sized` gives it
        self.found.append(found)
        self.tried.append(
            {
                "fault_km": size.fault,
                "far_km": size.far,
                "growth": size.growth,
                "n_unknowns": facts["n_unknowns"],
                "n_elements": facts["n_elements"],
                "error": found.largest,
            }
        )

    def _said(self, found: Shares, stopped: str) -> list[str]:
        last = self.tried[-1]
        parts = f"{100.0 * found.elastic:.2g} % (elastic)"
        if found.change is not None:
            parts += f", {100.0 * found.change:.2g} % (change)"
        said = [
            f"accuracy {100.0 * self.asked:g} %: edges of {0.5 * last['fault_km']:.3g} "
            f"km on the faults, {0.5 * last['far_km']:.3g} km far away, growth "
            f"{0.5 * last['growth']:.2g}, mesh {len(self.tried)} of {ROUNDS} at most; "
            f"estimated error {parts} of the largest displacement"
        ]
        if stopped:
            said.append(
                f"warning: the accuracy of {100.0 * self.asked:g} % was not met, the "
                f"error of the mesh is estimated at {100.0 * found.largest:.2g} %: no "
                f"finer mesh was tried {stopped}; allow more, or give mesh.size"
            )
        return said


def adapted(
    spec: earth.Model,
    inputs: Inputs,
    files: Files,
    phase: Phase,
    measure: Measure,
    grids: Sequence[Sources] = (),
    room: Room = lambda _: np.inf,
    max_elements: int | None = None,
) -> tuple[Model, dict[str, Any]]:
    """Build a model whose mesh has the accuracy that its spec asks for.

    Parameters
    ----------
    spec : with ``mesh.accuracy``.
    measure : returns the errors of a model, given its facts too.
    grids : unit sources; without them faults slip as a whole.
    room : says how many times larger than a model the next one may be.
    max_elements : of any mesh but the first, whose number was checked; None: any.

    Returns
    -------
    As `build_model`; the facts have "accuracy" too: what was asked, what is reached and
    what was tried. A note begins with "warning" where it was not met.
    """
    assert spec.mesh.accuracy is not None  # noqa: S101 - asked by the caller
    asked = 0.01 * spec.mesh.accuracy
    search = _Search(
        spec, inputs, files, phase, measure, room, asked, max_elements or np.inf
    )
    return search.run(sized(spec, inputs, grids))


def beyond_traces(model: Model, points: Float) -> Bool:
    """(n_point,) which points are more than an element from all traces of faults.

    Parameters
    ----------
    points : (n_point, 2 or 3) m.
    """
    apart = np.ones(len(points), dtype=np.bool_)
    top = float(model.mesh.nodes[:, 2].max())
    for fault in model.faults.values():
        nodes = model.mesh.nodes[fault.nodes]
        trace = nodes[nodes[:, 2] >= top - 1.0, :2]
        if len(trace):
            distance, _ = cKDTree(trace).query(points[:, :2])
            apart &= distance > element_width(fault)
    return apart


def of_sources(spec: ViscoelasticCampaign, backend: str) -> Measure:
    """Return what measures a campaign's models by some of its unit sources."""

    def measure(model: Model, _: dict[str, Any]) -> Shares:
        coarse = coarsened(model, restoring_force)
        assert coarse is not None  # noqa: S101 - `sized` refines
        units = UnitSources.of(spec.grids, model)
        settings = settings_of(spec.times, spec.solver)
        until = float(spec.times.until)
        times = np.array(_MOMENTS) * until if until > 0.0 else np.zeros(0)
        prepared = prepared_coarse(model, settings, spec.solver, backend)
        second = prepared_coarse(coarse, settings, spec.solver, backend)
        trace = two_sided(model)
        frame = Frame.of(spec.model.frame)
        compared = Coarse.of(coarse, second, prepared, model, trace, frame)
        counted = beyond_traces(model, model.mesh.nodes[trace.nodes])
        found: list[Shares] = []
        for chosen in _probes(units):
            slip = unit_slip(units, chosen)
            there = compared.solve(units, chosen, times, lambda: False)
            fine = prepared.solve(slip, trace.nodes, guesses=there.guesses)
            whole = len(fine.step_times) > 0
            trace.add_offsets(fine.response if whole else fine.response[:, :1], slip)
            error = compared.error(fine, there, times)
            if fine.outcome != "converged" or error is None:
                return Shares(np.inf)
            found.append(Shares.of(elastic_and_change(fine, times), error, counted))
        changes = [share.change for share in found if share.change is not None]
        return Shares(max(share.elastic for share in found), max(changes, default=None))

    return measure


def _probes(units: UnitSources) -> list[list[int]]:
    """Return, for each fault, the sources of a group at its top and of one below.

    Those in the middle along strike; the shallowest have the finest displacements, the
    deepest the smallest.
    """
    found = []
    for name in units.faults:
        rows = units.rows(name)
        counts = units.first(name).counts
        for down in {0, counts[1] - 1}:
            wanted = (counts[0] // 2, down)
            found.append([k for k in rows if tuple(units.sources[k].patch) == wanted])
    return [chosen for chosen in found if chosen]
