"""Surface displacement of rectangular dislocations in an elastic half-space.

Okada, Y. (1985), Surface deformation due to shear and tensile faults in a
half-space, Bull. Seism. Soc. Am. 75, 1135-1154: equations 25 to 29 with
Chinnery's notation (eq. 24) and the table of singular cases below eq. 30.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from afterslip_solver.model import Float

# Where |cos(dip)| is smaller, the limit for a vertical fault is taken: the general
# form loses about eps / cos^2, the limit is wrong by about cos; both are 5e-6 here.
VERTICAL = 5e-6


@dataclass(frozen=True, slots=True)
class Rectangles:
    """Rectangles with uniform slip in the half-space z < 0.

    All fields have one value per rectangle (n_rect) or are scalars.

    Attributes
    ----------
    x, y : m, east and north of the middle of the top edge.
    top : m, depth of the top edge, zero or positive.
    strike_deg : degrees clockwise from north; the fault dips to its right.
    dip_deg : degrees from horizontal, 0 to 90 (-90 is accepted: Okada's tables).
    length, width : m, along strike and down dip.
    """

    x: ArrayLike
    y: ArrayLike
    top: ArrayLike
    strike_deg: ArrayLike
    dip_deg: ArrayLike
    length: ArrayLike
    width: ArrayLike

    def arrays(self) -> tuple[Float, ...]:
        """Fields in order, broadcast to (n_rect,) float64.

        Raises
        ------
        ValueError
            Where a value is not finite, a size not positive or a top edge in the air.
        """
        fields = np.broadcast_arrays(
            *(
                np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64))
                for name in self.__slots__
            )
        )
        if not all(np.isfinite(a).all() for a in fields):
            raise ValueError("a rectangle has a value that is not finite")
        if (fields[5] <= 0).any() or (fields[6] <= 0).any():
            raise ValueError("length and width of a rectangle must be positive")
        if (fields[2] < 0).any():
            raise ValueError("the top edge of a rectangle must not be above the ground")
        return tuple(fields)


def surface_displacement(
    points: Float, rectangles: Rectangles, slip: ArrayLike, poisson: float = 0.25
) -> Float:
    """Displacement of the free surface, summed over the rectangles.

    Parameters
    ----------
    points : (n_point, 2) float64, m, east and north.
    rectangles : geometry.
    slip : (n_rect, 3) or (3,) float64, m: strike (left-lateral positive),
        dip (reverse positive) and opening.
    poisson : Poisson's ratio, below 0.5.

    Returns
    -------
    (n_point, 3) float64, m, east, north, up. On the trace of a surface-breaking
    fault it is the mean of the two sides; at the ends of that trace, where the
    displacement of a uniform slip is unbounded, it is nan.
    """
    if not -1.0 < poisson < 0.5:
        raise ValueError(f"Poisson's ratio must be in (-1, 0.5), not {poisson}")
    points = np.asarray(points, dtype=np.float64)
    x0, y0, top, strike, dip, length, width = rectangles.arrays()
    slips = np.broadcast_to(np.asarray(slip, dtype=np.float64), (len(x0), 3))
    total = np.zeros((len(points), 3))
    for k in range(len(x0)):
        azimuth = np.deg2rad(strike[k])
        along = np.array([np.sin(azimuth), np.cos(azimuth)])
        left = np.array([-along[1], along[0]])
        sin, cos = np.sin(np.deg2rad(dip[k])), np.cos(np.deg2rad(dip[k]))
        offset = points - (x0[k], y0[k])
        # Okada's origin lies above the start of the lower edge, his y points up dip
        local = np.column_stack(
            (offset @ along + length[k] / 2, offset @ left + width[k] * cos)
        )
        u = corner_displacement(
            local,
            depth=top[k] + width[k] * sin,
            dip_deg=float(dip[k]),
            length=float(length[k]),
            width=float(width[k]),
            slip=slips[k],
            poisson=poisson,
        )
        total[:, :2] += u[:, :1] * along + u[:, 1:2] * left
        total[:, 2] += u[:, 2]
    return total


def corner_displacement(
    points: Float,
    depth: float,
    dip_deg: float,
    length: float,
    width: float,
    slip: Float,
    poisson: float,
) -> Float:
    """Displacement in Okada's own axes: x along strike, y up dip, z up.

    Parameters
    ----------
    points : (n_point, 2) float64, m, from the point above the lower left corner.
    depth : m, of the lower edge.
    slip : (3,) float64, m, strike, dip, tensile.

    Returns
    -------
    (n_point, 3) float64, m.
    """
    sin, cos = np.sin(np.deg2rad(dip_deg)), np.cos(np.deg2rad(dip_deg))
    if abs(cos) < VERTICAL:
        sin, cos = float(np.sign(sin)), 0.0
    x, y = points[:, 0], points[:, 1]
    p = y * cos + depth * sin
    q = y * sin - depth * cos
    # a point on the fault's plane up to rounding is on it
    q = np.where(np.abs(q) < 1e-12 * (np.abs(y) + abs(depth) + width), 0.0, q)
    total = np.zeros((len(x), 3))
    for xi, sign_x in ((x, 1.0), (x - length, -1.0)):
        for eta, sign_e in ((p, 1.0), (p - width, -1.0)):
            total += sign_x * sign_e * _primitive(xi, eta, q, sin, cos, slip, poisson)
    return total


def _primitive(
    xi: Float, eta: Float, q: Float, sin: float, cos: float, slip: Float, poisson: float
) -> Float:
    """Eqs. 25 to 27 at one corner, (n_point, 3)."""
    R = np.sqrt(xi * xi + eta * eta + q * q)
    y = eta * cos + q * sin
    d = eta * sin - q * cos
    with np.errstate(divide="ignore", invalid="ignore"):
        # R + eta without cancellation where eta < 0; zero (xi = q = 0) is case iii
        r_eta = np.where(eta > 0, R + eta, (xi * xi + q * q) / (R - eta))
        at_edge = r_eta <= 1e-13 * R
        inverse_eta = np.where(at_edge, 0.0, 1.0 / (R * r_eta))
        log_eta = np.where(at_edge, -np.log(R - eta), np.log(r_eta))
        r_xi = np.where(xi > 0, R + xi, (eta * eta + q * q) / (R - xi))
        inverse_xi = np.where(r_xi <= 1e-13 * R, 0.0, 1.0 / (R * r_xi))
        angle = np.where(q == 0.0, 0.0, np.arctan(xi * eta / (q * R)))
        q_r = np.where(R == 0.0, 0.0, q / R)
        integrals = _integrals(
            xi, eta, q, np.where(R == 0.0, np.nan, R), y, d, log_eta, sin, cos, poisson
        )
    i1, i2, i3, i4, i5 = integrals
    u1, u2, u3 = slip / (2 * np.pi)
    q_eta = q * inverse_eta
    q_xi = q * inverse_xi
    strike = np.column_stack(
        (
            xi * q_eta + angle + i1 * sin,
            y * q_eta + q_eta * R * cos + i2 * sin,
            d * q_eta + q_eta * R * sin + i4 * sin,
        )
    )
    dip = np.column_stack(
        (
            q_r - i3 * sin * cos,
            y * q_xi + cos * angle - i1 * sin * cos,
            d * q_xi + sin * angle - i5 * sin * cos,
        )
    )
    tensile = np.column_stack(
        (
            q * q_eta - i3 * sin * sin,
            -d * q_xi - sin * (xi * q_eta - angle) - i1 * sin * sin,
            y * q_xi + cos * (xi * q_eta - angle) - i5 * sin * sin,
        )
    )
    return np.asarray(-u1 * strike - u2 * dip + u3 * tensile, dtype=np.float64)


def _integrals(
    xi: Float,
    eta: Float,
    q: Float,
    R: Float,
    y: Float,
    d: Float,
    log_eta: Float,
    sin: float,
    cos: float,
    poisson: float,
) -> tuple[Float, Float, Float, Float, Float]:
    """I1 to I5: eqs. 28, and 29 for a vertical fault."""
    ratio = 1.0 - 2.0 * poisson  # mu / (lambda + mu)
    r_d = R + d
    if cos == 0.0:
        i1 = -0.5 * ratio * xi * q / r_d**2
        i3 = 0.5 * ratio * (eta / r_d + y * q / r_d**2 - log_eta)
        i4 = -ratio * q / r_d
        i5 = -ratio * xi * sin / r_d
    else:
        X = np.sqrt(xi * xi + q * q)
        numerator = eta * (X + q * cos) + X * (R + X) * sin
        slope = np.arctan(numerator / (xi * (R + X) * cos))
        i5 = np.where(xi == 0.0, 0.0, ratio * 2.0 / cos * slope)
        i4 = ratio / cos * (np.log(r_d) - sin * log_eta)
        i3 = ratio * (y / (cos * r_d) - log_eta) + sin / cos * i4
        i1 = -ratio / cos * xi / r_d - sin / cos * i5
    i2 = -ratio * log_eta - i3
    return i1, i2, i3, i4, i5
