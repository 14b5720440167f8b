"""Surface displacement of an arbitrary slip distribution in a half-space.

By reciprocity the displacement u_k at a surface point due to a slip s on a small
area A with normal n equals A s . sigma^k n, where sigma^k is the stress that a unit
force k at that point makes at the source (Boussinesq 1885 for the vertical,
Cerruti 1882 for the horizontal forces). Nothing here is shared with Okada's
formulas, so each verifies the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

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


def _surface_force_gradient(x: Float, y: Float, depth: Float, poisson: float) -> Float:
    """Gradient of the displacement of unit surface forces, times 4 pi mu.

    Axes x, y, and z *down*. Displacement of force k is
    delta_ik/R + x_i x_k/R^3 + (1-2 nu) e_i chi_,ik with e = (-1, -1, 1) and
    chi = z ln(R+z) - R (both classical solutions written as one).

    Returns
    -------
    (..., 3, 3, 3): component i, derivative j, force k.
    """
    X = np.stack((x, y, depth), axis=-1)
    R = np.sqrt((X * X).sum(axis=-1))
    S = R + depth
    eye = np.eye(3)
    distance = R[..., None, None, None]
    third = _chi_third(X, R, S)
    sign = np.array([-1.0, -1.0, 1.0])[:, None, None]
    i, j, k = X[..., :, None, None], X[..., None, :, None], X[..., None, None, :]
    kelvin = (
        -eye[:, None, :] * j + eye[:, :, None] * k + eye[None, :, :] * i
    ) / distance**3 - 3.0 * i * j * k / distance**5
    return np.asarray(kelvin + (1.0 - 2.0 * poisson) * sign * third)


def _chi_third(X: Float, R: Float, S: Float) -> Float:
    """Third derivatives of z ln(R+z) - R, (..., 3, 3, 3)."""
    third = np.zeros((*R.shape, 3, 3, 3))
    T = 1.0 / (R**3 * S**2) + 2.0 / (R**2 * S**3)
    for a in range(2):
        for b in range(2):
            plane = -X[..., a] * X[..., b] * (1 / (R**3 * S) + 1 / (R**2 * S**2))
            plane = plane + (a == b) / (R * S)
            for index in ((a, b, 2), (a, 2, b), (2, a, b)):
                third[(..., *index)] = plane
            for c in range(2):
                linear = (a == b) * X[..., c] + (a == c) * X[..., b]
                linear = linear + (b == c) * X[..., a]
                third[..., a, b, c] = (
                    linear / (R * S**2) - X[..., a] * X[..., b] * X[..., c] * T
                )
        for index in ((a, 2, 2), (2, a, 2), (2, 2, a)):
            third[(..., *index)] = -X[..., a] / R**3
    third[..., 2, 2, 2] = -X[..., 2] / R**3
    return third


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
    if not -1.0 < poisson < 0.5:
        raise ValueError(f"Poisson's ratio must be in (-1, 0.5), not {poisson}")
    if (sources.position[:, 2] >= 0.0).any():
        raise ValueError("a point source must lie below the surface (z < 0)")
    flip = np.array([1.0, 1.0, -1.0])  # z up to z down, for both vectors
    slip, normal = sources.potency * flip, sources.normal * flip
    trace = 2.0 * poisson / (1.0 - 2.0 * poisson)
    # stress contracted with the moment needs only gradient : M / mu
    moment = slip[:, :, None] * normal[:, None, :]
    moment = moment + moment.transpose(0, 2, 1)
    moment = moment + trace * (slip * normal).sum(1)[:, None, None] * np.eye(3)
    result = np.zeros((len(points), 3))
    size = max(1, 200_000 // max(1, len(points)))
    for start in range(0, len(slip), size):
        part = slice(start, start + size)
        position = sources.position[part]
        gradient = _surface_force_gradient(
            position[None, :, 0] - points[:, None, 0],
            position[None, :, 1] - points[:, None, 1],
            np.broadcast_to(-position[None, :, 2], (len(points), len(position))),
            poisson,
        )
        result += np.einsum("psijk,sij->pk", gradient, moment[part], optimize=True)
    return np.asarray(result * flip / (4.0 * np.pi))


def triangle_sources(
    corners: Float, slip: Float, points: Float | None = None, ratio: float = 3.0
) -> PointSources:
    """Point sources at quadrature points of triangles with P2 slip.

    Each triangle is split in four until it is ``ratio`` times smaller than its
    distance to the nearest of ``points`` (at most eight times). Seven points of
    degree 5 in each then integrate the kernel, which is smooth on the scale of that
    distance, to about (2 ratio)^-6 of the triangle's own contribution. Without
    ``points`` nothing is split and the sum holds beyond about three edges.

    Parameters
    ----------
    corners : (n_tri, 3, 3) float64, m, right-hand normal into the + side.
    slip : (n_tri, 6, 3) float64, m, at the vertices and the midpoints of
        (0,1), (1,2), (2,0).
    points : (n_point, 2) float64, m, on the surface.
    """
    corners, slip = np.asarray(corners), np.asarray(slip)
    done: list[tuple[Float, Float]] = []
    if points is not None:
        tree = KDTree(np.column_stack((points, np.zeros(len(points)))))
        for _ in range(8):
            size = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(1)
            near = tree.query(corners.mean(axis=1))[0] < ratio * size
            done.append((corners[~near], slip[~near]))
            corners, slip = _split(corners[near], slip[near])
            if not len(corners):
                break
    done.append((corners, slip))
    return _at_quadrature(
        np.concatenate([c for c, _ in done]), np.concatenate([s for _, s in done])
    )


def dislocation_surface(
    points: Float,
    corners: Float,
    slip: Float,
    poisson: float = 0.25,
    ratio: float = 3.0,
) -> Float:
    """Surface displacement of P2 slip on triangles.

    Parameters are those of `triangle_sources` and `point_source_surface`. Points
    that lie on the trace of a surface-breaking fault are singular: leave out those
    within about an element of it.

    Returns
    -------
    (n_point, 3) float64, m, east, north, up.
    """
    sources = triangle_sources(corners, slip, points, ratio)
    return point_source_surface(points, sources, poisson)


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


def _at_quadrature(corners: Float, slip: Float) -> PointSources:
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
