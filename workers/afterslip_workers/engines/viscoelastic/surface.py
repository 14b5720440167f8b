"""The ground of a model."""

from __future__ import annotations

import numpy as np

from afterslip.archive import SurfaceTable
from afterslip.frame import Frame
from afterslip.physics.viscoelastic.store import Sizes
from afterslip_solver.mesh import heights
from afterslip_solver.mesh.slit_surface import two_sided
from afterslip_solver.model import Model


def surface_of(model: Model, frame: Frame) -> SurfaceTable:
    """Return the free surface of a model."""
    trace = two_sided(model)
    nodes = model.mesh.nodes[trace.nodes].copy()
    nodes[:, 2] = heights(model)[trace.nodes]
    lon = lat = None
    if frame.geographic:
        lon, lat = frame.to_geographic(nodes[:, 0], nodes[:, 1])
    return SurfaceTable(nodes=nodes, faces=trace.faces, lon=lon, lat=lat)


def hollow_surface(sizes: Sizes, frame: Frame) -> SurfaceTable:
    """Return a surface of the right size that lies nowhere."""
    nodes = np.zeros((sizes.node, 3))
    degrees = nodes[:, 0] if frame.geographic else None
    faces = np.zeros((sizes.face, 6), dtype=np.int64)
    return SurfaceTable(nodes=nodes, faces=faces, lon=degrees, lat=degrees)
