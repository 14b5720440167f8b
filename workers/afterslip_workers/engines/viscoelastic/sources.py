"""A campaign's unit sources on the model's fault, in the order of its store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from afterslip.archive import SourceTable
from afterslip.schemas import fault as schema
from afterslip_common.terms import SLIP_COMPONENTS
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh import placed
from afterslip_solver.model import FaultMesh, Float, Model
from afterslip_solver.sources import (
    FREE,
    Edges,
    UnitSource,
    element_width,
    group_in_fours,
    shape_values,
    slips_of,
    source_integrals,
    spacing,
    unit_sources,
)

_FEW = 8  # patches, for which threads are not worth their start
# elements should be at most half the spacing of sources; meshed ones vary about it
_COARSE = 0.6
EDGES = ("top", "bottom", "start", "end")
CONDITIONS = {
    "free": "slip may have any value",
    "zero": "slip is zero",
    "clamped": "slip and its gradient are zero",
}


@dataclass(frozen=True, slots=True)
class UnitSources:
    """Unit sources of the faults that slip.

    Attributes
    ----------
    faults : meshes of these faults by name, in the order of the spec.
    sources : in the order of the store.
    """

    faults: dict[str, FaultMesh]
    sources: list[UnitSource]

    @classmethod
    def of(
        cls,
        grids: Sequence[schema.Sources],
        model: Model,
        order: Sequence[int] | None = None,
    ) -> UnitSources:
        """Return the sources that a spec asks for.

        Parameters
        ----------
        order : of a store that does not keep to the spec's own order: for each
            place the number of the source in the spec.
        """
        faults = {grid.fault: model.faults[grid.fault] for grid in grids}
        made = [
            source
            for grid in grids
            for source in unit_sources(
                faults[grid.fault],
                grid.along_strike,
                grid.down_dip,
                grid.shape,
                grid.components,
                edges_of(grid),
            )
        ]
        chosen = made if order is None else [made[index] for index in order]
        return cls(faults, chosen)

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def groups(self) -> list[list[int]]:
        """Positions in the store of the sources that are solved together."""
        return group_in_fours(self.sources)

    def rows(self, fault: str) -> list[int]:
        """Positions in the store of the sources of a fault."""
        return [k for k, source in enumerate(self.sources) if source.fault == fault]

    def first(self, fault: str) -> UnitSource:
        """Return a source of a fault, whose grid and edges all of them share."""
        return next(source for source in self.sources if source.fault == fault)

    def table(self, model: Model) -> SourceTable:
        """Return what the store says of the sources."""
        names, count = list(model.faults), len(self)
        on_earth = placed(model)
        position, area, rigidity = (
            np.empty((count, 3)),
            np.empty(count),
            np.empty(count),
        )
        for name, fault in self.faults.items():
            rows = self.rows(name)
            own = [self.sources[row] for row in rows]
            found = source_integrals(own, fault, model.mesh, model.materials)
            position[rows], area[rows] = found.position, found.area
            rigidity[rows] = found.rigidity
            if on_earth is not model:
                # places stay those of the plane, where they have a depth
                mesh = on_earth.mesh
                found = source_integrals(own, fault, mesh, model.materials)
                area[rows], rigidity[rows] = found.area, found.rigidity
        return SourceTable(
            faults=names,
            fault=np.array([names.index(s.fault) for s in self.sources]),
            component=np.array(
                [SLIP_COMPONENTS.index(s.component) for s in self.sources]
            ),
            patch=np.array([s.patch for s in self.sources]),
            position=position,
            area=area,
            rigidity=rigidity,
        )

    def describe(self, table: SourceTable) -> list[dict[str, Any]]:
        """Say of each source what a person asks first."""
        return [
            {
                "fault": source.fault,
                "component": source.component,
                "patch": [int(k) for k in source.patch],
                "position_km": [round(float(v) / 1e3, 3) for v in place],
            }
            for source, place in zip(self.sources, table.position, strict=True)
        ]

    def spacing(self, fault: str) -> tuple[float, float]:
        """Distance of neighbours along strike and down dip on a fault, m."""
        return spacing(self.first(fault), self.faults[fault])

    def notes(self) -> list[str]:
        """Say what grids the sources stand on, and what slip does at their edges."""
        return [self._note(name) for name in self.faults]

    def _note(self, name: str) -> str:
        first = self.first(name)
        a, b = (step / 1e3 for step in self.spacing(name))
        count = f"{first.counts[0]} x {first.counts[1]}"
        if first.shape == "patch":
            kind = f"{count} patches of {a:.3g} x {b:.3g} km"
        else:
            kind = f"{count} B-splines with knots {a:.3g} x {b:.3g} km apart"
        by_condition: dict[str, list[str]] = {}
        for edge, condition in self.edges(name).items():
            by_condition.setdefault(condition, []).append(edge)
        edges = "; ".join(
            f"{CONDITIONS[condition]} at {', '.join(names)}"
            for condition, names in by_condition.items()
        )
        size = element_width(self.faults[name]) / 1e3
        note = f"sources on fault {name}: {kind}, elements of {size:.3g} km; {edges}"
        if size > _COARSE * min(a, b):
            note += (
                f"; the elements are too coarse for the sources: give "
                f"mesh.size.fault of {0.5 * min(a, b):.3g} km or less, "
                "or ask for fewer sources"
            )
        return note

    def edges(self, fault: str) -> dict[str, str]:
        """Return what slip does at the top, the bottom, the start and the end."""
        edges = self.first(fault).edges
        conditions = (*edges.down(self.faults[fault]), *edges.along())
        return dict(zip(EDGES, conditions, strict=True))

    def slips_at_ground(self, fault: str) -> bool:
        """Whether slip may reach the free surface."""
        return self.faults[fault].open_top and self.edges(fault)["top"] == "free"


def edges_of(spec: schema.Sources) -> Edges:
    """Return what the slip of a spec's sources does at the edges of the fault."""
    return FREE if spec.edges is None else Edges(**spec.edges.model_dump())


def unit_slip(units: UnitSources, chosen: Sequence[int]) -> dict[str, Float]:
    """Slip of some sources, one a lane.

    Returns
    -------
    fault name → (n_fault_node, 3, n_lane) float64, m; of faults that slip in a lane.
    """
    sources = [units.sources[index] for index in chosen]
    found: dict[str, Float] = {}
    for name, fault in units.faults.items():
        lanes = [lane for lane, s in enumerate(sources) if s.fault == name]
        if not lanes:
            continue
        found[name] = np.zeros((len(fault.nodes), 3, len(sources)))
        found[name][:, :, lanes] = slips_of([sources[k] for k in lanes], fault)
    return found


def slip_on_nodes(units: UnitSources, coefficients: Float) -> dict[str, Float]:
    """Slip that coefficients make.

    Parameters
    ----------
    coefficients : (n_source,) float64, m.

    Returns
    -------
    fault name → (n_fault_node, 2) float64, m, strike and dip.
    """
    found = {}
    for name, fault in units.faults.items():
        found[name] = np.zeros((len(fault.nodes), 2))
        for rows in _patches(units, name):
            values = shape_values(units.sources[rows[0]], fault)
            for row in rows:
                column = SLIP_COMPONENTS.index(units.sources[row].component)
                found[name][:, column] += coefficients[row] * values
    return found


def unit_slip_on_nodes(units: UnitSources, name: str) -> Float:
    """(n_source, n_fault_node, 2) float64, strike and dip of each unit source.

    Parameters
    ----------
    name : of a fault of the units; sources of other faults are zero on it.
    """
    fault = units.faults[name]
    made = np.zeros((len(units), len(fault.nodes), 2))
    patches = _patches(units, name)

    def fill(start: int, stop: int) -> None:
        for rows in patches[start:stop]:
            values = shape_values(units.sources[rows[0]], fault)
            for row in rows:
                column = SLIP_COMPONENTS.index(units.sources[row].component)
                made[row, :, column] = values

    over(len(patches), fill, few=_FEW)
    return made


def _patches(units: UnitSources, name: str) -> list[list[int]]:
    """Positions of the components of each patch of a fault, which share a shape."""
    found: dict[tuple[int, int], list[int]] = {}
    for row in units.rows(name):
        found.setdefault(units.sources[row].patch, []).append(row)
    return list(found.values())
