"""Voxels of a campaign as one file of arrays, and back."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_common.source_time import SourceTime, tabulated
from afterslip_solver.model import Float
from afterslip_solver.waves.fault import FaultPoints
from afterslip_solver.waves.grid import Medium, VoxelGrid
from afterslip_solver.waves.ground import GroundNodes
from afterslip_workers.machine.array_files import read_arrays, write_arrays

FORMAT = 2


def _all_rock() -> NDArray[np.float32]:
    return np.zeros((0, 0, 0), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class WaveGround:
    """What all groups of a campaign share.

    Attributes
    ----------
    faults : by name.
    table : (n, 2) time, s, and share of slip of a source-time function from a file;
        no rows where the spec says it.
    stations : (n, 2) m, of the campaign; series of others are not comparable.
    quality : (2, nz - 1) Qp and Qs of planes of voxels, or of all voxels, or (2, 0):
        elastic.
    fill : share of rock of each voxel; (0, 0, 0): the ground is flat.
    nodes : where the ground is; None: it is flat.
    """

    grid: VoxelGrid
    medium: Medium
    faults: dict[str, FaultPoints]
    table: Float
    stations: Float
    quality: Float
    fill: NDArray[np.float32] = field(default_factory=_all_rock)
    nodes: GroundNodes | None = None

    @property
    def filled(self) -> Medium:
        """The materials that are marched: where there is air, with less of them."""
        return self.medium.filled(self.fill)

    @property
    def source_time(self) -> SourceTime | None:
        """The function of the file, if there is one."""
        return tabulated(*self.table.T) if len(self.table) else None


def save(path: Path, model: WaveGround) -> None:
    """Write a model; bit for bit what :func:`load` returns."""
    arrays: dict[str, Any] = {
        "format": FORMAT,
        "shape": model.grid.shape,
        "origin": model.grid.origin,
        "h": model.grid.h,
        "faults": np.array(list(model.faults)),
        "table": model.table,
        "stations": model.stations,
        "quality": model.quality,
    }
    for item in fields(Medium):
        arrays[f"medium.{item.name}"] = getattr(model.medium, item.name)
    # files of flat ground are as they were before there was another
    if model.nodes is not None:
        arrays["fill"] = model.fill
        for item in fields(GroundNodes):
            arrays[f"nodes.{item.name}"] = getattr(model.nodes, item.name)
    for number, fault in enumerate(model.faults.values()):
        for item in fields(FaultPoints):
            arrays[f"fault{number}.{item.name}"] = getattr(fault, item.name)
    with path.open("wb") as stream:
        write_arrays(stream, arrays)


def load(path: Path) -> WaveGround:
    """Read a model.

    Raises
    ------
    ValueError
        If the file is of another format; others as `read_arrays`.
    """
    found = read_arrays(path)
    if int(found["format"]) != FORMAT:
        raise ValueError(f"{path.name} has format {found['format']}, not {FORMAT}")

    def part(kind: Any, name: str) -> Any:
        own = {item.name: found[f"{name}.{item.name}"] for item in fields(kind)}
        return kind(**{n: v.item() if v.ndim == 0 else v for n, v in own.items()})

    nx, ny, nz = (int(n) for n in found["shape"])
    x, y, z = (float(value) for value in found["origin"])
    return WaveGround(
        grid=VoxelGrid((nx, ny, nz), (x, y, z), float(found["h"])),
        medium=part(Medium, "medium"),
        faults={
            str(name): part(FaultPoints, f"fault{number}")
            for number, name in enumerate(found["faults"])
        },
        table=found["table"],
        stations=found["stations"],
        quality=found["quality"],
        fill=found.get("fill", _all_rock()),
        nodes=part(GroundNodes, "nodes") if "fill" in found else None,
    )
