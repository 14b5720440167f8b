"""Estimated errors as shares of the largest displacements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from afterslip_solver.model import Bool, Float

# changes smaller than this share of the elastic displacement are not resolved as such
NEGLIGIBLE = 0.01
# share of what is allowed from which another cause leaves no less to this one
_SQUARE = 0.9


@dataclass(frozen=True, slots=True)
class Shares:
    """Largest estimated errors over the largest displacements.

    Attributes
    ----------
    elastic, change : as shares; the change's is None where nothing creeps.
    farther : as elastic, of points more than two elements from all traces; None: the
        same. Nearer ones are less than an element of the coarser mesh away, and what is
        estimated there tells little of how sizes far away should change.
    """

    elastic: float
    change: float | None = None
    farther: float | None = None

    @property
    def largest(self) -> float:
        """The larger one."""
        return max(self.elastic, self.change or 0.0)


@dataclass(frozen=True, slots=True)
class Errors:
    """Estimated errors at points.

    Attributes
    ----------
    share : (n_lane, 1 + n_time, n_point) of the largest elastic displacement, then of
        the largest change until then.
    points : (n_point, 3) m.
    off : (n_point,) distances from the nearest trace of a fault, in elements. Points
        less than one away do not count, unless there are no others.
    ends : (n_point,) m, distances from where slip ends abruptly; None: not looked at.
    """

    share: Float
    points: Float
    off: Float
    ends: Float | None = None

    @classmethod
    def of(
        cls,
        motion: Float,
        error: NDArray[np.floating[Any]],
        points: Float,
        off: Float,
        ends: Float | None = None,
    ) -> Errors:
        """Compare errors with displacements.

        Parameters
        ----------
        motion : (n_lane, 1 + n_time, n_point, 3) m, elastic displacement and changes.
        error : (n_lane, 1 + n_time, n_point) m.
        """
        size = np.linalg.norm(motion, axis=3).max(axis=2)
        reached = np.maximum.accumulate(size[:, 1:], axis=1)
        creeps = reached.any()
        reached = np.maximum(reached, NEGLIGIBLE * size[:, :1])
        size = np.concatenate([size[:, :1], reached], axis=1)[:, :, None]
        # without any slip nothing moves, and nothing errs
        share = np.divide(error, size, out=np.zeros(error.shape), where=error != 0.0)
        if not creeps:
            share[:, 1:] = 0.0
        # solves that did not converge have no numbers, and no error that is small
        share[~np.isfinite(share)] = np.inf
        return cls(share, points, off, ends)

    @classmethod
    def everywhere(cls, *shares: float) -> Errors:
        """Return the same errors at all points, elastic ones and then of changes.

        Infinite ones where solves did not converge.
        """
        share = np.array(shares, dtype=np.float64).reshape(1, -1, 1)
        return cls(share, np.zeros((1, 3)), np.full(1, np.inf))

    @classmethod
    def of_all(cls, found: Sequence[Errors]) -> Errors:
        """Return the errors of several groups of sources at the same points."""
        return replace(found[0], share=np.concatenate([one.share for one in found]))

    @property
    def largest(self) -> Shares:
        """The largest ones of points that count."""
        counted = self._counted
        share = self.share[:, :, counted]
        farther = share[:, 0, self.off[counted] > 2.0]
        return Shares(
            float(share[:, 0].max()),
            float(share[:, 1:].max(initial=0.0)) or None,
            float(farther.max()) if farther.size else None,
        )

    @property
    def nearest_end(self) -> float:
        """Distance of the nearest point from an abrupt end of slip, m.

        Of points that will count when elements are half as long, too.
        """
        if self.ends is None:
            return np.inf
        return float(self.ends[self.off > 0.5].min(initial=np.inf))

    @property
    def _counted(self) -> Bool:
        counted = self.off > 1.0
        return counted if counted.any() else np.ones_like(counted)

    def beside(self, other: Errors) -> Errors:
        """Return the errors of two causes together, whose squares add at each point."""
        return replace(self, share=np.hypot(self.share, self._here(other)))

    def over_what_is_left(self, other: Errors, allowed: float) -> Errors:
        """Return errors that are as large as allowed where those of both causes are.

        Parameters
        ----------
        other : of the other cause, which nothing is done about.
        """
        used = np.minimum(self._here(other) / allowed, _SQUARE)
        return replace(self, share=self.share / np.sqrt(1.0 - used**2))

    def _here(self, other: Errors) -> Float:
        """Return the other's errors at the nearest of its points."""
        nearest = cKDTree(other.points).query(self.points)[1]
        return other.share[:, :, nearest]
