"""The grid of properties that a spec names."""

from __future__ import annotations

from afterslip.errors import one_problem
from afterslip.frame import Frame
from afterslip.readers.grid import read_grid
from afterslip.schemas.earth import Body, Layer, Model
from afterslip_common.geometry import Box
from afterslip_common.properties import PropertyGrid


def grid_of(
    model: Model, frame: Frame, box: Box, content: bytes, label: str
) -> PropertyGrid:
    """Return the grid of a model.

    Raises
    ------
    SpecError
        As `read_grid`; or it has viscosities, which replace those of Maxwell dashpots,
        and a material has a rheology of which nobody knows which dashpot that is.
    """
    found = read_grid(content, frame, box.x, box.y, label)
    if found.viscosity is not None:
        materials: list[Layer | Body] = [*model.layers, *model.bodies]
        for material in materials:
            for name in material.rheology.added if material.rheology else ():
                text = f"cannot replace the viscosities of {name} ({material.name})"
                hint = "leave viscosity out of the grid, or write maxwell or burgers"
                raise one_problem(f"{label} viscosity", None, text, hint)
    return found
