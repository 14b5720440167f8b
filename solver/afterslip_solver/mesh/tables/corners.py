"""Tetrahedra by how many of their corners are chosen."""

from __future__ import annotations

from typing import Any

from afterslip_solver.jit.compiling import compiled


@compiled()
def with_corners(
    cells: Any, chosen: Any, least: int, found: Any, start: int, stop: int
) -> None:
    """Find which elements have at least so many chosen corners.

    Parameters
    ----------
    cells : (n_elem, 4+) vertex numbers. chosen : (n_vertex,) bool.
    found : (n_elem,) bool, gets the answer between start and stop.
    """
    for e in range(start, stop):
        count = 0
        for corner in range(4):
            if chosen[cells[e, corner]]:
                count += 1
        found[e] = count >= least
