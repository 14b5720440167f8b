"""Meshes that gmsh made here, for machines without it.

`storing` writes each mesh that is made into a folder, `stored` gives them back by the
sizes that are asked for. What gmsh fails on is not there, and fails again.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_common.geometry import Box
from afterslip_solver.mesh import builder
from afterslip_solver.mesh.geometry import MeshSize
from afterslip_solver.mesh.mesher import Mesher, RawMesh

# sizes of a search follow from errors, which differ in their last digits
_ALIKE = 5e-3


@contextmanager
def storing(folder: Path) -> Iterator[None]:
    """Write meshes, by their number, beside making them."""
    folder.mkdir(parents=True, exist_ok=True)

    class Keeper(Mesher):
        """Keeps what it meshed."""

        def mesh(self, layers: object) -> RawMesh:
            raw = Mesher.mesh(self, layers)
            number = len(list(folder.glob("*.npz")))
            surfaces = {f"s_{k}": v.astype(np.int32) for k, v in raw.surfaces.items()}
            np.savez_compressed(
                folder / f"{number:03d}.npz",
                vertices=raw.vertices,
                cells=raw.cells.astype(np.int32),
                key=_key(self.size, len(self.planes)),
                **surfaces,
            )
            return raw

    before, builder.Mesher = builder.Mesher, Keeper
    try:
        yield
    finally:
        builder.Mesher = before


@contextmanager
def stored(folder: Path) -> Iterator[None]:
    """Give meshes that `storing` wrote."""

    class Stored:
        """Stands for the mesher."""

        def __init__(self, box: Box, size: MeshSize) -> None:
            self.box, self.size = box, size
            self.surfaces: tuple[str, ...] = ()
            self.planes: list[float] = []

        def add_grid(self, *shape: object) -> None:
            """Take a plane, which the mesh holds already."""

        def add_spline(self, *shape: object) -> None:
            """Take a surface, which the mesh holds already."""

        def add_horizon(self, depth: float) -> None:
            """Take the bottom of a layer."""
            self.planes.append(depth)

        def mesh(self, layers: object) -> RawMesh:
            """Read the mesh of these sizes."""
            del layers
            return _read(folder, _key(self.size, len(self.planes)))

    before = builder.Mesher, builder.quiet_gmsh
    builder.Mesher, builder.quiet_gmsh = Stored, nullcontext
    try:
        yield
    finally:
        builder.Mesher, builder.quiet_gmsh = before


def _read(folder: Path, wanted: np.ndarray) -> RawMesh:
    """Read the mesh of these sizes."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as held:
            if not np.allclose(held["key"], wanted, rtol=_ALIKE):
                continue
            surfaces = {
                name[2:]: held[name].astype(np.int64)
                for name in held
                if name.startswith("s_")
            }
            cells = held["cells"].astype(np.int64)
            return RawMesh(held["vertices"], cells, surfaces)
    raise MeshError(f"{folder} holds no mesh of sizes {wanted.tolist()}")


def _key(size: MeshSize, planes: int) -> np.ndarray:
    """Sizes (m, m, 1) of a mesh and the number of planes through it."""
    return np.array([size.fault, size.far, size.growth, planes])
