"""Positions on the Earth and in the model's local metres."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyproj
from numpy.typing import ArrayLike, NDArray

from afterslip.schemas import earth
from afterslip.units import KM

Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Frame:
    """Map between what users write and local metres (x east, y north).

    Attributes
    ----------
    kind : geographic: azimuthal equidistant about the origin on WGS84; local:
        users write km about the origin.
    lon0, lat0 : origin, degrees; zero where local.
    """

    kind: Literal["geographic", "local"]
    lon0: float = 0.0
    lat0: float = 0.0

    @classmethod
    def of(cls, frame: earth.Frame) -> Frame:
        """Return the frame that a spec describes."""
        return cls(frame.kind, frame.lon0 or 0.0, frame.lat0 or 0.0)

    @property
    def geographic(self) -> bool:
        """True where users write degrees."""
        return self.kind == "geographic"

    def to_local(self, lon: ArrayLike, lat: ArrayLike) -> tuple[Float, Float]:
        """Return x, y in m.

        Parameters
        ----------
        lon, lat : degrees, or km where the frame is local; any shape.

        Returns
        -------
        x, y : m, of the same shape; NaN where the input is.
        """
        first = np.asarray(lon, dtype=np.float64)
        second = np.asarray(lat, dtype=np.float64)
        if self.kind == "local":
            return first * KM, second * KM
        x, y = _projection(self.lon0, self.lat0)(first, second)
        return _plain(x), _plain(y)

    def to_geographic(self, x: ArrayLike, y: ArrayLike) -> tuple[Float, Float]:
        """Return lon, lat in degrees (km where the frame is local) of x, y in m."""
        first = np.asarray(x, dtype=np.float64)
        second = np.asarray(y, dtype=np.float64)
        if self.kind == "local":
            return first / KM, second / KM
        lon, lat = _projection(self.lon0, self.lat0)(first, second, inverse=True)
        return _plain(lon), _plain(lat)


def _plain(values: Any) -> Float:
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.nan)


@lru_cache(maxsize=32)
def _projection(lon0: float, lat0: float) -> pyproj.Proj:
    return pyproj.Proj(proj="aeqd", lon_0=lon0, lat_0=lat0, ellps="WGS84", units="m")
