"""Slip as a random field with a von Karman covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from afterslip_solver.inversion.regularisers.protocol import SourceGrid
from afterslip_solver.model import Float

# of the covariance's diagonal: keeps it invertible where sources stand much closer
# than the correlation length
NUGGET = 1e-6


@dataclass(frozen=True, slots=True)
class VonKarman:
    """Covariance r^H K_H(r) (Mai & Beroza 2002, J. Geophys. Res. 107(B11), 2308).

    ``r`` is the distance on the fault, each direction divided by its correlation
    length. Components and faults are independent.

    Attributes
    ----------
    hurst : exponent H, between 0 and 1.
    along_km, down_km : km, correlation lengths; a third of the grid where 0, about
        what earthquakes show.
    """

    hurst: float = 0.75
    along_km: float = 0.0
    down_km: float = 0.0

    def __post_init__(self) -> None:
        """Refuse parameters without a covariance (ValueError)."""
        if not 0.0 < self.hurst <= 1.0:
            raise ValueError("hurst must be above 0 and at most 1")
        if self.along_km < 0.0 or self.down_km < 0.0:
            raise ValueError("along_km and down_km must not be negative")

    def precision(self, sources: SourceGrid) -> Float:
        """(n_par, n_par) float64, inverse of the correlation matrix."""
        matrix = np.zeros((len(sources.place), len(sources.place)))
        block = sources.place[:, :2]
        for fault, component in np.unique(block, axis=0):
            mine = np.flatnonzero((block == (fault, component)).all(axis=1))
            place = sources.place[mine, 2:] * sources.spacing[fault]
            extent = np.ptp(place, axis=0) + sources.spacing[fault]
            asked = 1e3 * np.array([self.along_km, self.down_km])
            scaled = place / np.where(asked > 0.0, asked, extent / 3.0)
            apart = np.linalg.norm(scaled[:, None] - scaled[None, :], axis=2)
            covariance = self._correlation(apart)
            covariance[np.diag_indices(len(mine))] += NUGGET
            matrix[np.ix_(mine, mine)] = np.linalg.inv(covariance)
        return 0.5 * (matrix + matrix.T)

    def _correlation(self, r: Float) -> Float:
        h = self.hurst
        # the limit of r^H K_H(r) at zero
        most = 2.0 ** (h - 1.0) * scipy.special.gamma(h)
        far = np.maximum(r, 1e-12)
        curve = far**h * scipy.special.kv(h, far) / most
        return np.where(r > 0.0, curve, 1.0)
