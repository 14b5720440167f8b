"""Surface displacement of an arbitrary slip distribution in a half-space.

By reciprocity the displacement u_k at a surface point due to a slip s on a small
area A with normal n equals A s . sigma^k n, where sigma^k is the stress that a unit
force k at that point makes at the source (Boussinesq 1885 for the vertical,
Cerruti 1882 for the horizontal forces). Nothing here is shared with Okada's
formulas, so each verifies the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from afterslip_solver.jit.compiling import compiled
from afterslip_solver.model import Float, Int

# degree 5, 7 points (Radon 1948): barycentric coordinates and weights (sum 1)
_A, _B = (6 - np.sqrt(15)) / 21, (6 + np.sqrt(15)) / 21
_WA, _WB = (155 - np.sqrt(15)) / 1200, (155 + np.sqrt(15)) / 1200
QUADRATURE_POINTS = np.array(
    [[1 / 3, 1 / 3, 1 / 3]]
    + [
        [1 - 2 * c if i == j else c for j in range(3)]
        for c in (_A, _B)
        for i in range(3)
    ]
)
_DOWN = np.array([1.0, 1.0, -1.0])  # z up to z down and back
QUADRATURE_WEIGHTS = np.array([9 / 40, *[_WA] * 3, *[_WB] * 3])


@dataclass(frozen=True, slots=True)
class PointSources:
    """Slip concentrated at points.

    Attributes
    ----------
    position : (n_source, 3) float64, m, x, y, z with z < 0.
    potency : (n_source, 3) float64, m3, slip vector u(+) - u(-) times area.
    normal : (n_source, 3) float64, unit normal that points into the + side.
    """

    position: Float
    potency: Float
    normal: Float


@compiled()
def _add_responses(
    points: Any,
    position: Any,
    moment: Any,
    pairs_p: Any,
    pairs_s: Any,
    each: int,
    factor: float,
    out: Any,
) -> None:
    """Add the work of unit surface forces on moments, times 4 pi mu.

    In axes x, y, and z *down* from the force k the displacement is
    delta_ik/R + x_i x_k/R^3 + (1-2 nu) e_i chi_,ik with e = (-1, -1, 1) and
    chi = z ln(R+z) - R (both classical solutions written as one). Its gradient
    contracted with a symmetric moment leaves what is below.

    Parameters
    ----------
    points : (n_point, 2) m. position : (n_source, 3) m, z down.
    moment : (n_source, 6) m3, xx, yy, zz, xy, xz, yz.
    pairs_p, pairs_s : (n_pair,) point of each pair, and its group of sources.
    each : number of sources in a group, which follow each other.
    factor : 1 - 2 nu. out : (n_point, 3) along x, y and down.
    """
    for work in range(each * len(pairs_p)):
        p = pairs_p[work // each]
        s = each * pairs_s[work // each] + work % each
        x = position[s, 0] - points[p, 0]
        y = position[s, 1] - points[p, 1]
        z = position[s, 2]
        xx, yy, zz = moment[s, 0], moment[s, 1], moment[s, 2]
        xy, xz, yz = moment[s, 3], moment[s, 4], moment[s, 5]
        r = 1.0 / np.sqrt(x * x + y * y + z * z)
        q = 1.0 / (1.0 / r + z)
        r2, r3 = r * r, r * r * r
        ax, ay = xx * x + xy * y, xy * x + yy * y
        flat, plane = xx + yy, ax * x + ay * y
        form = plane + zz * z * z + 2.0 * z * (xz * x + yz * y)
        kelvin = (flat + zz) * r3 - 3.0 * form * r3 * r2
        side = plane * (r3 * q * q + 2.0 * r2 * q * q * q) - flat * r * q * q
        side -= zz * r3
        down = plane * (r3 * q + r2 * q * q) - flat * r * q - zz * z * r3
        twice = 2.0 * r * q * q
        out[p, 0] += kelvin * x + factor * (side * x - twice * ax)
        out[p, 1] += kelvin * y + factor * (side * y - twice * ay)
        out[p, 2] += kelvin * z + factor * down


def _moments(sources: PointSources, poisson: float) -> tuple[Float, Float]:
    """Positions and moments over mu, both with z down."""
    if not -1.0 < poisson < 0.5:
        raise ValueError(f"Poisson's ratio must be in (-1, 0.5), not {poisson}")
    if (sources.position[:, 2] >= 0.0).any():
        raise ValueError("a point source must lie below the surface (z < 0)")
    slip, normal = sources.potency * _DOWN, sources.normal * _DOWN
    moment = slip[:, :, None] * normal[:, None, :]
    moment = moment + moment.transpose(0, 2, 1)
    opening = 2.0 * poisson / (1.0 - 2.0 * poisson) * (slip * normal).sum(axis=1)
    moment = moment + opening[:, None, None] * np.eye(3)
    six = moment[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return sources.position * _DOWN, np.ascontiguousarray(six)


def _add_pairs(
    out: Float,
    points: Float,
    sources: PointSources,
    pairs: tuple[Int, Int],
    each: int,
    nu: float,
) -> None:
    """Add the responses of pairs (point, group of sources) to out (n_point, 3)."""
    position, moment = _moments(sources, nu)
    points = np.ascontiguousarray(points, dtype=np.float64)
    _add_responses(points, position, moment, *pairs, each, 1.0 - 2.0 * nu, out)


def point_source_surface(
    points: Float, sources: PointSources, poisson: float = 0.25
) -> Float:
    """Displacement of the surface, summed over point sources.

    Parameters
    ----------
    points : (n_point, 2) float64, m.
    sources : positions and potencies.
    poisson : Poisson's ratio, below 0.5.

    Returns
    -------
    (n_point, 3) float64, m, east, north, up.
    """
    pairs = np.indices((len(points), len(sources.position))).reshape(2, -1)
    result = np.zeros((len(points), 3))
    _add_pairs(result, points, sources, (pairs[0], pairs[1]), 1, poisson)
    return np.asarray(result * _DOWN / (4.0 * np.pi))


def triangle_sources(corners: Float, slip: Float) -> PointSources:
    """Seven point sources at the quadrature points (degree 5) of each triangle.

    Their sum holds where points are some three edges away from every triangle; use
    `dislocation_surface` for points that are closer.

    Parameters
    ----------
    corners : (n_tri, 3, 3) float64, m, right-hand normal into the + side.
    slip : (n_tri, 6, 3) float64, m, at the vertices and the midpoints of
        (0,1), (1,2), (2,0).
    """
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    double = np.linalg.norm(cross, axis=1)
    weights = QUADRATURE_WEIGHTS[None, :] * double[:, None] / 2.0
    values = np.einsum("qa,tax->tqx", _p2_shape(QUADRATURE_POINTS), slip)
    position = np.einsum("qv,tvx->tqx", QUADRATURE_POINTS, corners)
    normal = np.repeat(cross / double[:, None], len(QUADRATURE_WEIGHTS), axis=0)
    return PointSources(
        position=position.reshape(-1, 3),
        potency=(values * weights[:, :, None]).reshape(-1, 3),
        normal=normal,
    )


def dislocation_surface(
    points: Float,
    corners: Float,
    slip: Float,
    poisson: float = 0.25,
    ratio: float = 2.0,
) -> Float:
    """Surface displacement of P2 slip on triangles.

    A triangle is split in four (at most ten times) for those points that are
    closer than ``ratio`` times its longest edge. On that scale the kernel is
    smooth, and the quadrature of degree 5 leaves about (2 ratio)^-6 of the
    triangle's own part.

    Parameters
    ----------
    points : (n_point, 2) float64, m. On the trace of a fault that breaks the
        surface the displacement is singular or double-valued: leave such points out.
    corners, slip : as for `triangle_sources`.

    Returns
    -------
    (n_point, 3) float64, m, east, north, up.
    """
    result = np.zeros((len(points), 3))
    surface = np.column_stack((points, np.zeros(len(points))))
    triangle = np.repeat(np.arange(len(corners)), len(points))
    point = np.tile(np.arange(len(points)), len(corners))
    n_quadrature = len(QUADRATURE_WEIGHTS)
    for level in range(11):
        size = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
        distance = np.linalg.norm(
            surface[point] - corners.mean(axis=1)[triangle], axis=1
        )
        near = (distance < ratio * size[triangle]) & (level < 10)
        sources = triangle_sources(corners, slip)
        far = point[~near], triangle[~near]
        _add_pairs(result, points, sources, far, n_quadrature, poisson)
        used, inverse = np.unique(triangle[near], return_inverse=True)
        if not len(used):
            break
        corners, slip = _split(corners[used], slip[used])
        # child c of used triangle k is number c * len(used) + k
        triangle = (inverse[:, None] + len(used) * np.arange(4)).ravel()
        point = np.repeat(point[near], 4)
    return np.asarray(result * _DOWN / (4.0 * np.pi))


def _p2_shape(barycentric: Float) -> Float:
    """(n, 6) values of the P2 functions of a triangle."""
    a, b, c = barycentric.T
    return np.column_stack(
        (
            a * (2 * a - 1),
            b * (2 * b - 1),
            c * (2 * c - 1),
            4 * a * b,
            4 * b * c,
            4 * c * a,
        )
    )


_NODES = np.array(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]]
)
_CHILDREN: Int = np.array([[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]])


def _split(corners: Float, slip: Float) -> tuple[Float, Float]:
    """Four similar triangles each, with the same P2 slip."""
    parts = []
    for child in _CHILDREN:
        own = _NODES[child]
        values = _p2_shape(_NODES @ own)
        parts.append(
            (
                np.einsum("ab,tbx->tax", own, corners),
                np.einsum("ab,tbx->tax", values, slip),
            )
        )
    return np.concatenate([c for c, _ in parts]), np.concatenate([s for _, s in parts])
