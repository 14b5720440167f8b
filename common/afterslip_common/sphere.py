"""From the plane in which a model is described to a spherical Earth, and directions.

The plane is the azimuthal equidistant map about the origin: a point at x, y lies at the
arc length hypot(x, y) from it, in the direction of x, y. The axes of space are east,
north and up at the origin on the ground; the centre of the Earth is at z = -radius.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

# m, mean radius of the Earth (IUGG)
EARTH_RADIUS = 6371e3


def onto_sphere(points: Float, radius: float) -> Float:
    """Return where points of the plane and below it are on a sphere.

    Parameters
    ----------
    points : (n, 3) float64, m, x, y of the plane and the height above the sphere.
    radius : m.

    Returns
    -------
    (n, 3) float64, m. Arcs from the origin on the sphere, and heights, keep their
    lengths.
    """
    points = np.asarray(points, dtype=np.float64)
    angle = np.hypot(points[:, 0], points[:, 1]) / radius
    from_centre = radius + points[:, 2]
    # sin(angle) / angle
    across = from_centre / radius * np.sinc(angle / np.pi)
    # without the difference of two large numbers
    z = points[:, 2] - 2.0 * from_centre * np.sin(0.5 * angle) ** 2
    return np.column_stack([points[:, :2] * across[:, None], z])


def carried_axes(x: Float, y: Float, radius: float) -> Float:
    """Return axes of the plane, carried along the arc from the origin, and up.

    Parameters
    ----------
    x, y : (n,) float64, m, of the plane.
    radius : m.

    Returns
    -------
    (n, 3, 3) float64, unit vectors in rows: the plane's x and y, and up.
    """
    distance = np.hypot(x, y)
    at_origin = distance == 0.0
    length = np.where(at_origin, 1.0, distance)
    ex, ey = np.where(at_origin, 1.0, x / length), y / length
    sin, cos = np.sin(distance / radius), np.cos(distance / radius)
    up = np.stack([sin * ex, sin * ey, cos], axis=-1)
    away = np.stack([cos * ex, cos * ey, -sin], axis=-1)
    left = np.stack([-ey, ex, np.zeros_like(ex)], axis=-1)
    first = ex[..., None] * away - ey[..., None] * left
    second = ey[..., None] * away + ex[..., None] * left
    return np.stack([first, second, up], axis=-2)
