"""When slip may begin: a front from the hypocentre, then windows of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from afterslip.frame import Frame
from afterslip.schemas.windows import Hypocentre, Windows
from afterslip.units import KM

Float = NDArray[np.float64]


def position_of(hypocentre: Hypocentre, frame: Frame) -> Float:
    """(3,) float64, m, local.

    Parameters
    ----------
    frame : geographic where the place is in degrees.
    """
    if hypocentre.geographic:
        x, y = frame.to_local([hypocentre.lon or 0.0], [hypocentre.lat or 0.0])
        place = [float(x[0]), float(y[0])]
    else:
        place = [KM * (hypocentre.x or 0.0), KM * (hypocentre.y or 0.0)]
    return np.array([*place, -KM * hypocentre.depth])


def delays(windows: Windows, frame: Frame, places: Float) -> Float:
    """(n_window, n) float64, s, when each window begins at places (n, 3), m.

    The front takes the straight way from the hypocentre.
    """
    apart = np.linalg.norm(places - position_of(windows.hypocentre, frame), axis=1)
    front = apart / (KM * windows.rupture_speed)
    return np.asarray(front + windows.step * np.arange(windows.count)[:, None])
