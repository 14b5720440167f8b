"""Shear dislocations in a layered viscoelastic half-space, by wavenumber and frequency.

Elastic solutions are found per horizontal wavenumber, as in Thomson-Haskell theory
(static sources: Singh 1970, Bull. Seism. Soc. Am. 60, 1681-1702; viscoelastic: Wang,
Lorenzo-Martin and Roth 2006, Computers & Geosciences 32, 527-541), but with all layers
in one linear system of solutions that decay away from their own boundary, which stays
well conditioned for any thickness. The surface's motion is summed over wavenumbers by
Gauss-Legendre quadrature. Viscoelastic layers follow by the correspondence principle,
mu -> mu(p) with the same bulk modulus; the transform is inverted on the parabola of
Weideman and Trefethen (2007, Math. Comput. 76, 1341-1356), right because all
singularities lie on the negative real axis. No gravity. Derived here from the equations
of equilibrium: nothing is shared with the half-space formulas or the finite elements.

In axes 1 (along the wave), 2 and z down, motion is u_z = U, u_1 = i V, u_2 = W and
traction on horizontal planes P, i Q, T, all times exp(i k x_1). States are (U, V, P, Q)
and (W, T), tractions over mu_0 k with mu_0 of the top layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import jv

from afterslip_solver.model import Float
from afterslip_solver.reference.halfspace import PointSources

Complex = NDArray[np.complexfloating[Any, Any]]
# nodes of the contour: the error is about 2.85^-N
_CONTOUR = 16
# wavenumbers up to this over the source's depth: exp(-26) is left
_REACH = 26.0
_PANELS = np.array([0.0, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0]) / 1024.0


@dataclass(frozen=True, slots=True)
class Stratum:
    """One layer.

    Attributes
    ----------
    bottom : m, depth; inf for the half-space.
    lam, mu : Pa. viscosity : Pa s of the Maxwell dashpot, inf where elastic.
    """

    bottom: float
    lam: float
    mu: float
    viscosity: float = float("inf")

    def moduli(self, p: Complex) -> tuple[Complex, Complex]:
        """Lamé parameters at Laplace variables (1/s), the bulk modulus stays; Pa."""
        mu = np.asarray(self.mu * p / (p + self.mu / self.viscosity), dtype=p.dtype)
        lam = np.asarray(self.lam + 2.0 / 3.0 * (self.mu - mu), dtype=p.dtype)
        return lam, mu


def layered_displacement(
    points: Float, sources: PointSources, strata: Sequence[Stratum], times: Float
) -> Float:
    """Displacement of the surface by shear dislocations that appear at t = 0.

    Cost grows with the number of different source depths, and with the largest
    distance over the smallest depth.

    Parameters
    ----------
    points : (n_point, 2) m.
    sources : potencies at right angles to their normals, none on a boundary of layers.
    strata : layers from the top, the last one with ``bottom`` inf.
    times : (n_time,) s, 0 for the elastic response.

    Returns
    -------
    (n_time, n_point, 3) m, east, north, up. Raises ValueError for opening.
    """
    opening = np.abs((sources.potency * sources.normal).sum(axis=1))
    if (opening > 1e-9 * np.linalg.norm(sources.potency, axis=1)).any():
        raise ValueError("only shear dislocations are known here, not opening")
    points, times = np.asarray(points), np.asarray(times, dtype=np.float64)
    result = np.zeros((len(times), len(points), 3))
    depths = np.round(-sources.position[:, 2], 6)
    for depth in np.unique(depths):
        which = np.flatnonzero(depths == depth)
        offset = points[:, None] - sources.position[None, which, :2]
        reach = float(np.linalg.norm(offset, axis=2).max())
        table = _table(strata, float(depth), times, reach)
        for number, source in enumerate(which):
            result += _one(
                table,
                offset[:, number],
                sources.potency[source],
                sources.normal[source],
            )
    return result


def _one(table: CubicSpline, offset: Float, potency: Float, normal: Float) -> Float:
    """(n_time, n_point, 3) of one source, east, north, up."""
    r = np.linalg.norm(offset, axis=1)
    cos, sin = (offset / np.maximum(r, 1e-9)[:, None]).T
    # z down for the tensor
    slip, face = potency * [1, 1, -1], normal * [1, 1, -1]
    m = np.outer(slip, face) + np.outer(face, slip)
    total = 0.5 * (m[0, 0] + m[1, 1])
    half = 0.5 * (m[0, 0] - m[1, 1])
    cos2, sin2 = cos**2 - sin**2, 2.0 * cos * sin
    d, e = half * cos2 + m[0, 1] * sin2, m[0, 1] * cos2 - half * sin2
    rz, tz = m[0, 2] * cos + m[1, 2] * sin, m[1, 2] * cos - m[0, 2] * sin
    f = table(r).transpose(1, 2, 0)
    zz = m[2, 2]
    down = f[0] * zz + f[1] * total + f[2] * d + f[3] * rz
    out = f[4] * zz + f[5] * total + f[6] * d + f[7] * rz
    turn = f[8] * e + f[9] * tz
    return np.stack((out * cos - turn * sin, out * sin + turn * cos, -down), axis=-1)


def _table(
    strata: Sequence[Stratum], depth: float, times: Float, reach: float
) -> CubicSpline:
    """Ten functions of distance: spline of (n_r, 10, n_time), 1/m2.

    Vertical by M_zz, S, D, M_rz; radial by the same; transverse by E, M_tz, with
    S, D = (M_rr +- M_tt) / 2 and E = M_rt, all over the source's shear modulus.
    """
    k, weights = _wavenumbers(_REACH / depth, reach)
    parts = [_at_time(strata, depth, k, float(t)) for t in times]
    zz, s, rz = (np.stack([p[i] for p in parts]) for i in range(3))
    w_tz, w_e = (np.stack([p[i] for p in parts])[..., 0] for i in (3, 4))
    r = depth * np.sinh(np.linspace(0.0, np.arcsinh(1.01 * reach / depth), 160))
    j0, j1, j2, j3 = (jv(n, r[:, None] * k) * (weights * k) for n in range(4))
    u, v = 0, 1
    rows = [
        zz[..., u] @ j0.T,
        s[..., u] @ j0.T,
        -s[..., u] @ j2.T,
        rz[..., u] @ j1.T,
        -zz[..., v] @ j1.T,
        -s[..., v] @ j1.T,
        -0.5 * (s[..., v] @ (j1 - j3).T + w_e @ (j1 + j3).T),
        0.5 * (rz[..., v] @ (j0 - j2).T + w_tz @ (j0 + j2).T),
        -0.5 * (s[..., v] @ (j1 + j3).T + w_e @ (j1 - j3).T),
        0.5 * (rz[..., v] @ (j0 + j2).T + w_tz @ (j0 - j2).T),
    ]
    values = np.stack(rows) / (2.0 * np.pi)
    return CubicSpline(r, values.transpose(2, 0, 1))


def _wavenumbers(largest: float, reach: float) -> tuple[Float, Float]:
    """Gauss-Legendre nodes and weights, dense enough for J(k r) at the reach."""
    nodes, weights = [], []
    for low, high in zip(largest * _PANELS[:-1], largest * _PANELS[1:], strict=True):
        x, w = np.polynomial.legendre.leggauss(16 + int(0.6 * (high - low) * reach))
        nodes.append(low + 0.5 * (high - low) * (x + 1.0))
        weights.append(0.5 * (high - low) * w)
    return np.concatenate(nodes), np.concatenate(weights)


def _at_time(
    strata: Sequence[Stratum], depth: float, k: Float, time: float
) -> list[Float]:
    """Kernels after a step at t = 0: zz, s, rz (n_k, 2), tz, e (n_k, 1)."""
    if time == 0.0:
        instant = np.array([1e30], dtype=np.complex128)
        return [kernel[0].real for kernel in surface_kernels(strata, depth, k, instant)]
    theta = np.pi * (2.0 * np.arange(_CONTOUR // 2) + 1.0) / _CONTOUR
    z = _CONTOUR * (0.1309 - 0.1194 * theta**2 + 0.25j * theta)
    slope = _CONTOUR * (-0.2388 * theta + 0.25j)
    # 1/p of the step is t/z
    factor = 2.0 * np.exp(z) / z * slope / (1j * _CONTOUR)
    return [
        np.einsum("p,pkx->kx", factor, kernel).real
        for kernel in surface_kernels(strata, depth, k, np.asarray(z / time, complex))
    ]


def surface_kernels(
    strata: Sequence[Stratum], depth: float, k: Float, p: Complex
) -> list[Complex]:
    """Motion of the surface per wavenumber, for unit moment over mu(p) at the source.

    A moment M_ij is the body force -d_j (M_ij delta). In the equations of first order
    in z it makes the state jump: [U] = M_zz / (lam + 2 mu), [V] = -i M_1z / mu,
    [Q] = k (M_11 - lam / (lam + 2 mu) M_zz), [W] = M_2z / mu, [T] = i k M_12.

    Parameters
    ----------
    depth : m, of the source. k : (n_k,) 1/m. p : (n_p,) 1/s.

    Returns
    -------
    (U, V) of M_zz, of M_11 and of M_1z (over -i), (n_p, n_k, 2); W of M_2z and of
    M_12 (over i), (n_p, n_k, 1).
    """
    unit = strata[0].mu
    parts: list[tuple[float, Complex, Complex]] = []
    top, lower = 0.0, 0
    jumps = np.zeros((len(p), 4, 3), dtype=np.complex128)
    turns = np.zeros((len(p), 2, 2), dtype=np.complex128)
    for layer in strata:
        lam, mu = (modulus / unit for modulus in layer.moduli(p))
        if top < depth < layer.bottom:
            parts.append((depth - top, lam, mu))
            top, lower = depth, len(parts)
            jumps[:, 0, 0] = mu / (lam + 2.0 * mu)
            jumps[:, 3, 0] = -lam / (lam + 2.0 * mu) * mu
            jumps[:, 3, 1] = mu
            jumps[:, 1, 2] = 1.0
            turns[:, 0, 0] = 1.0
            turns[:, 1, 1] = mu
        parts.append((layer.bottom - top, lam, mu))
        top = layer.bottom
    if lower == 0:
        raise ValueError(f"a source at {depth:g} m lies on a boundary of layers")
    plane = _surface(parts, lower, k, jumps, _plane)
    across = _surface(parts, lower, k, turns, _antiplane)
    return [plane[..., j] for j in range(3)] + [across[..., j] for j in range(2)]


def _surface(
    parts: list[tuple[float, Complex, Complex]],
    lower: int,
    k: Float,
    jumps: Complex,
    basis: Any,
) -> Complex:
    """(n_p, n_k, n_motion, n_source) at the surface; jumps at the top of part lower."""
    size = jumps.shape[1]
    half, n = size // 2, size * len(parts) - size // 2
    matrix = np.zeros((len(jumps), len(k), n, n), dtype=np.complex128)
    right = np.zeros((len(jumps), len(k), n, jumps.shape[2]), dtype=np.complex128)
    top: Any = None
    for number, (thick, lam, mu) in enumerate(parts):
        last = number == len(parts) - 1
        columns = slice(size * number, size * number + (half if last else size))
        state = basis(k, 0.0, thick, lam, mu)
        if number == 0:
            top = state
            matrix[:, :, :half, columns] = state[:, :, half:]
        else:
            rows = slice(size * number - half, size * number + half)
            matrix[:, :, rows, columns] = state
        if not last:
            rows = slice(size * number + half, size * (number + 1) + half)
            matrix[:, :, rows, columns] = -basis(k, thick, thick, lam, mu)
        if number == lower:
            right[:, :, size * number - half : size * number + half] = jumps[:, None]
    found = np.linalg.solve(matrix, right)
    return np.asarray(top[:, :, :half] @ found[:, :, : top.shape[3]])


def _directions(z: float, thick: float) -> list[tuple[float, float]]:
    """Sign of the exponent and distance from where the solution is of order one."""
    return [(-1.0, z)] if np.isinf(thick) else [(-1.0, z), (1.0, z - thick)]


def _plane(k: Float, z: float, thick: float, lam: Complex, mu: Complex) -> Complex:
    """(n_p, n_k, 4, 2 or 4) states: grad of exp(i k x + s k z), and z times it + ..."""
    shape = (len(mu), len(k))
    out = []
    for sign, away in _directions(z, thick):
        first = [np.full_like(mu, sign), np.ones_like(mu), 2.0 * mu, 2.0 * sign * mu]
        second = [
            np.zeros_like(mu),
            sign * (lam + 3.0 * mu) / (lam + mu),
            2.0 * sign * mu**2 / (lam + mu),
            2.0 * mu * (lam + 2.0 * mu) / (lam + mu),
        ]
        decay = np.exp(sign * k * away)[None, :, None]
        one, two = (
            np.broadcast_to(np.stack(a, axis=-1)[:, None], (*shape, 4))
            for a in (first, second)
        )
        out += [one * decay, (two + (k * away)[None, :, None] * one) * decay]
    return np.stack(out, axis=-1)


def _antiplane(k: Float, z: float, thick: float, lam: Complex, mu: Complex) -> Complex:  # noqa: ARG001
    """(n_p, n_k, 2, 1 or 2) states exp(s k z)."""
    out = [
        np.stack((np.ones_like(mu), sign * mu), axis=-1)[:, None]
        * np.exp(sign * k * away)[None, :, None]
        for sign, away in _directions(z, thick)
    ]
    return np.stack(out, axis=-1)
