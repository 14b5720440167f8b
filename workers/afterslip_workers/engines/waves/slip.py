"""Slip on the faults of a campaign of waves, for maps, tables and ruptures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from afterslip.frame import Frame
from afterslip_common.source_time import SourceTime
from afterslip_solver.model import Float, Int
from afterslip_solver.sources import spacing
from afterslip_solver.waves.fault import FaultPoints
from afterslip_solver.waves.loads import rigidity_at
from afterslip_workers.engines.variables import variable
from afterslip_workers.engines.waves.model_file import WaveGround
from afterslip_workers.engines.waves.sources import WaveSources

if TYPE_CHECKING:
    import xarray as xr

_EDGES = "top bottom start end"
_METRES = ("slip", "x", "y", "z", "along", "down")
_VECTORS = {"slip": "slip_component", "strike": "component", "updip": "component"}
_STATED = ("frequency_hz", "voxel_m", "source_time")


class WaveSlip:
    """See `afterslip_workers.engines.base.RuptureModel`.

    Nodes are the middles of the fault's cells; the outermost ones lie on its edges.
    """

    def __init__(
        self, ground: WaveGround, units: WaveSources, function: SourceTime
    ) -> None:
        self.ground, self.units = ground, units
        self.share, self.rise = function, function.end
        self.faults = list(ground.faults)
        first, own = units.sources[0], units.fault
        mine = [name == own.name for name in self.faults]
        # that of a fault without sources is never used
        self.spacing = np.array(
            [spacing(first, own) if is_own else (1.0, 1.0) for is_own in mine]
        )
        free = own.open_top and first.edges.down(own)[0] == "free"
        self.open_top = np.array([is_own and free for is_own in mine])

    def variables(self, frame: Frame, slip: Float) -> dict[str, xr.Variable]:
        """Describe the faults and the slip that (n_source,) coefficients, m, make."""
        parts: dict[str, list[Any]] = {}
        triangles, first = [], 0
        for number, fault in enumerate(self.ground.faults.values()):
            for key, values in self._columns(number, fault, slip).items():
                parts.setdefault(key, []).append(values)
            triangles.append(_triangles(fault) + first)
            first += len(fault.along)
        joined = {key: np.concatenate(values) for key, values in parts.items()}
        made = {f"fault_{key}": _variable(key, v) for key, v in joined.items()}
        made["fault_index"].attrs["flag_meanings"] = " ".join(self.faults)
        if frame.geographic:
            places = frame.to_geographic(joined["x"], joined["y"])
            for key, values, unit in zip(
                ("lon", "lat"), places, ("east", "north"), strict=True
            ):
                units = {"units": f"degrees_{unit}"}
                made[f"fault_{key}"] = variable(("fault_node",), values, units)
        made["fault_triangles"] = variable(
            ("fault_triangle", "corner"), np.concatenate(triangles).astype(np.int32)
        )
        return made | self._of_faults()

    def _columns(self, number: int, fault: FaultPoints, slip: Float) -> dict[str, Any]:
        position, along, down = _nodes(fault)
        own = fault.name == self.units.fault.name
        at = fault.position
        return {
            "slip": np.tensordot(slip, self._unit_slip(), axes=1)
            if own
            else np.zeros((len(along), 2)),
            **dict(zip("xyz", position.T, strict=True)),
            "along": along,
            "down": down,
            "strike": fault.strike,
            "updip": fault.updip,
            "rigidity": rigidity_at(self.ground.grid, self.ground.medium, at),
            "index": np.full(len(along), number, dtype=np.int32),
        }

    def _of_faults(self) -> dict[str, xr.Variable]:
        """Sizes and edges, fault by fault."""
        faults, own = self.ground.faults.values(), self.units.fault
        edges = self.units.sources[0].edges
        conditions = [*edges.down(own), *edges.along()]
        table = [
            conditions if fault.name == own.name else ["none"] * 4 for fault in faults
        ]
        made = {
            f"fault_{key}": variable(
                ("fault",), np.array([getattr(f, key) for f in faults]), {"units": "m"}
            )
            for key in ("length", "width")
        }
        made["fault_edge"] = variable(
            ("fault", "edge"), np.array(table, dtype=object), {"flag_meanings": _EDGES}
        )
        return made

    def unit_slip(self) -> Float:
        """(n_source, n_fault_node, 2) float64, at the nodes of all faults."""
        own = self.units.fault.name
        parts = [
            self._unit_slip()
            if name == own
            else np.zeros((len(self.units), len(fault.along), 2))
            for name, fault in self.ground.faults.items()
        ]
        return np.concatenate(parts, axis=1)

    def _unit_slip(self) -> Float:
        """(n_source, n_node, 2) float64, on the fault that slips."""
        units = self.units
        made = np.zeros((len(units), len(units.fault.along), 2))
        for row, source in enumerate(units.sources):
            component = 0 if source.component == "strike" else 1
            made[row, :, component] = units.share_of(row)
        return made

    def solver_facts(self, greens: xr.Dataset) -> dict[str, Any]:
        """Say how the waves were followed, as plain values."""
        attrs: Mapping[str, Any] = greens.attrs
        return {key: attrs[key] for key in _STATED if key in attrs}


def _counts(fault: FaultPoints) -> tuple[int, int]:
    """Return how many cells there are along strike and down dip."""
    counts = np.rint(np.array([fault.length, fault.width]) / fault.cell)
    return int(counts[0]), int(counts[1])


def _nodes(fault: FaultPoints) -> tuple[Float, Float, Float]:
    """Return positions (n, 3), along and down (n,), with the outermost on the edges."""
    n, m = _counts(fault)
    grid = np.column_stack([fault.position, fault.along, fault.down]).reshape(m, n, 5)
    grid = grid.copy()
    for axis in (0, 1):
        view = np.moveaxis(grid, axis, 0)
        first, last = view[0] - view[1], view[-1] - view[-2]
        view[0] += 0.5 * first
        view[-1] += 0.5 * last
    flat = grid.reshape(-1, 5)
    return flat[:, :3], flat[:, 3], flat[:, 4]


def _triangles(fault: FaultPoints) -> Int:
    """(k, 3) int64, two for each four neighbouring nodes."""
    n, m = _counts(fault)
    corner = (np.arange(m - 1)[:, None] * n + np.arange(n - 1)).ravel()
    first = np.stack([corner, corner + 1, corner + n], axis=1)
    second = np.stack([corner + 1, corner + n + 1, corner + n], axis=1)
    return np.concatenate([first, second])


def _variable(name: str, values: Float) -> xr.Variable:
    dims = ("fault_node", _VECTORS[name]) if name in _VECTORS else ("fault_node",)
    unit = "Pa" if name == "rigidity" else "m" if name in _METRES else None
    return variable(dims, values, {"units": unit} if unit else {})
