"""A smooth curved interface through scattered points.

The interface is a bicubic spline d(s, depth): horizontal distance across strike as
a function of distance along strike and of depth. Unlike depth(x, y) it stays
single-valued for steep dips and continues well: above the shallowest data it goes
on linearly with the local dip and so reaches the free surface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline, make_interp_spline

from afterslip_common.errors import MeshError
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.spline import (
    DEGREE,
    clamped_knots,
    denser_above,
    penalised_fit,
    tensor_spline,
)
from afterslip_solver.mesh.tables.interface import depth_from_table, slope_of_spline
from afterslip_solver.model import Float

_INTERVALS = (18, 10)
# share by which the spline reaches beyond the data along strike and in depth
_PAD = 0.15
_TABLE = (161, 161)
# intervals may be so many times as many where a tolerance asks for it
_FINEST = 2
# share of the depth range, and of the lines across strike, that may fold back
_FOLD = 0.2
# cotangent of the smallest dip with which the interface goes on to the surface
_FLATTEST = 1.0 / np.tan(np.radians(4.0))


@dataclass(frozen=True)
class Interface:
    """Fitted interface; made by ``Interface.fit``.

    Attributes
    ----------
    origin : (2,) float64, m, x and y where s = d = 0.
    strike : radians clockwise from north; the interface dips to its right.
    knots : knot vectors along strike (m) and in depth (m, positive down).
    coefficients : (n_s, n_depth) float64, m, of d(s, depth).
    data_s, data_depth : (low, high), m, ranges of the points.
    misfit_rms, misfit_max : m, distance of the points from the interface,
        measured at right angles to it.
    n_points : number of points fitted.
    """

    origin: Float
    strike: float
    knots: tuple[Float, Float]
    coefficients: Float
    data_s: tuple[float, float]
    data_depth: tuple[float, float]
    misfit_rms: float
    misfit_max: float
    n_points: int

    @classmethod
    def fit(cls, points: Float, tolerance: float | None = None) -> Interface:
        """Fit points.

        Parameters
        ----------
        points : (n, 3) float64, m, local x, y, z (negative below the surface).
        tolerance : m, largest root mean square of the misfit. Intervals of the spline
            are made smaller until it is met, or are as small as they may be; default:
            a thousandth of the depth range, with the intervals as they are.
        """
        points = _checked(points)
        finest = _FINEST if tolerance is not None else 1
        found = cls._fitted(points, tolerance, 1)
        for finer in range(2, finest + 1):
            if found.misfit_rms <= (tolerance or 0.0):
                break
            found = cls._fitted(points, tolerance, finer)
        return found

    @classmethod
    def _fitted(cls, points: Float, tolerance: float | None, finer: int) -> Interface:
        """Fit points by a spline with so many times the usual intervals."""
        strike = strike_of(points)
        intervals = finer * _INTERVALS[0], finer * _INTERVALS[1]
        origin = points[:, :2].mean(axis=0)
        s, d = _rotate(points[:, 0] - origin[0], points[:, 1] - origin[1], strike)
        depth = -points[:, 2]
        knots = (
            clamped_knots(
                *_padded(s, _PAD, _PAD), np.linspace(0.0, 1.0, intervals[0] + 1)
            ),
            clamped_knots(*_depth_range(s, depth), denser_above(intervals[1])),
        )
        coefficients = penalised_fit(knots, s, depth, d, tolerance)
        fitted = tensor_spline(knots, coefficients, s, depth)
        slope = tensor_spline(knots, coefficients, s, depth, (0, 1))
        misfit = (d - fitted) / np.hypot(1.0, slope)
        return cls(
            origin=origin,
            strike=strike,
            knots=knots,
            coefficients=coefficients,
            data_s=(float(s.min()), float(s.max())),
            data_depth=(float(depth.min()), float(depth.max())),
            misfit_rms=float(np.sqrt(np.mean(misfit**2))),
            misfit_max=float(np.abs(misfit).max()),
            n_points=len(points),
        )

    def report(self) -> str:
        """One line about the fit, in km."""
        return (
            f"interface through {self.n_points} points, strike "
            f"{np.degrees(self.strike):.0f} degrees, misfit "
            f"{self.misfit_rms / 1e3:.2f} km rms, "
            f"{self.misfit_max / 1e3:.2f} km at most"
        )

    def local(self, x: ArrayLike, y: ArrayLike) -> tuple[Float, Float]:
        """Distance along and across strike, m, of positions x, y in m."""
        return _rotate(
            np.asarray(x, dtype=np.float64) - self.origin[0],
            np.asarray(y, dtype=np.float64) - self.origin[1],
            self.strike,
        )

    def position(self, s: ArrayLike, depth: ArrayLike) -> Float:
        """(..., 3) float64, m, points of the interface by s and depth."""
        s, depth = np.broadcast_arrays(
            np.asarray(s, dtype=np.float64), np.asarray(depth, dtype=np.float64)
        )
        return self._place(s, self.across(s, depth), depth)

    def _place(self, s: Float, d: Float, depth: Float) -> Float:
        sin, cos = np.sin(self.strike), np.cos(self.strike)
        x = self.origin[0] + s * sin + d * cos
        y = self.origin[1] + s * cos - d * sin
        return np.stack([x, y, -depth], axis=-1)

    def across(self, s: ArrayLike, depth: ArrayLike) -> Float:
        """Distance d across strike, m, at s and depth in m.

        Beyond the spline d stays as at its end along strike and goes on with the
        last dip in depth; towards the surface with 4 degrees at least.
        """
        s, depth = np.broadcast_arrays(
            np.asarray(s, dtype=np.float64), np.asarray(depth, dtype=np.float64)
        )
        inside = np.clip(depth, self.knots[1][0], self.knots[1][-1])
        value = tensor_spline(self.knots, self.coefficients, s, inside)
        beyond = depth - inside
        out = beyond != 0.0
        if np.any(out):
            slope = self.slope(s[out], inside[out])
            # flatter wedges than this ruin the elements at the trace
            gentle = np.where(beyond[out] < 0.0, np.minimum(slope, _FLATTEST), slope)
            value[out] += beyond[out] * gentle
        return value

    def slope(self, s: ArrayLike, depth: ArrayLike) -> Float:
        """Cotangent of the dip, d across / d depth."""
        s, depth = np.broadcast_arrays(
            np.asarray(s, dtype=np.float64), np.asarray(depth, dtype=np.float64)
        )
        return tensor_spline(self.knots, self.coefficients, s, depth, (0, 1))

    def misfit(self, points: Float) -> tuple[float, float]:
        """Root mean square, and largest, distance (m) of (n, 3) points from it.

        Points above or below the spline do not count.
        """
        s, d = self.local(points[:, 0], points[:, 1])
        depth = -points[:, 2]
        low, high = self.knots[1][[0, -1]]
        inside = (depth >= low) & (depth <= high)
        inside &= (s >= self.knots[0][0]) & (s <= self.knots[0][-1])
        if not inside.any():
            return 0.0, 0.0
        s, d, depth = s[inside], d[inside], depth[inside]
        off = (d - self.across(s, depth)) / np.hypot(1.0, self.slope(s, depth))
        return float(np.sqrt(np.mean(off**2))), float(np.abs(off).max())

    def resampled(self, s: Float, depth: Float) -> Interface:
        """Interface of one spline that interpolates this one on a control grid.

        Parameters
        ----------
        s, depth : (n,), (m,) float64, m, rising, at least four of each.
        """
        values = self.across(s[:, None], depth[None, :])
        first = make_interp_spline(s, values, k=DEGREE)
        second = make_interp_spline(depth, first.c.T, k=DEGREE)
        return replace(
            self,
            knots=(first.t, second.t),
            coefficients=np.ascontiguousarray(second.c.T),
        )

    def sliced(self, at: Sequence[float]) -> list[Interface]:
        """Interfaces that together are this one, along strike.

        Parameters
        ----------
        at : m along strike, where one ends and the next begins; rising, inside it.
        """
        spline = BSpline(self.knots[0], self.coefficients, DEGREE)
        for s in at:
            spline = spline.insert_knot(s, DEGREE)
        knots, found = spline.t, []
        for low, high in pairwise([knots[0], *at, knots[-1]]):
            inner = knots[(knots > low) & (knots < high)]
            ends = [low] * (DEGREE + 1), [high] * (DEGREE + 1)
            own = np.concatenate([ends[0], inner, ends[1]])
            first = int(np.searchsorted(knots, low, "right")) - DEGREE - 1
            last = first + len(inner) + DEGREE + 1
            values = np.ascontiguousarray(spline.c[first:last])
            found.append(replace(self, knots=(own, self.knots[1]), coefficients=values))
        return found

    def poles(self) -> Float:
        """(n_s, n_depth, 3) float64, m, control points of the spline as a surface."""
        s, depth = (
            np.array([k[i + 1 : i + 1 + DEGREE].mean() for i in range(n)])
            for k, n in zip(self.knots, self.coefficients.shape, strict=True)
        )
        s, depth = np.meshgrid(s, depth, indexing="ij")
        return self._place(s, self.coefficients, depth)

    def project(self, points: Float) -> Float:
        """Move points (n, 3), m, across strike onto the interface; z stays."""
        s, _ = self.local(points[:, 0], points[:, 1])
        moved = self.position(s, -points[:, 2])
        moved[:, 2] = points[:, 2]
        return moved

    def depth(self, x: ArrayLike, y: ArrayLike) -> Float:
        """Depth of the interface, m, positive down, at x, y in m.

        0 where the interface lies above the free surface, that is on the side of
        its trace (the trench) from which it does not dip.
        """
        return self.depth_at(*self.local(x, y))

    def depth_at(self, s: Float, d: Float) -> Float:
        """Depth as ``depth`` gives it, at distances along and across strike, m."""
        shape = np.broadcast_shapes(np.shape(s), np.shape(d))
        # what is broadcast cannot be written to, for which functions are compiled anew
        s, d = (
            np.require(np.broadcast_to(v, shape).ravel(), None, "W") for v in (s, d)
        )
        depth = np.empty(len(s))
        at = (*self._table, s, d, depth)
        over(len(s), lambda *part: depth_from_table(*at, *part))
        return depth.reshape(shape)

    def dip(self, x: ArrayLike, y: ArrayLike) -> Float:
        """Dip in radians of the interface below x, y in m."""
        return self.depth_and_dip(x, y)[1]

    def depth_and_dip(self, x: ArrayLike, y: ArrayLike) -> tuple[Float, Float]:
        """Return `depth` and `dip` for the effort of one."""
        s, d = self.local(x, y)
        depth = self.depth_at(s, d)
        slope = np.empty(depth.size)
        at = (*self.knots, self.coefficients, np.ravel(s), np.ravel(depth), slope)
        over(depth.size, lambda *part: slope_of_spline(*at, *part))
        return depth, np.arctan2(1.0, slope).reshape(depth.shape)

    @cached_property
    def _table(self) -> tuple[Float, Float, Float]:
        lines = np.linspace(self.knots[0][0], self.knots[0][-1], _TABLE[0])
        depths = np.linspace(min(self.knots[1][0], 0.0), self.knots[1][-1], _TABLE[1])
        table = self.across(lines[:, None], depths[None, :])
        risen = np.maximum.accumulate(table, axis=1)
        folded = (risen - table).max(axis=1) > _FOLD * np.ptp(depths)
        # corners without data may fold a little; there the interface is vertical
        if folded.mean() > _FOLD:
            raise MeshError(
                "the interface is overturned or folds back, so it has no single depth "
                "below a point; smooth its points or use fewer of them"
            )
        return lines, depths, risen


def strike_of(points: Float) -> float:
    """Strike of an interface, radians clockwise from north.

    The chord of its contour at mid depth, so that bent interfaces stay
    single-valued along it; the strike of the best plane where that contour is not
    longer than wide. The interface dips to the right.
    """
    centred = points - points.mean(axis=0)
    normal = np.linalg.svd(centred, full_matrices=False)[2][2]
    normal = normal if normal[2] > 0.0 else -normal
    if np.hypot(*normal[:2]) < 1e-6:
        raise MeshError("the points of an interface lie in a horizontal plane")
    dip_direction = normal[:2] / np.hypot(*normal[:2])
    along = np.array([-dip_direction[1], dip_direction[0]])
    order = np.argsort(centred[:, 2])
    count = len(points)
    band = centred[order[int(0.42 * count) : max(int(0.58 * count), 3)], :2]
    _, spread, axes = np.linalg.svd(band - band.mean(axis=0), full_matrices=False)
    if len(band) > 3 and spread[0] > 2.0 * spread[1]:
        along = axes[0] if axes[0] @ along > 0.0 else -axes[0]
    return float(np.arctan2(along[0], along[1]) % (2.0 * np.pi))


def _rotate(x: Float, y: Float, strike: float) -> tuple[Float, Float]:
    """Along strike and to its right, from x east and y north."""
    sin, cos = np.sin(strike), np.cos(strike)
    return np.asarray(x * sin + y * cos), np.asarray(x * cos - y * sin)


def _checked(points: Float) -> Float:
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < 12:
        raise MeshError(
            "an interface needs at least 12 points of x, y, z; got an array of shape "
            f"{points.shape}"
        )
    if not np.isfinite(points).all():
        raise MeshError(
            f"{int((~np.isfinite(points).all(axis=1)).sum())} points of an interface "
            "are not finite; remove them"
        )
    return points


def _padded(values: Float, below: float, above: float) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return low - below * (high - low), high + above * (high - low)


def _depth_range(s: Float, depth: Float) -> tuple[float, float]:
    """Range of the spline: from the usual upper limit of the data to below them."""
    bins = np.digitize(s, np.linspace(s.min(), s.max(), 12)[1:-1])
    tops = [float(depth[bins == k].min()) for k in np.unique(bins)]
    return float(np.median(tops)), _padded(depth, 0.0, _PAD)[1]
