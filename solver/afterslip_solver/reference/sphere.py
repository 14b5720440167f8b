"""Exact static displacement of the surface of a homogeneous elastic sphere.

A point dislocation, as a moment tensor, in a sphere without gravity (Ben-Menahem, Singh
& Solomon 1969). The solution is that of full space plus one that is regular in the
sphere and takes away the tractions which the former leaves on its surface. These are
expanded in vector spherical harmonics about the source's axis, where a moment tensor
has only the orders 0, 1 and 2. Regular solutions of degree n, phi = r^n Y (Love 1927,
§ 172): grad phi; r^2 grad phi + alpha_n x phi; x cross grad phi.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_legendre

Float = NDArray[np.float64]
Complex = NDArray[np.complex128]

_ORDERS = (0, 1, 2)
# a harmonic of degree l falls by this power of e from the source up to the surface
_DECAY = 24.0


def full_space(points: Float, moment: Float, lam: float, mu: float) -> Float:
    """(n, 3) float64, m, displacement at points of full space, the source at 0.

    Parameters
    ----------
    points : (n, 3) float64, m. moment : (3, 3) float64, N m, symmetric.
    lam, mu : Pa.
    """
    d, r, ratio = _parts(points, lam, mu)
    trace, md = np.trace(moment), d @ moment
    dmd = np.einsum("ni,ni->n", md, d)
    # u_i = -M_jk d_k G_ij with the tensor of Kelvin (Love 1927, § 132)
    third = (1.0 - ratio) * 2.0 * md - ratio * trace * d[:]
    u = (third + ratio * 3.0 * dmd[:, None] * d) / r[:, None] ** 2
    return np.asarray(u / (8.0 * np.pi * mu))


def _parts(points: Float, lam: float, mu: float) -> tuple[Float, Float, float]:
    """Directions, distances, and (lam + mu) / (lam + 2 mu)."""
    r = np.linalg.norm(points, axis=1)
    return points / r[:, None], r, (lam + mu) / (lam + 2.0 * mu)


def full_space_gradient(points: Float, moment: Float, lam: float, mu: float) -> Float:
    """(n, 3, 3) float64, du_i / dx_j of `full_space`."""
    d, r, ratio = _parts(points, lam, mu)
    one, trace = np.eye(3), np.trace(moment)
    md = d @ moment
    dmd = np.einsum("ni,ni->n", md, d)[:, None, None]
    dd = d[:, :, None] * d[:, None, :]
    md_d = md[:, :, None] * d[:, None, :]
    d_md = d[:, :, None] * md[:, None, :]
    found = 2.0 * (1.0 - ratio) * (moment - 3.0 * md_d)
    found = found - ratio * trace * (one - 3.0 * dd)
    found = found + 3.0 * ratio * (dmd * one + 2.0 * d_md - 5.0 * dmd * dd)
    return np.asarray(found / (8.0 * np.pi * mu * r[:, None, None] ** 3))


@dataclass(frozen=True, slots=True)
class PointSource:
    """A point dislocation in a homogeneous sphere, and its motion of the surface.

    Attributes
    ----------
    radius : m. depth : m, of the source.
    lam, mu : Pa.
    moment : (3, 3) float64, N m, along east, north and up at the source.
    """

    radius: float
    depth: float
    lam: float
    mu: float
    moment: Float

    def displacement(self, angle: Float, azimuth: Float) -> Float:
        """Displacement of the surface without rigid motion of the sphere.

        Parameters
        ----------
        angle : (n,) radians, from the source, above 0 and below pi.
        azimuth : (n,) radians, clockwise from north at the source.

        Returns
        -------
        (n, 3) float64, m: up, away from the source along the arc, and to the right of
        it. Harmonics of degree 1 that have no traction are those of full space.
        """
        angle = np.asarray(angle, dtype=np.float64)
        azimuth = np.asarray(azimuth, dtype=np.float64)
        # theta and phi of the harmonics: phi runs from east to north
        phi = 0.5 * np.pi - azimuth
        axes = _axes(angle, phi)
        own = full_space(self._from_source(angle, phi), self.moment, self.lam, self.mu)
        total = np.einsum("nac,nc->na", axes, own)
        degree = int(np.ceil(_DECAY * self.radius / self.depth)) + 8
        nodes, weights = roots_legendre(degree + 12)
        theta = np.arccos(nodes)
        tractions = self._tractions(theta)
        for order in _ORDERS:
            wave = np.exp(1j * order * phi)
            total += (self._regular(order, degree, theta, weights,
                                    tractions[order], angle) * wave[:, None]
                      ).real  # fmt: skip
        # phi grows to the left
        return np.asarray(total * np.array([1.0, 1.0, -1.0]))

    def _from_source(self, theta: Float, phi: Float) -> Float:
        up = _axes(theta, phi)[:, 0]
        source = np.array([0.0, 0.0, self.radius - self.depth])
        return np.asarray(self.radius * up - source)

    def _tractions(self, theta: Float) -> dict[int, Complex]:
        """Order → (n, 3), Pa, part exp(i order phi) of r, theta and phi tractions."""
        count = 8
        angles = 2.0 * np.pi * np.arange(count) / count
        found = np.empty((count, len(theta), 3))
        for k, phi in enumerate(angles):
            at = np.full(len(theta), phi)
            axes = _axes(theta, at)
            points = self._from_source(theta, at)
            grad = full_space_gradient(points, self.moment, self.lam, self.mu)
            stress = self.mu * (grad + grad.transpose(0, 2, 1))
            stress += (
                self.lam * np.trace(grad, axis1=1, axis2=2)[:, None, None] * (np.eye(3))
            )
            pull = np.einsum("nij,nj->ni", stress, axes[:, 0])
            found[k] = np.einsum("nac,nc->na", axes, pull)
        parts = np.fft.fft(found, axis=0) / count
        # a real field has the conjugate at -order
        return {m: parts[m] * (1.0 if m == 0 else 2.0) for m in _ORDERS}

    def _regular(
        self,
        order: int,
        degree: int,
        theta: Float,
        weights: Float,
        traction: Complex,
        angle: Float,
    ) -> Complex:
        """(n, 3) of r, theta and phi, of the solution that frees the surface."""
        total = np.zeros((len(angle), 3), dtype=np.complex128)
        there = _Legendre(order, theta)
        here = _Legendre(order, angle)
        for n in range(max(order, 0), degree + 1):
            (y, dy, sy), (v, dv, sv) = there.next(), here.next()
            r_part = np.sum(weights * y * traction[:, 0])
            # against surface gradient and curl of the harmonic
            s_part = np.sum(weights * (dy * traction[:, 1] - 1j * sy * traction[:, 2]))
            t_part = np.sum(weights * (-1j * sy * traction[:, 1] - dy * traction[:, 2]))
            norm = max(n * (n + 1), 1)
            u, w = self._coefficients(n, r_part, s_part / norm, t_part / norm)
            total[:, 0] += u[0] * v
            total[:, 1] += u[1] * dv + w * 1j * sv
            total[:, 2] += u[1] * 1j * sv - w * dv
        return total

    def _coefficients(
        self,
        n: int,
        radial: complex,
        along: complex,
        curl: complex,
    ) -> tuple[Complex, complex]:
        """Displacements (U, V) and W of degree n for given tractions, taken away."""
        lam, mu, a = self.lam, self.mu, self.radius
        alpha = -2.0 * (n * lam + (3 * n + 1) * mu) / ((n + 3) * lam + (n + 5) * mu)
        spread = 2 * n + alpha * (n + 3)
        # columns: the two solutions, scaled to r = 1 at the surface; rows: U, V
        motion = np.array([[n, n + alpha], [1.0, 1.0]])
        first = 2.0 * mu * (n - 1)
        both = lam * spread + mu * (2.0 * (n + alpha) + n * alpha)
        second = mu * (2 * n + alpha)
        pull = np.array([[first * n, both + second * n], [first, second]]) / a
        wanted = -np.array([radial, along])
        if n == 0:
            factor = wanted[0] / pull[0, 1]
            return np.array([motion[0, 1] * factor, 0.0]), 0.0
        if n == 1:
            # grad phi is a translation; the other fits, as no force is left
            column = pull[:, 1]
            factor = (column @ wanted) / (column @ column)
            return motion[:, 1] * factor, 0.0
        found = np.linalg.solve(pull, wanted)
        return motion @ found, -curl * a / (mu * (n - 1))


class _Legendre:
    """Normalised associated Legendre functions of one order, degree after degree.

    Integrals of their squares over cos(theta) are 1.
    """

    def __init__(self, order: int, theta: Float) -> None:
        self.order, self.degree = order, order - 1
        self.cos, self.sin = np.cos(theta), np.sin(theta)
        scale = np.sqrt(0.5)
        for k in range(1, order + 1):
            scale *= np.sqrt((2 * k + 1) / (2 * k))
        self.value = scale * self.sin**order
        self.before = np.zeros_like(self.value)

    def next(self) -> tuple[Float, Float, Float]:
        """Return Y, dY / dtheta and order Y / sin(theta) of the next degree."""
        m = self.order
        self.degree += 1
        n = self.degree
        if n > m:
            a = np.sqrt((4.0 * n * n - 1.0) / (n * n - m * m))
            b = 0.0
            if n > m + 1:
                b = np.sqrt(((n - 1.0) ** 2 - m * m) / (4.0 * (n - 1.0) ** 2 - 1.0))
            new = a * (self.cos * self.value - b * self.before)
            self.before, self.value = self.value, new
        factor = 0.0
        if n > m:
            factor = np.sqrt((2.0 * n + 1.0) * (n * n - m * m) / (2.0 * n - 1.0))
        slope = (n * self.cos * self.value - factor * self.before) / self.sin
        return self.value, slope, m * self.value / self.sin


def _axes(theta: Float, phi: Float) -> Float:
    """(n, 3, 3) unit vectors r, theta and phi in rows; z is the axis, x is phi = 0."""
    ct, st, cp, sp = np.cos(theta), np.sin(theta), np.cos(phi), np.sin(phi)
    zero = np.zeros_like(ct)
    rows = [[st * cp, st * sp, ct], [ct * cp, ct * sp, -st], [-sp, cp, zero]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=1)
