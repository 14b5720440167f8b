"""Slip on the faults of the mesh, for maps and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from afterslip.frame import Frame
from afterslip.physics.viscoelastic import physics
from afterslip_solver.model import Bool, FaultMesh, Float, Int, Model
from afterslip_workers.engines.variables import variable
from afterslip_workers.engines.viscoelastic.sources import (
    EDGES,
    UnitSources,
    slip_on_nodes,
    unit_slip_on_nodes,
)

if TYPE_CHECKING:
    import xarray as xr

# a second-order triangle as four flat ones: corners 0..2, midpoints 3..5
_FLAT = np.array([[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]])


class FaultSlip:
    """See `afterslip_workers.engines.base.SlipModel`."""

    def __init__(self, model: Model, units: UnitSources) -> None:
        self.model, self.units = model, units
        self.faults = list(model.faults)
        # that of a fault without sources is never used
        self.spacing = np.array(
            [
                units.spacing(name) if name in units.faults else (1.0, 1.0)
                for name in self.faults
            ]
        )
        self.open_top = np.array(
            [
                name in units.faults and units.slips_at_ground(name)
                for name in model.faults
            ]
        )

    def variables(self, frame: Frame, slip: Float) -> dict[str, xr.Variable]:
        """Describe the faults and the slip that (n_source,) coefficients, m, make."""
        on_nodes = slip_on_nodes(self.units, slip)
        made = fault_variables(self.model, frame, on_nodes, self.faults)
        units = self.units
        edges = [
            list(units.edges(name).values()) if name in units.faults else ["none"] * 4
            for name in self.faults
        ]
        meaning = {"flag_meanings": " ".join(EDGES)}
        made["fault_edge"] = variable(
            ("fault", "edge"), np.array(edges, dtype=object), meaning
        )
        return made

    def unit_slip(self) -> Float:
        """(n_source, n_fault_node, 2) float64, at the nodes of all faults."""
        units = self.units
        parts = [
            unit_slip_on_nodes(units, name)
            if name in units.faults
            else np.zeros((len(units), len(self.model.faults[name].nodes), 2))
            for name in self.faults
        ]
        return np.concatenate(parts, axis=1)

    def solver_facts(self, greens: xr.Dataset) -> dict[str, Any]:
        """Say how the Green's functions were solved, as plain values."""
        return {
            "integrator": greens.attrs.get("integrator"),
            "residual": float(greens["residual"].max()),
            "time_error": float(greens["time_error"].max()),
            "iterations": int(greens["iterations"].sum()),
            "space_error": physics.reader(greens).largest_space_error(),
        }


def flat_triangles(fault: FaultMesh) -> Int:
    """(k, 3) int64, positions in the fault's nodes of flat triangles.

    Only those with a corner inside the slipping rectangle.
    """
    local = np.searchsorted(fault.nodes, fault.triangles)
    flat = local[:, _FLAT].reshape(-1, 3)
    inner: Int = flat[inside(fault)[flat].any(axis=1)]
    return inner


def inside(fault: FaultMesh) -> Bool:
    """(n_fault_node,) bool, nodes in the slipping rectangle."""
    margin = 1e-6 * max(fault.length, fault.width)
    found: Bool = (
        (fault.along >= -margin)
        & (fault.along <= fault.length + margin)
        & (fault.down >= -margin)
        & (fault.down <= fault.width + margin)
    )
    return found


def rigidity_at_nodes(model: Model, name: str) -> Float:
    """(n_fault_node,) float64, Pa, mean over the elements that touch a node."""
    fault, split = model.faults[name], model.splits[name]
    mu = np.broadcast_to(model.materials.mu[split.elements][:, None], split.index.shape)
    split_on = split.index >= 0
    total = np.bincount(split.index[split_on], mu[split_on], minlength=len(fault.nodes))
    count = np.bincount(split.index[split_on], minlength=len(fault.nodes))
    return np.asarray(total / count)


def fault_variables(
    model: Model, frame: Frame, slip: dict[str, Float], names: Sequence[str]
) -> dict[str, xr.Variable]:
    """Describe the faults and the slip on them.

    Parameters
    ----------
    slip : fault name → (n_fault_node, 2) float64, m, strike and dip; a fault that
        is not named has none.
    names : of the faults, in the order of ``fault_index``.
    """
    parts: dict[str, list[Float]] = {}
    triangles: list[Int] = []
    first = 0
    for number, name in enumerate(names):
        fault = model.faults[name]
        xyz = model.mesh.nodes[fault.nodes]
        columns: dict[str, Any] = {
            "fault_slip": slip.get(name, np.zeros((len(fault.nodes), 2))),
            "fault_x": xyz[:, 0],
            "fault_y": xyz[:, 1],
            "fault_z": xyz[:, 2],
            "fault_along": fault.along,
            "fault_down": fault.down,
            "fault_strike": fault.strike,
            "fault_updip": fault.updip,
            "fault_rigidity": rigidity_at_nodes(model, name),
            "fault_index": np.full(len(fault.nodes), number, dtype=np.int32),
        }
        for key, values in columns.items():
            parts.setdefault(key, []).append(values)
        triangles.append(flat_triangles(fault) + first)
        first += len(fault.nodes)
    joined = {key: np.concatenate(values) for key, values in parts.items()}
    if frame.geographic:
        lon, lat = frame.to_geographic(joined["fault_x"], joined["fault_y"])
        joined.update(fault_lon=lon, fault_lat=lat)
    made = {key: _variable(key, values) for key, values in joined.items()}
    made["fault_index"].attrs["flag_meanings"] = " ".join(names)
    faults = [model.faults[name] for name in names]
    for key in ("length", "width"):
        values = np.array([getattr(fault, key) for fault in faults])
        made[f"fault_{key}"] = variable(("fault",), values, {"units": "m"})
    made["fault_triangles"] = variable(
        ("fault_triangle", "corner"), np.concatenate(triangles).astype(np.int32)
    )
    return made


_SECOND = {
    "fault_slip": "slip_component",
    "fault_strike": "component",
    "fault_updip": "component",
}
_UNITS = {
    "fault_slip": "m",
    "fault_x": "m",
    "fault_y": "m",
    "fault_z": "m",
    "fault_along": "m",
    "fault_down": "m",
    "fault_rigidity": "Pa",
    "fault_lon": "degrees_east",
    "fault_lat": "degrees_north",
}


def _variable(name: str, values: Float) -> xr.Variable:
    dims = ("fault_node", _SECOND[name]) if name in _SECOND else ("fault_node",)
    attrs = {"units": _UNITS[name]} if name in _UNITS else {}
    return variable(dims, values, attrs)
