"""Positions on the Earth and in the model's local metres."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afterslip.schemas import earth
from afterslip.units import KM
from afterslip_common.sphere import EARTH_RADIUS, carried_axes

if TYPE_CHECKING:
    import pyproj

Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Frame:
    """Map between what users write and local metres (x east, y north).

    Attributes
    ----------
    kind : geographic: azimuthal equidistant about the origin on WGS84; local:
        users write km about the origin.
    lon0, lat0 : origin, degrees; zero where local.
    radius : m, of the spherical Earth that the plane of x and y is the map of;
        infinite where the Earth is flat.
    """

    kind: Literal["geographic", "local"]
    lon0: float = 0.0
    lat0: float = 0.0
    radius: float = np.inf

    @classmethod
    def of(cls, frame: earth.Frame) -> Frame:
        """Return the frame that a spec describes."""
        radius = EARTH_RADIUS if frame.shape == "sphere" else np.inf
        return cls(frame.kind, frame.lon0 or 0.0, frame.lat0 or 0.0, radius)

    @property
    def geographic(self) -> bool:
        """True where users write degrees."""
        return self.kind == "geographic"

    @property
    def spherical(self) -> bool:
        """True where the Earth is a sphere."""
        return bool(np.isfinite(self.radius))

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

    def convergence(self, x: ArrayLike, y: ArrayLike) -> Float:
        """Return the angle from the direction of y to geographic north, degrees.

        Parameters
        ----------
        x, y : m; any shape.

        Returns
        -------
        degrees anticlockwise, what an azimuth from geographic north is larger by than
        the same from y; zero on a flat Earth, where y is north everywhere.
        """
        east, north = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if not self.spherical:
            return np.zeros(east.shape)
        import pyproj

        lon, lat = self.to_geographic(east, north)
        lon0, lat0 = np.full(lon.shape, self.lon0), np.full(lat.shape, self.lat0)
        _, back, _ = pyproj.Geod(ellps="WGS84").inv(lon0, lat0, lon, lat)
        turn = np.asarray(back) + 180.0 - np.degrees(np.arctan2(east, north))
        at_origin = np.hypot(east, north) < 1.0
        return np.where(at_origin, 0.0, np.mod(turn + 180.0, 360.0) - 180.0)

    def axes(self, x: ArrayLike, y: ArrayLike) -> Float | None:
        """Return east, north and up of places on the ground; None on a flat Earth.

        Parameters
        ----------
        x, y : (n,) m.

        Returns
        -------
        (n, 3, 3) float64, unit vectors in rows, along the axes of space: east, north
        and up at the origin.
        """
        if not self.spherical:
            return None
        px, py = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        carried = carried_axes(px, py, self.radius)
        turn = np.radians(self.convergence(px, py))[:, None]
        first, second, up = (carried[:, k] for k in range(3))
        east = np.cos(turn) * first + np.sin(turn) * second
        north = np.cos(turn) * second - np.sin(turn) * first
        return np.stack([east, north, up], axis=1)


def _plain(values: Any) -> Float:
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.nan)


@lru_cache(maxsize=32)
def _projection(lon0: float, lat0: float) -> pyproj.Proj:
    import pyproj

    return pyproj.Proj(proj="aeqd", lon_0=lon0, lat_0=lat0, ellps="WGS84", units="m")
