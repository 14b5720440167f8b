"""Materials of voxels from layers, bodies and grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from afterslip_common.properties import PropertyGrid
from afterslip_solver.materials import Body, Layer, moduli_at
from afterslip_solver.mesh import Interface
from afterslip_solver.model import Float
from afterslip_solver.waves.grid import Medium, VoxelGrid
from afterslip_solver.waves.ground import Relief, samples


def sample_medium(
    grid: VoxelGrid,
    layers: Sequence[Layer],
    bodies: Sequence[Body] = (),
    properties: PropertyGrid | None = None,
    relief: Relief | None = None,
) -> Medium:
    """Average lam, mu and rho of eight samples in each voxel.

    Below the last layer's bottom, where voxels reach farther than the domain, that
    layer goes on. Samples above the ground have what is at the ground.

    Parameters
    ----------
    relief : of ground that is not flat; None: the ground is z = 0. Layers, bodies and
        grid are in its box.

    Raises
    ------
    MaterialError
        Materials make no sense, or a place has none.
    """
    nx, ny, nz = (n - 1 for n in grid.shape)
    depth = -grid.origin[2] + grid.h
    reaching = [*layers[:-1], _deeper(layers[-1], depth)]
    # layers alone are the same in every column
    alike = not bodies and properties is None and relief is None
    columns = (1, 1) if alike else (nx, ny)
    x, y = (samples(grid, axis)[: 2 * n] for axis, n in enumerate(columns))
    shape = (nz, columns[1], columns[0])
    lam, mu, rho = (np.empty(shape, dtype=np.float32) for _ in range(3))
    z = samples(grid, 2)
    below = [_known(body, x, y) for body in bodies]
    for k in range(nz):
        at = np.stack(np.meshgrid(z[2 * k : 2 * k + 2], y, x, indexing="ij"), -1)
        if relief is not None:
            inside = relief.box.unstretched(at[..., 0], relief.height)
            at[..., 0] = np.minimum(inside, 0.0)
        found = moduli_at(at.reshape(-1, 3)[:, ::-1], reaching, below, properties)
        for target, values in zip((lam, mu, rho), found, strict=True):
            parts = values.reshape(2, shape[1], 2, shape[2], 2)
            target[k] = parts.mean(axis=(0, 2, 4))
    if relief is not None:
        for part in (lam, mu, rho):
            part[relief.fill == 0.0] = 0.0
    return Medium(*(_whole(part, (nz, ny, nx)) for part in (lam, mu, rho)))


class _Known:
    """Depth and dip of an interface below the samples of a plane, found once."""

    def __init__(self, interface: Interface, x: Float, y: Float) -> None:
        at = np.meshgrid(y, x, indexing="ij")[::-1]
        depth, dip = interface.depth_and_dip(at[0].ravel(), at[1].ravel())
        # two samples along z have the same x and y
        self._found = np.tile(depth, 2), np.tile(dip, 2)

    def depth_and_dip(self, _x: Float, _y: Float) -> tuple[Float, Float]:
        """See `Interface.depth_and_dip`."""
        return self._found


def _known(body: Body, x: Float, y: Float) -> Body:
    return replace(body, interface=cast("Interface", _Known(body.interface, x, y)))


def _whole(part: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    return np.ascontiguousarray(np.broadcast_to(part, shape))


def _deeper(layer: Layer, depth: float) -> Layer:
    names = ("name", "vp", "vs", "rho")
    own = {name: getattr(layer, name) for name in names}
    return Layer(bottom=max(layer.bottom, depth), **own)
