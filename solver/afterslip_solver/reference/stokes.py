"""Motion of a whole space after a double couple at a point.

Aki, K. & Richards, P. G. (2002), Quantitative Seismology, 2nd ed., eq. 4.32 and 4.33.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from afterslip_solver.model import Float

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def double_couple(
    points: Float,
    times: Float,
    moment: Callable[[Float], Float],
    vp: float,
    vs: float,
    rho: float,
) -> Float:
    """Displacement by slip along x on a plane with normal z at the origin.

    Parameters
    ----------
    points : (n_point, 3) m, not the origin. times : (n_time,) s.
    moment : from times (n,), s, to moment, N m; 0 before 0 s, and smooth.
    vp, vs : m/s. rho : kg/m3.

    Returns
    -------
    (n_point, n_time, 3) float64, m.
    """
    found = np.empty((len(points), len(times), 3))
    for number, point in enumerate(np.asarray(points, dtype=np.float64)):
        r = float(np.linalg.norm(point))
        g = point / r
        # patterns of radiation in Cartesian form, theta from z, phi from x
        x = 2.0 * g[0] * g[2] * g
        y = np.array([g[2], 0.0, g[0]]) - 2.0 * g[0] * g[2] * g
        near, p, s = 9.0 * x - 6.0 * y, 4.0 * x - 2.0 * y, -3.0 * x + 3.0 * y
        lag = 0.5 * (r / vs - r / vp) * (_POINTS + 1.0) + r / vp
        weight = 0.5 * (r / vs - r / vp) * _WEIGHTS * lag
        integral = moment((times[:, None] - lag).ravel()).reshape(len(times), -1)
        at_p, at_s = times - r / vp, times - r / vs
        found[number] = (
            np.outer(integral @ weight, near) / r**4
            + np.outer(moment(at_p), p) / (vp * r) ** 2
            + np.outer(moment(at_s), s) / (vs * r) ** 2
            + np.outer(_rate(moment, at_p, r / vp), x) / (vp**3 * r)
            + np.outer(_rate(moment, at_s, r / vp), y) / (vs**3 * r)
        )
    return found / (4.0 * np.pi * rho)


def static_double_couple(points: Float, moment: float, lam: float, mu: float) -> Float:
    """(n_point, 3) m, limit of `double_couple` for late times.

    Parameters
    ----------
    points : (n_point, 3) m. moment : N m. lam, mu : Pa.
    """
    r = np.linalg.norm(points, axis=1, keepdims=True)
    g = points / r
    both = 2.0 * g[:, :1] * g[:, 2:]
    x = both * g
    swap = np.stack([g[:, 2], np.zeros(len(g)), g[:, 0]], axis=1)
    y = swap - x
    p, s = 1.0 / (lam + 2.0 * mu), 1.0 / mu
    pattern = (9 * x - 6 * y) * 0.5 * (s - p) + (4 * x - 2 * y) * p + 3 * (y - x) * s
    return np.asarray(moment * pattern / (4.0 * np.pi * r**2))


def _rate(moment: Callable[[Float], Float], t: Float, scale: float) -> Float:
    """Return the derivative by differences of fourth order."""
    d = 1e-4 * scale
    near = moment(t + d) - moment(t - d)
    far = moment(t + 2 * d) - moment(t - 2 * d)
    return np.asarray((8.0 * near - far) / (12.0 * d))
