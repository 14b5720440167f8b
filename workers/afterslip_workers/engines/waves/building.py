"""Voxels from a spec and its files; kilometres end here."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from afterslip.errors import Problem, SpecError, one_problem
from afterslip.identity import digest, model_digest, plain
from afterslip.physics.waves import physics
from afterslip.physics.waves.checks import VoxelPlan, WaveSpec, check
from afterslip.physics.waves.spec import too_fast
from afterslip.schemas import earth
from afterslip.spec.coverage import plane_fault
from afterslip.spec.files import Files
from afterslip.spec.inputs import Inputs
from afterslip_common.source_time import tabulated
from afterslip_common.terms import KM
from afterslip_solver.materials import Body, Layer
from afterslip_solver.mesh import CurvedFault, Interface
from afterslip_solver.model import Float
from afterslip_solver.waves.fault import (
    FaultPoints,
    curved_points,
    on_ground,
    plane_points,
)
from afterslip_solver.waves.grid import Medium, VoxelGrid
from afterslip_solver.waves.ground import Relief, covering, lowered
from afterslip_solver.waves.medium import sample_medium
from afterslip_workers.engines.waves.model_file import WaveGround

# cells of faults over voxels
_FINER = 0.5

Phase = Callable[[str], None]


def ground_digest(spec: WaveSpec, inputs: Inputs, files: Files) -> str:
    """Return the digest of all that voxels, faults and records follow from."""
    plan = check(spec, inputs)
    table, stations = _table(spec, files), _stations(inputs)
    named = f"{physics.name} {physics.numerics}"
    attenuates = spec.waves.attenuation is not None
    parts = [named, model_digest(spec, files), plan.h, list(plan.voxels), attenuates]
    return digest([*parts, table.tolist(), stations.tolist()])


def build_ground(
    spec: WaveSpec, inputs: Inputs, files: Files, phase: Phase
) -> tuple[WaveGround, dict[str, Any]]:
    """Cut a domain into voxels.

    Parameters
    ----------
    phase : called with what begins.

    Returns
    -------
    The model, and what people want to know of it. Raises SpecError, MaterialError and
    MeshError.
    """
    phase("making voxels")
    plan = check(spec, inputs)
    if inputs.topography is None:
        grid, relief = VoxelGrid.covering(inputs.box, plan.h), None
    else:
        grid, relief = covering(inputs.box, plan.h, inputs.topography)
    medium = _medium(spec.model, inputs, grid, relief)
    phase("shaping faults")
    size = _FINER * grid.h
    faults = {item.name: _fault(item, inputs, size) for item in spec.model.faults}
    _inside(grid, faults)
    notes: list[str] = []
    if relief is not None:
        faults = {name: _in_rock(f, grid, relief, notes) for name, f in faults.items()}
    own = _table(spec, files), _stations(inputs), _quality(spec, grid, relief)
    ground = WaveGround(grid, medium, faults, *own)
    if relief is not None:
        ground = replace(ground, fill=relief.fill, nodes=relief.nodes)
    facts = _facts(spec, plan, ground)
    return ground, {**facts, "notes": [*facts["notes"], *notes]}


def _in_rock(
    fault: FaultPoints, grid: VoxelGrid, relief: Relief, notes: list[str]
) -> FaultPoints:
    """Move cells out of voxels that are mostly air, and note how many and how far."""
    position = lowered(grid, relief.fill, fault.position)
    by = fault.position[:, 2] - position[:, 2]
    if by.any():
        notes.append(
            f"{int((by > 0.0).sum())} of {len(by)} cells of fault {fault.name} were in "
            f"voxels that are mostly air, and are up to {by.max() / KM:.3g} km deeper"
        )
    return replace(fault, position=position)


def _fault(item: Any, inputs: Inputs, size: float) -> FaultPoints:
    if item.plane is not None:
        made = plane_points(plane_fault(item.name, item.plane, inputs.frame), size)
    else:
        found = inputs.interfaces[item.name]
        shape = CurvedFault(item.name, found.points, found.outline)
        made = curved_points(shape, size)
    ground = inputs.topography
    return made if ground is None else on_ground(made, inputs.box, ground)


def _inside(grid: VoxelGrid, faults: dict[str, FaultPoints]) -> None:
    """Refuse faults that leave the voxels, with the numbers."""
    low = np.array(grid.origin)
    high = low + grid.h * (np.array(grid.shape) - 1)
    found = []
    for number, (name, fault) in enumerate(faults.items()):
        out = ((fault.position < low) | (fault.position > high)).any(axis=1)
        if out.any():
            x, y, z = fault.position[out][0] / KM
            found.append(
                Problem(
                    f"model.faults[{number}]",
                    name,
                    f"leaves the voxels, at x {x:.1f}, y {y:.1f}, depth {-z:.1f} km",
                    "make model.domain larger, or the fault smaller",
                )
            )
    if found:
        raise SpecError(found)


def _medium(
    spec: earth.Model, inputs: Inputs, grid: VoxelGrid, relief: Relief | None
) -> Medium:
    layers = [
        Layer(item.name, item.bottom * KM, item.vp * KM, item.vs * KM, item.rho)
        for item in spec.layers
    ]
    bodies = [
        Body(
            name=item.name,
            interface=Interface.fit(inputs.surfaces[item.name]),
            thickness=item.thickness * KM,
            vp=item.vp * KM,
            vs=item.vs * KM,
            rho=item.rho,
        )
        for item in spec.bodies
    ]
    return sample_medium(grid, layers, bodies, inputs.grid, relief)


def _stations(inputs: Inputs) -> Float:
    found = inputs.stations
    return np.zeros((0, 2)) if found is None else np.column_stack([found.x, found.y])


def _quality(spec: WaveSpec, grid: VoxelGrid, relief: Relief | None) -> Float:
    """Return Qp and Qs of planes of voxels, or of all, which are of their middles."""
    layers = spec.model.layers
    if spec.waves.attenuation is None:
        return np.zeros((2, 0))
    middle = grid.axis(2)[:-1] + 0.5 * grid.h
    depth = -middle
    if relief is not None:
        ny, nx = (n // 2 for n in relief.height.shape)
        height = relief.height.reshape(ny, 2, nx, 2).mean(axis=(1, 3))
        depth = -relief.box.unstretched(middle[:, None, None], height)
    bottoms = [layer.bottom * KM for layer in layers[:-1]]
    which = np.searchsorted(bottoms, depth)
    values = np.array([[layer.qp, layer.qs] for layer in layers], dtype=np.float64)
    return np.asarray(np.moveaxis(values[which], -1, 0))


def _table(spec: WaveSpec, files: Files) -> Float:
    """Return the rows of the source-time function's file, if one is named."""
    name = spec.waves.source_time.file
    if name is None:
        return np.zeros((0, 2))
    path = "waves.source_time.file"
    text = files.read(name).decode("utf-8", "replace")
    lines = [row for row in csv.reader(io.StringIO(text)) if row and row[0].strip()]
    try:
        rows = np.array([[float(value) for value in row] for row in lines[1:]])
        function = tabulated(*(rows.T if rows.ndim == 2 else rows[None]))
    except (ValueError, TypeError) as error:
        hint = "write a header, then time_s,share from 0,0 to ...,1"
        raise one_problem(path, plain(name), str(error), hint) from None
    problems = list(too_fast(function, spec.waves.frequency))
    if function.end > spec.waves.duration:
        text = f"ends before the source, which takes {function.end:.4g} s"
        problems.append(Problem("duration", spec.waves.duration.text, text))
    if problems:
        raise SpecError([problem.under("waves") for problem in problems])
    return np.asarray(rows)


def _facts(spec: WaveSpec, plan: VoxelPlan, ground: WaveGround) -> dict[str, Any]:
    nx, ny, nz = (n - 1 for n in ground.grid.shape)
    slowest, fastest, ratio = ground.medium.speeds()
    note = (
        f"{nx} x {ny} x {nz} voxels of {plan.h / KM:.4g} km: "
        f"{slowest / (spec.waves.frequency * plan.h):.1f} in the shortest wavelength"
    )
    return {
        "n_unknowns": 3 * ground.grid.n_node,
        "n_elements": ground.grid.n_voxel,
        "n_node": ground.grid.n_node,
        "quality": {"h": plan.h, "vs": slowest, "vp": fastest, "vp_vs": ratio},
        "notes": [note],
    }
