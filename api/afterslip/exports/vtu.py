"""The fault with its slip, and the ground with its displacement, for ParaView."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import meshio
import numpy as np
import xarray as xr

from afterslip.archive import GreensStore
from afterslip.errors import one_problem
from afterslip.physics.base import EstimatesError
from afterslip.result import slip_magnitude
from afterslip.units import YEAR

# UGRID goes round the triangle; VTK has the corners first
_CORNERS_FIRST = [0, 2, 4, 1, 3, 5]
_CHUNK = 64


def write_vtu(result: xr.Dataset, path: str | Path) -> Path:
    """Write the faults as triangles in local metres, z up, with slip at their nodes.

    Data of points: ``slip`` (m), ``slip_vector`` (m; east, north, up, of the side
    above the fault against the one below), ``strike``, ``dip`` (m), ``fault``.
    """
    used, nodes = np.unique(
        np.asarray(result["fault_triangles"].values, dtype=np.int64),
        return_inverse=True,
    )
    slip = np.asarray(result["fault_slip"].values, dtype=np.float64)
    vector = slip[:, :1] * result["fault_strike"].values
    vector = vector + slip[:, 1:] * result["fault_updip"].values
    xyz = np.column_stack([result[f"fault_{axis}"].values for axis in "xyz"])
    data = {
        "slip": slip_magnitude(result)[used],
        "slip_vector": vector[used],
        "strike": slip[used, 0],
        "dip": slip[used, 1],
        "fault": result["fault_index"].values[used].astype(np.int32),
    }
    mesh = meshio.Mesh(xyz[used], [("triangle", nodes.reshape(-1, 3))], data)
    path = Path(path)
    mesh.write(path, file_format="vtu")
    return path


def write_surface(
    result: xr.Dataset,
    greens: str | Path | xr.Dataset,
    times: Sequence[float],
    path: str | Path,
) -> Path:
    """Write the ground's surface with the displacement that the slip makes.

    Parameters
    ----------
    greens : the campaign's ``greens.zarr``, of which the result is.
    times : s after the event; data of points ``displacement_<years>yr`` (m; east,
        north, up) are written for each, and ``space_error_<years>yr`` (m), at most
        the length of what the mesh makes wrong, where that was estimated.

    Raises
    ------
    SpecError
        The store is of another campaign, or not complete; times outside the curve.
    """
    store = GreensStore(greens)
    slip = np.asarray(result["slip"].values, dtype=np.float64)
    check_greens(result, store, slip.size)
    total: float | np.ndarray[tuple[int, ...], np.dtype[np.float64]] = 0.0
    # a few sources at once: all of a large campaign would not fit into memory
    for first in range(0, slip.size, _CHUNK):
        rows = np.arange(first, min(first + _CHUNK, slip.size))
        motion = store.evaluate(times, sources=rows).values
        total = total + np.tensordot(slip[rows], motion, axes=1)
    field = np.asarray(total)
    data = store.dataset
    xyz = np.column_stack([data[f"node_{axis}"].values for axis in "xyz"])
    faces = data["face_node_connectivity"].values[:, _CORNERS_FIRST].astype(np.int64)
    named = {
        f"displacement_{t / YEAR:.6g}yr": values
        for t, values in zip(times, field, strict=True)
    }
    if isinstance(store.reader, EstimatesError):
        errors = store.reader.space_error_of_slip(slip, times)
        known = zip(times, errors, strict=True)
        named |= {
            f"space_error_{t / YEAR:.6g}yr": error
            for t, error in known
            if np.isfinite(error).any()
        }
    mesh = meshio.Mesh(xyz, [("triangle6", faces)], named)
    path = Path(path)
    mesh.write(path, file_format="vtu")
    return path


def check_greens(result: xr.Dataset, store: GreensStore, n_source: int) -> None:
    """Refuse Green's functions that are not those of a result, or not complete."""
    own, other = result.attrs.get("campaign"), store.dataset.attrs.get("campaign")
    place = np.asarray(result["source_position"].values)
    there = np.asarray(store.dataset["source_position"].values)
    if place.shape != there.shape or not np.allclose(place, there, atol=1.0):
        raise one_problem(
            "greens", other, "are of another campaign", f"the result is of {own}"
        )
    missing = int((~store.stored[:n_source]).sum())
    if missing:
        raise one_problem("greens", None, f"lack {missing} of {n_source} sources")
