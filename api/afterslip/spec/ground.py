"""The height of the ground, and surfaces put where the mesh will carry them back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from afterslip.frame import Frame
from afterslip.readers.interface import read_interface
from afterslip.readers.topography import Topography, read_topography
from afterslip.schemas.earth import Model
from afterslip.units import KM
from afterslip_common.geometry import Box

T = TypeVar("T")
# reads the file at a path of the spec; None, with the problems noted, where it is wrong
Read = Callable[[str, Callable[[bytes, str], Any]], Any]


def read_ground(model: Model, frame: Frame, box: Box, read: Read) -> Topography | None:
    """Return the height of the ground; None where the spec names no file of it."""
    if model.topography is None:
        return None
    size = None if model.mesh.size is None else model.mesh.size.fault * KM
    found: Topography | None = read(
        "model.topography", lambda c, label: read_topography(c, frame, box, size, label)
    )
    return found


def read_surface(
    path: str, frame: Frame, ground: Topography | None, read: Read
) -> NDArray[np.float64] | None:
    """Return points of a surface, (n, 3) m, in the box whose top is the ground."""
    points: NDArray[np.float64] | None = read(
        path, lambda c, label: read_interface(c, frame, label)
    )
    return points if points is None or ground is None else ground.in_box(points)


def raised(table: T, ground: Topography | None) -> T:
    """Return what has ``points`` with them in the box whose top is the ground."""
    if table is None or ground is None:
        return table
    made: Any = table
    found: T = replace(made, points=ground.in_box(made.points))
    return found
