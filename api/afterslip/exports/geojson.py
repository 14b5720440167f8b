"""Slip as polygons for a GIS (RFC 7946)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import xarray as xr

from afterslip.exports.triangles import triangles
from afterslip.thinning import thinned

MOST_NODES = 50_000
"""As many as a GIS takes well; the result has all."""


def write_geojson(result: xr.Dataset, path: str | Path) -> Path:
    """Write the faults' triangles as polygons with their mean slip.

    Each has the properties ``fault``, ``strike_m``, ``dip_m``, ``slip_m``; a third
    coordinate is the height in m. Longitude and latitude where the campaign has them,
    else local kilometres, which a GIS cannot place.
    """
    found = triangles(thinned(result, MOST_NODES))
    features = []
    for corners, depth, slip, fault in zip(
        found.corners.tolist(), found.depth, found.slip, found.fault, strict=True
    ):
        height = [round(0.0 - 1e3 * float(d), 1) for d in depth]
        ring = [
            [round(x, 6), round(y, 6), z]
            for (x, y), z in zip(corners, height, strict=True)
        ]
        features.append(
            {
                "type": "Feature",
                "geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]},
                "properties": {
                    "fault": str(fault),
                    "strike_m": round(float(slip[0]), 4),
                    "dip_m": round(float(slip[1]), 4),
                    "slip_m": round(float(np.hypot(*slip)), 4),
                },
            }
        )
    path = Path(path)
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path
