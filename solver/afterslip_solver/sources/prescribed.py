"""Slip that a user prescribes for a forward run."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import QhullError, cKDTree

from afterslip_solver.model import FaultMesh, Float, TetMesh
from afterslip_solver.sources.basis import SourceError
from afterslip_solver.sources.profile import taper_profile
from afterslip_solver.sources.window import box_values, element_width

# slip falls to zero over this share of length and width
_TAPER = 0.2
# a table may lie off the fault by so many elements, or this share of its width
_OFF_ELEMENTS, _OFF_WIDTH = 2.0, 0.25

# a place is on a table's border if drawn in by this share of its distance it is in it
_BORDER = 1e-5


def uniform_slip(
    fault: FaultMesh, strike: float = 0.0, dip: float = 0.0, taper: bool = False
) -> Float:
    """Uniform slip on the rectangle.

    Without a taper slip is whole inside, about half on the buried edges (a quarter at
    corners) and zero outside, such that the potency is exact. Across edges that no
    lines of the mesh follow, as the lower one of a curved fault, slip falls linearly
    over one element. With a taper slip falls to zero at the buried edges by a half
    cosine over the outer fifth of length and width. It is whole at an open top.

    Parameters
    ----------
    strike, dip : m, left-lateral and reverse slip.

    Returns
    -------
    (n_fault_node, 3) float64, m, in x, y, z.
    """
    if taper:
        size = fault.length, fault.width, fault.open_top
        shape = tapered(fault.along, fault.down, *size)
    else:
        shape = box_values(fault, (0.0, fault.length), (0.0, fault.width))
    return np.asarray(shape[:, None] * (strike * fault.strike + dip * fault.updip))


def tapered(
    along: Float, down: Float, length: float, width: float, open_top: bool
) -> Float:
    """(n,) share of slip that falls to zero at the buried edges of a fault.

    Parameters
    ----------
    along, down : (n,) m from the start and the top edge. length, width : m.
    """
    shape = taper_profile(along, length, _TAPER, open_start=False)
    return np.asarray(shape * taper_profile(down, width, _TAPER, open_top))


def interpolated_slip(
    fault: FaultMesh, mesh: TetMesh, points: Float, slip: Float
) -> Float:
    """Slip from a table of scattered values.

    Values are interpolated linearly on the fault's mean plane; slip is zero beyond
    the table's hull and on the fault's margin. Slip that ends abruptly at a buried
    edge of the fault is about half on it, as in `uniform_slip`.

    Parameters
    ----------
    points : (n, 3) float64, m, x, y, z on or near the fault.
    slip : (n, 2) float64, m, left-lateral and reverse.

    Returns
    -------
    (n_fault_node, 3) float64, m, in x, y, z. Raises SourceError where the table
    does not lie on the fault.
    """
    on_fault = mesh.nodes[fault.nodes]
    limit = max(_OFF_ELEMENTS * element_width(fault), _OFF_WIDTH * fault.width)
    value = scattered_slip(fault.name, on_fault, points, slip, limit)
    # an abrupt end at an edge counts there as uniform slip does
    value *= box_values(fault, (0.0, fault.length), (0.0, fault.width))[:, None]
    return np.asarray(value[:, :1] * fault.strike + value[:, 1:] * fault.updip)


def scattered_slip(
    name: str, on_fault: Float, points: Float, slip: Float, limit: float
) -> Float:
    """Scattered values at places of a fault, linear on the places' mean plane.

    Parameters
    ----------
    name : of the fault. on_fault : (m, 3) float64, m, its places.
    points, slip : of `interpolated_slip`.
    limit : m, how far the table may lie off the fault, in the median.

    Returns
    -------
    (m, 2) float64, m, zero beyond the table's hull. Raises SourceError.
    """
    points, slip = np.asarray(points, np.float64), np.asarray(slip, np.float64)
    if not (np.isfinite(points).all() and np.isfinite(slip).all()):
        raise SourceError("slip: the table holds values that are not finite")
    off = float(np.median(cKDTree(on_fault).query(points)[0]))
    if off > limit:
        raise SourceError(
            f"slip: the table's points lie {off / 1e3:.1f} km from fault {name} "
            "(median); check the units (km), the frame and the sign of depth "
            "(positive down)"
        )
    centre = on_fault.mean(axis=0)
    axes = np.linalg.svd(on_fault - centre, full_matrices=False)[2][:2]
    try:
        table = LinearNDInterpolator((points - centre) @ axes.T, slip)
    except QhullError as error:
        raise SourceError(
            "slip: the table needs at least three points that are not on one line"
        ) from error
    places = (on_fault - centre) @ axes.T
    value = np.asarray(table(places), dtype=np.float64)
    # places on the table's border are in it, whatever its decimals
    beyond = np.isnan(value).any(axis=1)
    value[beyond] = table((1.0 - _BORDER) * places[beyond])
    return np.nan_to_num(value, nan=0.0)
