"""Meshes that meet an accuracy: built, measured, and built again with shorter edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from afterslip.physics.viscoelastic.sizing import ENDS, ORDER, scaled, sized
from afterslip.schemas import earth
from afterslip.schemas.fault import Sources
from afterslip.spec.files import Files
from afterslip.spec.inputs import Inputs
from afterslip.units import KM
from afterslip_common.geometry import Box
from afterslip_solver.mesh import MeshError
from afterslip_solver.model import Model
from afterslip_workers.engines.viscoelastic.building import (
    STEPS_COST,
    Phase,
    build_model,
)
from afterslip_workers.engines.viscoelastic.error_shares import Errors, Shares

ROUNDS = 7
# what is aimed at, as a share of what is asked for
_AIM = 0.9
# factors of one round on all edges
_LEAST, _MOST = 0.4, 0.95
# digits of such factors: estimates differ in the eleventh with the number of threads,
# and of sizes that differ at all gmsh makes another mesh
_DIGITS = 6
# after so many meshes, edges on faults and growth are no longer chosen apart
_APART = 4
# shorter edges on faults that leave more than this share of the elastic error are not
# what it comes from
_LEFT = 0.8
# edges where slip ends, over the distance of the nearest point from there, at 1 %: the
# estimate of a point as near as such an edge tells little of its error
_NEAREST = 0.8
# least factor on those edges; a mesh that would be good enough is made again where
# they need a smaller factor than this one
_LEAST_ENDS, _COARSE = 0.25, 0.7
# a mesh may become so many times larger than the first one, whose size was checked
_LARGER = 16.0
# share of what is asked for that the walls of a default domain may change; it becomes
# larger until it is so, at most so often and so many times. Not less, as a thin layer
# takes elements with the square of the domain: 0.35 takes a third more for a lid
_WALLS, _LARGER_DOMAINS, _WIDER = 0.6, 3, 2.5


def _smaller(error: float, asked: float) -> float:
    """Return the factor on edges that a mesh of such an error needs."""
    wanted = (_AIM * asked / error) ** (1.0 / ORDER)
    return round(float(np.clip(wanted, _LEAST, _MOST)), _DIGITS)


@dataclass(frozen=True, slots=True)
class Factors:
    """Sizes of a mesh over those of the first one of a search.

    Attributes
    ----------
    edges : on faults. away : of growth, and of edges far away. ends : of edges where
        slip ends at or near the ground, over those on faults.
    """

    edges: float = 1.0
    away: float = 1.0
    ends: float = 1.0

    def after(
        self, found: Sequence[Shares], asked: float, nearest: float = np.inf
    ) -> Factors:
        """Return those of the next mesh.

        Edges on faults are the cheapest to shorten and decide on most: first they are,
        alone. Then what grows away from them follows too, by the error of the change,
        which flow far below makes, or of both where the elastic error hardly fell. How
        much shorter follows the smallest errors so far: a larger one on shorter edges
        is of how one mesh lies, and the next mesh lies otherwise.

        Parameters
        ----------
        found : errors of the meshes so far, at least one.
        nearest : see `finer_at_ends`.
        """
        best = min(found, key=lambda share: share.largest)
        edges, away = _smaller(best.largest, asked), 1.0
        if len(found) > 1:
            here, before = (
                share.elastic if share.farther is None else share.farther
                for share in (found[-1], found[-2])
            )
            stays = here > max(asked, _LEFT * before)
            decides = best.largest if stays or len(found) > _APART else best.change
            if decides is not None and decides > asked:
                away = _smaller(decides, asked)
        finer = Factors(self.edges * edges, self.away * away, self.ends)
        return finer.finer_at_ends(asked, nearest)

    def finer_at_ends(self, asked: float, nearest: float) -> Factors:
        """Return factors with ends of slip as fine as the nearest point needs.

        Parameters
        ----------
        nearest : distance of the nearest point from where slip ends abruptly, over
            edges on faults of the first mesh.
        """
        longest = _NEAREST * math.sqrt(asked / 0.01) * nearest
        wanted = longest / (ENDS * self.edges)
        ends = round(float(np.clip(wanted, _LEAST_ENDS, 1.0)), _DIGITS)
        return replace(self, ends=ends)

    def elements_over(self, before: Factors) -> float:
        """Return how many times more elements a mesh has than that of others.

        A fault's own elements are one over the square of their edges; those around it,
        one over the growth's third power if it alone decides.
        """
        edges, away = self.edges / before.edges, self.away / before.away
        return max(edges**-2 * away**-1, away**-3)


Measure = Callable[[Model, dict[str, Any]], Errors]
# what the walls of the domain of a model change; None where that is not known
Walls = Callable[[Model], Errors | None]
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
    walls: Walls
    grids: Sequence[Sources]
    room: Room
    asked: float
    max_elements: float = np.inf
    tried: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> tuple[Model, dict[str, Any]]:
        """Return the model that meets the accuracy, or the last one."""
        first, model, facts, walls = self._in_domain()
        model, facts, found, stopped = self._refined(first, model, facts, walls)
        both = found.beside(walls).largest
        facts["accuracy"] = {
            "asked": self.asked,
            "reached": both.largest,
            "elastic": both.elastic,
            "change": both.change,
            "domain": walls.largest.largest,
            "met": not stopped and not both.largest > self.asked,
            "tried": self.tried,
        }
        said = self._said(found.largest, facts["accuracy"], stopped)
        if STEPS_COST in facts["notes"]:
            said.append(
                f"warning: an accuracy of {100.0 * self.asked:g} % is not promised "
                "where the mesh steps around boundaries; the notes name them"
            )
        facts["notes"] = [*facts["notes"], *said]
        return model, facts

    def _refined(
        self,
        first: earth.Model,
        model: Model,
        facts: dict[str, Any],
        walls: Errors,
    ) -> tuple[Model, dict[str, Any], Errors, str]:
        """Shorten the edges of a first mesh until its error is what is asked.

        Returns
        -------
        The last model, its facts and errors, and why no finer mesh was made if one is
        needed.
        """
        factors, so_far, asked = Factors(), list[Shares](), self.asked
        assert first.mesh.size is not None  # noqa: S101 - `sized` gives it
        edge = 0.5 * first.mesh.size.fault * KM
        for _ in range(ROUNDS):
            self.phase(f"measuring a mesh of {facts['n_unknowns']:,} unknowns")
            found = self.measure(model, facts)
            error = found.largest.largest
            self._note(first, factors, facts, error)
            self.phase(f"its error is {100.0 * error:.2g} %")
            # at each point, what the walls leave for the mesh
            so_far.append(found.over_what_is_left(walls, asked).largest)
            meets = not so_far[-1].largest > asked
            if not meets:
                next_one = factors.after(so_far, asked, found.nearest_end / edge)
            else:
                next_one = factors.finer_at_ends(asked, found.nearest_end / edge)
                enough = next_one.ends > _COARSE * factors.ends
                if enough or len(self.tried) == ROUNDS:
                    return model, facts, found, ""
            larger = next_one.elements_over(factors)
            most = _LARGER * self.tried[0]["n_elements"]
            stopped = self._stops(facts["n_elements"] * larger, most)
            if not stopped and larger > self.room(model):
                stopped = "because it would not fit into the memory that is free"
            if stopped and meets:
                note = f"warning: edges where slip ends were not shortened {stopped}"
                facts["notes"] = [*facts["notes"], note]
                return model, facts, found, ""
            if stopped:
                return model, facts, found, stopped
            if len(self.tried) < ROUNDS:
                factors = next_one
                model, facts = self._built(_scaled(first, factors))
        return model, facts, found, f"after {ROUNDS} meshes"

    def _in_domain(self) -> tuple[earth.Model, Model, dict[str, Any], Errors]:
        """Build the first mesh, in a larger domain where the spec leaves it open.

        Returns
        -------
        Its spec, itself, its facts, and what the walls of the domain change.
        """
        for times in range(_LARGER_DOMAINS + 1):
            first = sized(self.spec, self.inputs, self.grids)
            model, facts = self._built(first)
            self.phase("measuring what the sides of the domain change")
            walls = self.walls(model) or Errors.everywhere(0.0)
            share = walls.largest.largest / (_WALLS * self.asked)
            open_still = self.spec.domain is None and times < _LARGER_DOMAINS
            if not open_still or not share > 1.0:
                break
            # the change falls with the second power of the distance, the rest faster
            wider = round(min(1.1 * math.sqrt(share), _WIDER), _DIGITS)
            self.inputs = replace(self.inputs, box=_scaled_box(self.inputs, wider))
        return first, model, facts, walls

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
        self, first: earth.Model, factors: Factors, facts: dict[str, Any], error: float
    ) -> None:
        size = _scaled(first, factors).mesh.size
        assert size is not None  # noqa: S101 - `sized` gives it
        self.tried.append(
            {
                "fault_km": size.fault,
                "far_km": size.far,
                "growth": size.growth,
                "ends": size.ends,
                **{name: facts[name] for name in ("n_unknowns", "n_elements")},
                "error": error,
            }
        )

    def _said(self, found: Shares, reached: dict[str, Any], stopped: str) -> list[str]:
        last = self.tried[-1]
        parts = f"{100.0 * found.elastic:.2g} % (elastic)"
        if found.change is not None:
            parts += f", {100.0 * found.change:.2g} % (change)"
        said = [
            f"accuracy {100.0 * self.asked:g} %: edges of {0.5 * last['fault_km']:.3g} "
            f"km on the faults, {0.5 * last['far_km']:.3g} km far away, growth "
            f"{0.5 * last['growth']:.2g}, mesh {len(self.tried)} of {ROUNDS} at most; "
            f"estimated error {parts} of the largest displacement; sides and bottom of "
            f"the domain, {self._domain()}, change {100.0 * reached['domain']:.2g} %"
        ]
        if not stopped and not reached["met"]:
            said.append(
                f"warning: the accuracy of {100.0 * self.asked:g} % was not met: "
                "sides and bottom of the domain change too much; give a larger domain, "
                "or leave it out"
            )
        if stopped:
            said.append(
                f"warning: the accuracy of {100.0 * self.asked:g} % was not met, the "
                f"error of the mesh is estimated at {100.0 * found.largest:.2g} %: no "
                f"finer mesh was tried {stopped}; allow more, or give mesh.size"
            )
        return said

    def _domain(self) -> str:
        box = self.inputs.box
        lengths = box.x[1] - box.x[0], box.y[1] - box.y[0], box.depth
        return " x ".join(f"{length / KM:,.0f}" for length in lengths) + " km"


def _scaled(first: earth.Model, factors: Factors) -> earth.Model:
    return scaled(first, factors.edges, factors.away, factors.ends)


def _scaled_box(inputs: Inputs, times: float) -> Box:
    """Return the domain with its walls farther from its middle.

    Its bottom stays under topography, to which surfaces were put by its depth.
    """
    box = inputs.box
    sides = []
    for low, high in (box.x, box.y):
        middle, half = 0.5 * (low + high), 0.5 * times * (high - low)
        sides.append((middle - half, middle + half))
    deeper = times if inputs.topography is None else 1.0
    return Box(sides[0], sides[1], deeper * box.depth)


def adapted(
    spec: earth.Model,
    inputs: Inputs,
    files: Files,
    phase: Phase,
    measure: Measure,
    grids: Sequence[Sources] = (),
    room: Room = lambda _: np.inf,
    walls: Walls = lambda _: None,
    max_elements: int | None = None,
) -> tuple[Model, dict[str, Any]]:
    """Build a model whose mesh has the accuracy that its spec asks for.

    Parameters
    ----------
    spec : with ``mesh.accuracy``.
    measure : returns the errors of a model, given its facts too.
    grids : unit sources; without them faults slip as a whole.
    room : says how many times larger than a model the next one may be.
    walls : returns what the walls of a model's domain change. A domain that the spec
        leaves open becomes larger where that is too much.
    max_elements : of any mesh but the first, whose number was checked; None: any.

    Returns
    -------
    As `build_model`; the facts have "accuracy" too: what was asked, what is reached
    with the domain's share in it, and what was tried. A note begins with "warning"
    where it was not met.
    """
    assert spec.mesh.accuracy is not None  # noqa: S101 - asked by the caller
    asked = 0.01 * spec.mesh.accuracy
    ways = measure, walls, grids, room, asked, max_elements or np.inf
    return _Search(spec, inputs, files, phase, *ways).run()
