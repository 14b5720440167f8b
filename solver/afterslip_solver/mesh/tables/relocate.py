"""Vertices of tetrahedra move to where the elements around them are better."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from afterslip_solver.jit.compiling import compiled

# the other corners of a tetrahedron: around each one they turn as around corner 0
_OTHERS = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])
# shortest step, as a share of the first one
_SHORTEST = 0.05


@compiled()
def relocate(
    vertices: Any,
    cells: Any,
    starts: Any,
    places: Any,
    moving: Any,
    free: Any,
    steps: Any,
    times: int,
) -> None:
    """Move vertices downhill in the badness of the elements around them, in place.

    An element's badness is the square of (mean square of its edges)**1.5 over its
    volume, 1 for a regular one and infinite for an inverted one.

    Parameters
    ----------
    vertices : (n_vertex, 3) float64, m.
    cells : (n_elem, 4) int64, right-handed.
    starts, places : (n_vertex + 1,) and 4 element + corner of each vertex' elements.
    moving : (n,) int64 vertex numbers, in the order in which they move.
    free : (n, 3, 3) projections of moves onto what each may do.
    steps : (n,) m, length of the first step.
    times : steps of each.
    """
    here, down, slope = np.empty(3), np.empty(3), np.empty(3)
    for k in range(len(moving)):
        own = moving[k]
        around = starts[own], starts[own + 1]
        for i in range(3):
            here[i] = vertices[own, i]
        step = steps[k]
        badness = _badness(vertices, cells, places, around, here, slope)
        for _ in range(times):
            for i in range(3):
                down[i] = -(
                    free[k, i, 0] * slope[0]
                    + free[k, i, 1] * slope[1]
                    + free[k, i, 2] * slope[2]
                )
            length = sqrt(down[0] ** 2 + down[1] ** 2 + down[2] ** 2)
            if not 0.0 < length < inf:
                break
            found = inf
            while step > _SHORTEST * steps[k]:
                for i in range(3):
                    here[i] = vertices[own, i] + step / length * down[i]
                found = _badness(vertices, cells, places, around, here, slope)
                if found < badness:
                    break
                step *= 0.4
            if not found < badness:
                break
            for i in range(3):
                vertices[own, i] = here[i]
            badness = found
            step *= 1.5


@compiled()
def _badness(
    vertices: Any,
    cells: Any,
    places: Any,
    around: Any,
    at: Any,
    slope: Any,
) -> float:
    """Sum over elements with one corner at a point; also its gradient.

    Parameters
    ----------
    around : range of these elements in places.
    """
    total = 0.0
    slope[0] = slope[1] = slope[2] = 0.0
    for n in range(around[0], around[1]):
        e, corner = places[n] // 4, places[n] % 4
        p = cells[e, _OTHERS[corner, 0]]
        q = cells[e, _OTHERS[corner, 1]]
        r = cells[e, _OTHERS[corner, 2]]
        ax, ay, az = _from(at, vertices[p])
        bx, by, bz = _from(at, vertices[q])
        cx, cy, cz = _from(at, vertices[r])
        # twice the area of the opposite face, along its normal
        nx = by * cz - bz * cy + cy * az - cz * ay + ay * bz - az * by
        ny = bz * cx - bx * cz + cz * ax - cx * az + az * bx - ax * bz
        nz = bx * cy - by * cx + cx * ay - cy * ax + ax * by - ay * bx
        # six times the volume
        volume = ax * nx + ay * ny + az * nz
        if volume <= 0.0:
            return inf
        square = (ax - bx) ** 2 + (ay - by) ** 2 + (az - bz) ** 2
        square += (bx - cx) ** 2 + (by - cy) ** 2 + (bz - cz) ** 2
        square += (cx - ax) ** 2 + (cy - ay) ** 2 + (cz - az) ** 2
        square += ax * ax + ay * ay + az * az
        square += bx * bx + by * by + bz * bz
        square += cx * cx + cy * cy + cz * cz
        badness = square**3 / (432.0 * volume * volume)
        total += badness
        near, far = 6.0 * badness / square, 2.0 * badness / volume
        slope[0] += far * nx - near * (ax + bx + cx)
        slope[1] += far * ny - near * (ay + by + cy)
        slope[2] += far * nz - near * (az + bz + cz)
    return total


@compiled()
def _from(start: Any, end: Any) -> Any:
    """Return the three components of a difference."""
    return end[0] - start[0], end[1] - start[1], end[2] - start[2]
