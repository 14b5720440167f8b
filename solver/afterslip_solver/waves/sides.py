"""What happens to waves at the sides and the bottom of the voxels.

``spring_dashpot`` takes waves out by dashpots, rho v per area, and holds the static
displacement by springs: traction -rho v du/dt - a G/R u, R from the sources. Springs of
the literature, a = 4/3 along the normal and 2/3 across it, are for forces, whose
displacement falls off with 1/R. That of slip falls off with 1/R^2: pressure in a cavity
then has a = 4, and 4 along and 2 across the normal came nearest to Okada's of what was
tried (the tests compare). ``sponge`` has the dashpots and, before them, voxels in which
motion is damped; ``free`` has no traction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.model import Float, Int
from afterslip_solver.waves.grid import Medium, VoxelGrid

Kind = Literal["spring_dashpot", "sponge", "free"]

_NORMAL, _ACROSS = 4.0, 2.0
# what a sponge reflects of waves that go through it twice
_REFLECTED = 0.02


@dataclass(frozen=True, slots=True)
class Sides:
    """How the sides and the bottom are.

    Attributes
    ----------
    cells : voxels of a sponge.
    centre : m, x, y, z of the sources, from which springs are.
    top : whether the uppermost plane is such a side too, and not the ground.
    """

    kind: Kind = "spring_dashpot"
    cells: int = 0
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    top: bool = False


@dataclass(frozen=True, slots=True)
class Dampers:
    """Dashpots and springs of rows: components of nodes.

    Attributes
    ----------
    rows : (n,) each once. dashpot : (n,) N s/m. spring : (n,) N/m.
    """

    rows: Int
    dashpot: Float
    spring: Float


def dampers(grid: VoxelGrid, medium: Medium, mass: Float, sides: Sides) -> Dampers:
    """Return the dampers of a grid.

    Parameters
    ----------
    mass : (n_node,) kg.
    """
    # of few rows, where all of them take much longer to fill and to look through
    parts = [(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))]
    faces = () if sides.kind == "free" else _faces(grid, medium, sides.top)
    for face in faces:
        distance = np.linalg.norm(_positions(grid, face.nodes) - sides.centre, axis=1)
        for c in range(3):
            along = c == face.axis
            speed = face.p if along else face.s
            spring = np.zeros(len(speed))
            if sides.kind == "spring_dashpot":
                share = _NORMAL if along else _ACROSS
                spring = share * face.rigidity / distance
            parts.append((c * grid.n_node + face.nodes, speed, spring))
    if sides.kind == "sponge":
        damping = _sponge(grid, sides, medium.speeds()[1])
        nodes = np.flatnonzero(damping)
        lost = 2.0 * mass[nodes] * damping[nodes]
        none = np.zeros(len(nodes))
        parts += [(c * grid.n_node + nodes, lost, none) for c in range(3)]
    rows, dashpot, spring = map(np.concatenate, zip(*parts, strict=True))
    rows, of = np.unique(rows, return_inverse=True)
    dashpot, spring = (
        np.bincount(of, values, len(rows)).astype(np.float64)
        for values in (dashpot, spring)
    )
    held = (dashpot + spring) > 0.0
    return Dampers(rows[held], dashpot[held], spring[held])


@dataclass(frozen=True, slots=True)
class _Face:
    """Nodes of a side with areas times impedances, kg/s, and rigidity, N."""

    axis: int
    nodes: Int
    p: Float
    s: Float
    rigidity: Float


def _faces(grid: VoxelGrid, medium: Medium, top: bool) -> Iterator[_Face]:
    nx, ny, nz = grid.shape
    number = np.arange(grid.n_node).reshape(nz, ny, nx)
    ends = [(0, 0), (0, -1), (1, 0), (1, -1), (2, 0), *([(2, -1)] if top else [])]
    for axis, end in ends:

        def cut(a: NDArray[Any], axis: int = axis, end: int = end) -> NDArray[Any]:
            side: NDArray[Any] = np.take(a, end, axis=2 - axis)
            return side.astype(np.float64)

        lam, mu, rho = cut(medium.lam), cut(medium.mu), cut(medium.rho)
        area = grid.h**2
        parts = [np.sqrt(rho * (lam + 2 * mu)), np.sqrt(rho * mu), mu]
        on_nodes = [_to_nodes(part * area).ravel() for part in parts]
        nodes = np.take(number, end, axis=2 - axis).ravel()
        yield _Face(axis, nodes, *on_nodes)


def _to_nodes(squares: Float) -> Float:
    """Give a quarter of each square's value to each of its corners."""
    found = np.zeros((squares.shape[0] + 1, squares.shape[1] + 1))
    for i in (0, 1):
        for j in (0, 1):
            rows = slice(i, i + squares.shape[0])
            found[rows, j : j + squares.shape[1]] += 0.25 * squares
    return found


def _positions(grid: VoxelGrid, nodes: Int) -> Float:
    nx, ny, _ = grid.shape
    ijk = np.stack([nodes % nx, nodes // nx % ny, nodes // (nx * ny)], axis=1)
    return np.asarray(np.array(grid.origin) + grid.h * ijk)


def _sponge(grid: VoxelGrid, sides: Sides, vp: float) -> Float:
    """(n_node,) 1/s, growing with the square of the depth in the sponge."""
    nx, ny, nz = grid.shape
    width = sides.cells
    depth = [np.maximum(0, width - _to_end(n)) for n in (nx, ny)]
    below = np.maximum(0, width - np.arange(nz))
    if sides.top:
        below = np.maximum(0, width - _to_end(nz))
    deepest = np.maximum(
        below[:, None, None], np.maximum(depth[1][:, None], depth[0][None, :])
    )
    # exp(-2 int sigma dx / vp) is what comes back of a wave that meets it head-on
    most = 1.5 * vp / (width * grid.h) * np.log(1.0 / _REFLECTED)
    return np.asarray(most * (deepest / width) ** 2).reshape(-1)


def _to_end(n: int) -> Int:
    place = np.arange(n)
    return np.minimum(place, n - 1 - place)
