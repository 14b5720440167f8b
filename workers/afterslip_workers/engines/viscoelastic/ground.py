"""Motion along east, north and up of each place, on a flat Earth and on a sphere."""

from __future__ import annotations

import numpy as np

from afterslip.frame import Frame
from afterslip_solver.model import Float


def local_motion(motion: Float, frame: Frame, places: Float) -> Float:
    """Turn displacements from the axes of space to those of each place.

    All that is stored or returned passes here, once.

    Parameters
    ----------
    motion : (..., n_place, 3) float64, m, along east, north and up at the origin.
    frame : of the model.
    places : (n_place, 2 or more) float64, m, x and y in the plane.

    Returns
    -------
    (..., n_place, 3) float64, m, along east, north and up there; on a flat Earth the
    same array.
    """
    axes = frame.axes(places[:, 0], places[:, 1])
    if axes is None:
        return motion
    return np.asarray(np.einsum("nac,...nc->...na", axes, motion))
