"""Slip on a fault as a table, for forward runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterslip.frame import Frame
from afterslip.readers.delimited import Float, read_table
from afterslip.readers.places import depths, header, positions
from afterslip.units import SLIP_COMPONENTS


@dataclass(frozen=True, slots=True)
class SlipTable:
    """Slip at points near a fault.

    Attributes
    ----------
    points : (n, 3) float64, m, local x, y, z; z negative below the ground.
    slip : (n, 2) float64, m: strike (left-lateral), dip (reverse).
    """

    points: Float
    slip: Float


def read_slip(content: bytes, frame: Frame, label: str = "slip") -> SlipTable:
    """Read ``x_km,y_km,depth_km`` or ``lon,lat,depth_km``, then ``strike,dip`` in m.

    Raises
    ------
    SpecError
        With the line of everything wrong.
    """
    table = read_table(content, label, f"{header(frame)},depth_km,strike,dip")
    table.require("depth_km", "strike", "dip")
    _, _, x, y = positions(table, frame)
    depth = depths(table)
    slip = np.column_stack(
        [table.numbers(name, needed=True) for name in SLIP_COMPONENTS]
    )
    for i, name in enumerate(SLIP_COMPONENTS):
        large = np.abs(slip[:, i]) > 200
        hint = "write slip in metres; strike and dip are slips here, not angles"
        table.refuse(large, name, "is more than 200 m", hint)
    table.check()
    return SlipTable(np.column_stack([x, y, -depth]), slip)
