"""The domain of a spec that gives none: so large that its sides hardly matter."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from afterslip.schemas.earth import Domain, Model
from afterslip.units import KM
from afterslip_common.geometry import Box

Float = NDArray[np.float64]

# measured by benchmarks/box.py for 1 %: extents of the faults from these to the sides,
# where all is elastic, and where rock flows for many relaxation times
ELASTIC, FLOWING = 5.0, 10.0
# the same in depths of the top of the rock that flows, as lids are as stiff as thick;
# by the SCEC problems of benchmarks/accuracy.py, of which half of it spoils 1.1 %
LIDS = 40.0
# powers of the distance with which the error near the faults falls, as measured there
ORDER, FLOWING_ORDER = 3.0, 2.0
# km
MOST = 6000.0


def box_of(domain: Domain) -> Box:
    """Return the box that a spec describes."""
    return Box(
        (domain.x[0] * KM, domain.x[1] * KM),
        (domain.y[0] * KM, domain.y[1] * KM),
        domain.depth * KM,
    )


def box_around(model: Model, faults: Iterable[Float]) -> Box:
    """Return the domain that a spec gives, or one that leaves its accuracy.

    Parameters
    ----------
    faults : (n, 3) m each, points of every fault, to all of its edges.
    """
    if model.domain is not None:
        return box_of(model.domain)
    found = [points for points in faults if len(points)]
    if not found:
        return Box((-MOST * KM, MOST * KM), (-MOST * KM, MOST * KM), MOST * KM)
    points = np.concatenate(found)
    low, high = points.min(axis=0) / KM, points.max(axis=0) / KM
    reach = _reach(model, float((high - low)[:2].max()))
    x, y = (
        (math.floor(low[i] - reach) * KM, math.ceil(high[i] + reach) * KM)
        for i in (0, 1)
    )
    return Box(x, y, math.ceil(reach - low[2]) * KM)


def _reach(model: Model, extent: float) -> float:
    """Return the distance from the faults to sides and bottom, km.

    Parameters
    ----------
    extent : of the faults in the map, km.
    """
    tops = [0.0, *(layer.bottom for layer in model.layers)]
    flowing = [
        top
        for top, layer in zip(tops, model.layers, strict=False)
        if layer.rheology is not None
    ]
    lengths, order = ELASTIC * extent, ORDER
    if flowing or any(body.rheology is not None for body in model.bodies):
        lengths = max(FLOWING * extent, LIDS * min(flowing, default=0.0))
        order = FLOWING_ORDER
    asked = model.mesh.accuracy or 1.0
    return float(min(lengths * max(1.0 / asked, 1.0) ** (1.0 / order), MOST))
