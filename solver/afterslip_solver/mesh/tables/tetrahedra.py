"""Sizes and shapes of tetrahedra, one after the other."""

from __future__ import annotations

from typing import Any

from afterslip_solver.jit.compiling import compiled


@compiled()
def _edges(nodes: Any, cell: Any) -> Any:
    """Edges from vertex 0 to the others; nine scalars, which stay in registers."""
    o, a, b, c = cell[0], cell[1], cell[2], cell[3]
    x, y, z = nodes[o, 0], nodes[o, 1], nodes[o, 2]
    return (
        (nodes[a, 0] - x, nodes[a, 1] - y, nodes[a, 2] - z),
        (nodes[b, 0] - x, nodes[b, 1] - y, nodes[b, 2] - z),
        (nodes[c, 0] - x, nodes[c, 1] - y, nodes[c, 2] - z),
    )


@compiled()
def _cross(a: Any, b: Any) -> Any:
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


@compiled()
def _dot(a: Any, b: Any) -> float:
    return float(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


@compiled()
def six_volumes(nodes: Any, cells: Any, out: Any, start: int, stop: int) -> None:
    """Six times the signed volumes (n_elem,) of cells start..stop."""
    for e in range(start, stop):
        a, b, c = _edges(nodes, cells[e])
        out[e] = _dot(a, _cross(b, c))


@compiled()
def gradients(
    nodes: Any, cells: Any, out: Any, volume: Any, start: int, stop: int
) -> None:
    """Barycentric gradients (n_elem, 4, 3) and volumes of cells start..stop."""
    for e in range(start, stop):
        a, b, c = _edges(nodes, cells[e])
        first, second, third = _cross(b, c), _cross(c, a), _cross(a, b)
        size = _dot(a, first)
        volume[e] = size / 6.0
        for d in range(3):
            out[e, 1, d] = first[d] / size
            out[e, 2, d] = second[d] / size
            out[e, 3, d] = third[d] / size
            out[e, 0, d] = -(out[e, 1, d] + out[e, 2, d] + out[e, 3, d])


@compiled()
def centres(nodes: Any, cells: Any, out: Any, start: int, stop: int) -> None:
    """Mean (n_elem, 3) of the vertices of cells start..stop."""
    for e in range(start, stop):
        for d in range(3):
            s = 0.0
            for a in range(4):
                s += nodes[cells[e, a], d]
            out[e, d] = 0.25 * s


@compiled()
def mark_flat(
    nodes: Any, cells: Any, least: float, bad: Any, start: int, stop: int
) -> None:
    """Mark cells start..stop whose volume is not above ``least`` longest edge cubed.

    Lengths are those of the largest component of the edges from vertex 0.
    """
    for e in range(start, stop):
        a, b, c = _edges(nodes, cells[e])
        longest = 0.0
        for d in range(3):
            longest = max(longest, abs(a[d]), abs(b[d]), abs(c[d]))
        bad[e] = not (_dot(a, _cross(b, c)) / 6.0 > least * longest**3)
