"""Unit sources that data would hardly see, before any Green's function is solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from afterslip.frame import Frame
from afterslip.readers.rows import Rows
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.fault import Sources
from afterslip.schemas.inversion import Inversion
from afterslip.spec.coverage import plane_fault
from afterslip_common.geometry import PlaneFault
from afterslip_common.terms import SLIP_COMPONENTS

if TYPE_CHECKING:
    from afterslip_solver.model import Float

LARGE_SLIP = 10.0
"""m; a source is faint where less slip than this is lost in the errors of all data."""
# sources times places: a second or so
_MOST_RESPONSES = 400_000
_MOST_CELLS = 5_000


def faint_sources(
    campaign: Campaign, request: Inversion, rows: Mapping[str, Rows], frame: Frame
) -> list[dict[str, Any]]:
    """Return the faults with sources that the data of an inversion would hardly see.

    Each cell of a grid on a plane slips alone in an elastic half-space (Okada 1985).
    Its slip is resolved where all data together move by as much as their errors, which
    takes ``least`` metres: 1 / |response / sigma|. Flow, layers and correlated errors
    are left out, so that this is an estimate; faults that are no planes, series of
    ground motion and very large grids are passed over.

    Parameters
    ----------
    rows : by name, of the campaign's data sets. frame : of the campaign.

    Returns
    -------
    For each fault with some: {"fault", "faint", "of", "least"}, numbers of unit sources
    and the largest ``least``, m.
    """
    # the solver's packages take a second to import
    from afterslip_workers.inverting.data import with_errors

    settings = {d.name: d for d in campaign.datasets if d.name in request.datasets}
    used = [
        with_errors(rows[name], {name: dataset})[0]
        for name, dataset in settings.items()
        if name in rows and not rows[name].moving.any()
    ]
    planes = {f.name: f.plane for f in campaign.model.faults if f.plane is not None}
    found = []
    for grid in campaign.grids:
        plane = planes.get(grid.fault)
        cells = grid.along_strike * grid.down_dip
        if plane is None or not used or cells > _MOST_CELLS:
            continue
        least = _least_slip(grid, plane_fault(grid.fault, plane, frame), used)
        faint = int((least > LARGE_SLIP).sum())
        if faint:
            worst = float(least.max())
            numbers = {"faint": faint, "of": least.size, "least": worst}
            found.append({"fault": grid.fault, **numbers})
    return found


def _least_slip(grid: Sources, fault: PlaneFault, parts: Sequence[Rows]) -> Float:
    """(n_component, n_cell) m, slip that moves all data by as much as their errors."""
    from afterslip_solver.reference.okada import surface_displacement

    cells = _cells(grid, fault)
    units = [np.eye(3)[SLIP_COMPONENTS.index(name)] for name in grid.components]
    known = np.zeros((len(units), len(cells)))
    places = sum(len(rows.x) for rows in parts)
    step = max(1, -(-places * known.size // _MOST_RESPONSES))
    for rows in parts:
        # of many places one in ``step`` stands for its neighbours
        chosen = np.flatnonzero(rows.station % step == 0)
        if not len(chosen):
            continue
        per_row = rows.direction[chosen] / rows.sigma[chosen, None]
        station, of_row = np.unique(rows.station[chosen], return_inverse=True)
        points = np.column_stack([rows.x[station], rows.y[station]])
        for c, unit in enumerate(units):
            for k, cell in enumerate(cells):
                moved = surface_displacement(points, cell, unit)[of_row.ravel()]
                signal = np.einsum("ri,ri->r", moved, per_row)
                known[c, k] += len(rows) / len(chosen) * np.nansum(signal**2)
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / np.sqrt(known))


def _cells(grid: Sources, fault: PlaneFault) -> list[Any]:
    """One rectangle for each unit source; neighbours meet, B-splines as well."""
    from afterslip_solver.reference.okada import Rectangles

    strike, updip, _ = fault.axes
    length, width = fault.length / grid.along_strike, fault.width / grid.down_dip
    made = []
    for i in range(grid.along_strike):
        for j in range(grid.down_dip):
            along, down = (i + 0.5) * length * strike, j * width * updip
            x, y, z = (fault.origin + along - down).tolist()
            at = x, y, max(-z, 0.0)
            made.append(Rectangles(*at, fault.strike, fault.dip, length, width))
    return made
