"""How far a curve is from the exact one: Lanczos cut short, inexact solves, steps.

**Lanczos cut short.** With A Q = Q T + b q e_m^T the error d of the creep strain obeys
d' = -A d - b y_m(t) q, q of norm one. A is not negative, so exp(-A t) is a contraction
in the energy of creep and |d(t)| <= b int_0^t |y_m| (the residual of Lanczos for an
exponential; Hochbruck & Lubich 1997, SIAM J. Numer. Anal. 34, 1911-1925). For
shift-invert, with g = e_m^T S^-1 y and b of S, the same steps give |d(t)| <=
b (variation of g on [0, t] + int_0^t |g| / gamma). What a creep strain of norm one
moves at most on the trace is not known; responses to the last directions stand for it.

**Inexact solves.** The j-th solve enters the curve with weight y_j(t) only, so its
error may grow as 1/|y_j|; the theory of inexact Krylov methods is that of Simoncini &
Szyld (2003, SIAM J. Sci. Comput. 25, 454-477) and van den Eshof & Sleijpen (2004, SIAM
J. Matrix Anal. Appl. 26, 125-153). An error e_j on the trace changes u(t) there by
y_j e_j directly and, through A q_j, d' by at most the largest rate times that. y_j is
predicted by the bound above for j - 1 modes, as |y_j| <= b_(j-1) int |y_(j-1)|. e_j is
estimated in every iteration (`SurfaceErrorCriterion`): how large it is beside the
residual depends on the model (measured: 1 to 390 times). What the solves so far have
left of their part of the tolerance is shared by those that are expected to come.

**Steps.** The exponential step is exact for a constant strain rate. Were the rate
linear in time, its stress would differ by 2 mu psi(x) times the change of the increment
from the step before, psi(x) = (1 + e^-x)/(2 x) - (1 - e^-x)/x^2, x = dt times the rate
of relaxation; psi is x/12 for small x. K^v answers at most x/(1 - e^-x) times as much
as K. So the error is about the product of both times the variation of the increments,
which a decaying motion makes little more than the first of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_common.curve import mode_weights, tridiagonal
from afterslip_solver.backend import LANES, Backend
from afterslip_solver.greens.checkpoint import State, pack, unpack
from afterslip_solver.model import Float, Int

# the bound is one of creep energies; measured over Maxwell and Burgers bodies, short
# and long curves: responses to the last two directions fall short of the remainder's by
# a factor of 2.2 at most
_SPREAD = 3.0
# points of the quadrature in time, denser early
_POINTS = 129
# what comes through A adds as much as the error itself per relaxation time, but no more
# than thrice
_THROUGH = 3.0
# part of the tolerance that inexact solves may take, and that FP32 may take; missing
# modes have what these leave, but a tenth of it at least
_SOLVES = 0.6
_STORED = 0.2
_LEAST = 0.1
# solves that a curve is expected to need before anything is known of it
_EXPECTED = 4.0
# what of a `SolveBudget` a checkpoint holds
_BUDGET = ("errors", "used", "change", "to_come")
# a solve need not be more exact than this part of the solver's own tolerance
TIGHTEST = 0.1


def remainder(
    recurrence: Float, start_norm: float | Float, shift: float, times: Float
) -> Float:
    """Bound of the creep strain's error in its energy norm, of one curve or several.

    Parameters
    ----------
    recurrence : (..., m, 2), m at least 1. start_norm : (...,).
    times : (n_time,) s, positive.

    Returns
    -------
    (..., n_time) float64.
    """
    early = times.max() * np.linspace(0.0, 1.0, _POINTS) ** 3
    fine = np.unique(np.concatenate([early, times]))
    last = mode_weights(recurrence, start_norm, shift, fine)[..., -1]
    size = np.abs(last)
    area = 0.5 * (size[..., 1:] + size[..., :-1]) * np.diff(fine)
    if shift > 0.0:
        area = area / shift + np.abs(np.diff(last))
    total = np.zeros(last.shape)
    np.cumsum(area, axis=-1, out=total[..., 1:])
    reached = total[..., np.searchsorted(fine, times)]
    return np.asarray(recurrence[..., -1, 1, None] * reached)


def rounding(recurrence: Float, start_norm: float, shift: float, times: Float) -> float:
    """Error of storing the directions in FP32, over the largest change.

    Rounding q_j is a change of A by 2^-24 of its coupling to q_j, and of the start.

    Parameters
    ----------
    recurrence : (m, 2) of one lane.
    """
    weights = np.abs(mode_weights(recurrence, start_norm, shift, times)).max(axis=0)
    largest = float(weights.max(initial=0.0))
    return _SPREAD * 2.0**-24 * float(weights.sum() / largest) if largest > 0.0 else 0.0


def narrow_basis(tolerance: float, span: float) -> bool:
    """Whether directions may be stored in FP32, see `rounding`.

    Parameters
    ----------
    span : length of the curve in units of the shortest relaxation time.
    """
    return _stored(span) <= _STORED * tolerance


def _stored(span: float) -> float:
    """Bound of `rounding` before a curve is known."""
    return _SPREAD * 2.0**-24 * (1.0 + span)


def probe_weights(
    recurrence: Float, start_norm: float | Float, shift: float, times: Float
) -> Float:
    """(..., 3, m) weights of modes in what `truncation` asks the size of.

    These are the curve's last change and the responses to the last two directions.

    Parameters
    ----------
    recurrence : (..., m, 2) of one curve or several. times : (n_time,) s, ascending.
    """
    change = mode_weights(recurrence, start_norm, shift, times[-1:])
    rows = tridiagonal(recurrence)
    rows[:] = np.linalg.inv(rows) if shift > 0.0 else np.eye(rows.shape[-1])
    # one mode has one direction only
    return np.concatenate(
        [change, rows[..., -2:, :][..., :1, :], rows[..., -1:, :]], -2
    )


def truncation(
    recurrence: Float,
    start_norm: float | Float,
    shift: float,
    times: Float,
    sizes: Float,
) -> Float:
    """(...,) errors of curves on the trace for want of modes, over their last change.

    Parameters
    ----------
    recurrence : (..., m, 2) of one curve or several. times : (n_time,) s, ascending.
    sizes : (3, ...) m, largest values on the trace of what `probe_weights` weighs.
    """
    change, *last = sizes
    worst = remainder(recurrence, start_norm, shift, times).max(axis=-1)
    known = (recurrence[..., -1, 1] != 0.0) & (change != 0.0)
    error = _SPREAD * np.maximum(*last) * worst / np.where(known, change, 1.0)
    return np.where(known, error, 0.0)


class SolveBudget:
    """Errors that the solves of one curve may make on the trace.

    Parameters
    ----------
    shift, times, tolerance : of the curve; tolerance is that in time.
    fastest : 1/s, largest rate of relaxation at a point.

    Attributes
    ----------
    errors : (mode, lane) m, estimated error of each solution on the trace.
    used : (lane,) m, what they make of the curve.
    change : (lane,) m, largest change of the curve; 0 before it is known.
    to_come : (lane,) solves that are expected from the next one on.
    """

    def __init__(
        self, shift: float, times: Float, tolerance: float, fastest: float
    ) -> None:
        self._shift = shift
        self._times = times
        self._tolerance = tolerance
        self._span = float(times.max()) * fastest
        self._through = 1.0 + min(self._span, _THROUGH)
        self.errors = np.zeros((0, LANES))
        self.used = np.zeros(LANES)
        self.change = np.zeros(LANES)
        self.to_come = np.full(LANES, _EXPECTED)

    @property
    def narrow(self) -> bool:
        """Whether directions are stored in FP32."""
        return narrow_basis(self._tolerance, self._span)

    def weights(self, recurrence: Float, start_norm: Float) -> Float:
        """Largest weight of the next mode in the curve, (lane,).

        Parameters
        ----------
        recurrence : (m, lane, 2) of the modes so far.
        """
        if len(recurrence) == 0:
            return start_norm * float(self._times.max())
        out = np.zeros(LANES)
        lanes = np.flatnonzero(recurrence[-1, :, 1] > 0.0)
        own = recurrence[:, lanes].swapaxes(0, 1)
        bound = remainder(own, start_norm[lanes], self._shift, self._times)
        out[lanes] = bound.max(axis=-1)
        if self._shift > 0.0:
            # the curve is written in S^-1 y
            lowest = np.linalg.eigvalsh(tridiagonal(own))[:, 0]
            out[lanes] /= np.maximum(lowest, 1e-6)
        return out

    def allowed(self, weight: Float, size: Float) -> Float:
        """Error that a solution may have on the trace, (lane,) m.

        Parameters
        ----------
        weight : (lane,) of `weights`. size : (lane,) m, its largest value there.
        """
        # before any mode is known: its weight is that of a strain that does not relax
        first = weight * size / max(self._span, 1.0)
        change = np.where(self.change > 0.0, self.change, first)
        whole = _SOLVES * self._tolerance * change
        # the next ones share the rest if there are more of them than expected
        share = np.maximum(whole - self.used, _LEAST * whole) / (self.to_come + 0.5)
        divisor = self._through * np.where(weight > 0.0, weight, np.inf)
        return np.asarray(share / divisor)

    def add(self, error: Float) -> None:
        """Take in the errors on the trace (lane,) of a solve."""
        self.errors = np.concatenate([self.errors, error[None]])

    def settle(
        self, lanes: Int, recurrence: Float, start_norm: Float, change: Float
    ) -> None:
        """Say what is known of lanes' curves, whose weights were predicted too large.

        Parameters
        ----------
        lanes : (n,). recurrence : (n, m, 2). start_norm : (n,).
        change : (n,) m, of the curves.
        """
        weights = mode_weights(recurrence, start_norm, self._shift, self._times)
        largest = np.abs(weights).max(axis=1)
        errors = self.errors[: recurrence.shape[1], lanes]
        self.used[lanes] = self._through * (largest.T * errors).sum(axis=0)
        self.change[lanes] = change

    def error(self) -> Float:
        """(lane,) estimated error by the solves so far over the largest change."""
        known = self.change > 0.0
        part = self.used / np.where(known, self.change, 1.0)
        return np.where(known, part, 0.0)

    def enough(self) -> Float:
        """(lane,) error for want of modes at which a curve may stop."""
        stored = _stored(self._span) if self.narrow else 0.0
        left = self._tolerance - stored - self.error()
        return np.maximum(left, _LEAST * self._tolerance)

    def packed(self) -> State:
        """Everything that changes, for a `Checkpointer`."""
        return {f"budget.{name}": getattr(self, name) for name in _BUDGET}

    def restore(self, state: State) -> None:
        """Take up what `packed` wrote."""
        for name in _BUDGET:
            setattr(self, name, state[f"budget.{name}"].copy())


class StepError:
    """Error of a stepping run on the trace, from its increments.

    Parameters
    ----------
    step : s. fastest : 1/s, largest rate of relaxation at a point.
    between : whether curves are read between steps.
    """

    def __init__(
        self, backend: Backend, step: float, fastest: float, between: bool
    ) -> None:
        self._xp = backend.xp
        self._backend = backend
        x = step * fastest
        self._factor = step_defect(x)
        self._between = between
        self.past: Any = None
        self.moved: Any = None
        self.varied: Any = None
        self.bend = np.zeros(LANES)

    def add(self, increment: Any) -> None:
        """Take in an increment (n_trace, 3, lane) on the backend."""
        if self.past is None:
            self.moved = increment.copy()
            self.varied = self._xp.zeros_like(increment)
            self.past = increment
            return
        change = abs(increment - self.past)
        # the first step bends about as much as the second
        if not self.varied.any():
            self.varied += change
        self.varied += change
        self.moved += increment
        self.past = increment
        self.bend = np.maximum(self.bend, self._largest(change))

    def estimate(self) -> Float:
        """(lane,) largest error so far over the change so far."""
        if self.past is None:
            return np.zeros(LANES)
        moved = self._largest(self.moved)
        error = self._factor * self._largest(self.varied)
        if self._between:
            error = error + self.bend / 8.0
        return np.where(moved > 0.0, error / np.where(moved > 0.0, moved, 1.0), 0.0)

    def packed(self) -> State:
        """Everything, for a `Checkpointer`."""
        known = [] if self.past is None else [self.past, self.moved, self.varied]
        return {**pack(self._backend, "error", known), "error.bend": self.bend}

    def restore(self, state: State) -> None:
        """Take up what `packed` wrote."""
        known = unpack(self._backend, "error", state)
        if known:
            self.past, self.moved, self.varied = known
        self.bend = state["error.bend"].copy()

    def _largest(self, values: Any) -> Float:
        if values.size == 0:
            return np.zeros(LANES)
        return self._backend.to_host(abs(values).max(axis=(0, 1)))


def step_defect(x: float) -> float:
    """Relative defect of a step of x relaxation times: x/12 for small, 1/2 for large x.

    psi(x) x / (1 - e^-x) of the module's description.
    """
    if x < 1e-3:
        return x / 12.0
    lost = -np.expm1(-x)
    psi = (2.0 - lost) / (2.0 * x) - lost / x**2
    return float(psi * x / lost)
