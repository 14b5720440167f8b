"""The solver's model from a spec and its files; kilometres end here."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from afterslip.schemas import earth
from afterslip.schemas.fault import Fault
from afterslip.schemas.rheology import Burgers, Maxwell
from afterslip.spec.coverage import plane_fault
from afterslip.spec.files import Files
from afterslip.spec.inputs import Inputs
from afterslip_common.geometry import PlaneFault
from afterslip_common.terms import KM
from afterslip_solver import mesh as meshes
from afterslip_solver.materials import (
    Body,
    Layer,
    assign,
    describe_misfits,
    restoring_force,
)
from afterslip_solver.materials.properties import MaterialError
from afterslip_solver.mesh import CurvedFault, Geometry, Interface, MeshError
from afterslip_solver.model import Model, Placement, TetMesh

_SUFFIX = {"gmsh": ".msh", "exodus": ".exo", "vtu": ".vtu"}

# follows what `describe_misfits` says
STEPS_COST = (
    "space_error holds only a part of what these steps cost (docs/verification.md)"
)

Phase = Callable[[str], None]


def build_model(
    spec: earth.Model, inputs: Inputs, files: Files, phase: Phase
) -> tuple[Model, dict[str, Any]]:
    """Mesh, materials and supports.

    Parameters
    ----------
    inputs : the spec's files, read and checked.
    files : where they came from; a mesh is read from there.
    phase : called with what begins.

    Returns
    -------
    The model, and what people want to know of it: {"n_unknowns", "n_elements",
    "n_node", "quality", "notes", "materials"}. Raises MeshError and MaterialError.
    """
    phase("meshing")
    parts = _parts(spec, inputs)
    geometry = _geometry(spec, inputs, files, parts[1])
    phase("assigning materials")
    with ThreadPoolExecutor(1) as beside:
        quality = beside.submit(meshes.quality_report, geometry.mesh)
        model, notes = _assembled(spec, inputs, geometry, parts)
    if spec.mesh.size is not None and not spec.mesh.refine:
        phase("meshing with longer edges")
        try:
            longer = _geometry(spec, inputs, files, parts[1], 2.0)
            coarse, _ = _assembled(spec, inputs, longer, parts)
            model = replace(model, coarser=coarse)
        except (MeshError, MaterialError) as error:
            notes.append(f"the error of the mesh cannot be estimated: {error}")
    return model, _facts(model, quality.result(), notes)


def _assembled(
    spec: earth.Model,
    inputs: Inputs,
    geometry: Geometry,
    parts: tuple[list[Layer], list[Body]],
) -> tuple[Model, list[str]]:
    """Return the model of layers and bodies on a mesh, and notes."""
    layers, bodies = parts
    imported, mesh = spec.mesh.file is not None, geometry.mesh
    walls = spec.boundary.sides, spec.boundary.bottom
    # seconds each where there are millions of elements
    with ThreadPoolExecutor() as beside:
        misfits = beside.submit(_misfits, spec, geometry, parts)
        fixed = beside.submit(meshes.boundary_conditions, mesh, *walls)
        surface = beside.submit(meshes.surface_trace, mesh)
        materials = assign(mesh, layers, bodies, inputs.grid, by_tag=imported)
    restoring, notes = None, list(geometry.notes)
    notes += meshes.describe_spanning(mesh)
    notes += misfits.result()
    if spec.gravity.restoring:
        restoring, more = restoring_force(mesh, materials.rho)
        notes += more
    model = Model(
        mesh=mesh,
        materials=materials,
        fixed=fixed.result(),
        surface=surface.result(),
        faults=geometry.faults,
        splits=geometry.splits,
        restoring=restoring,
        placement=_placement(inputs, mesh),
    )
    return model, notes


def _misfits(
    spec: earth.Model, geometry: Geometry, parts: tuple[list[Layer], list[Body]]
) -> list[str]:
    """Say how far boundaries are from a mesh that was built for them."""
    if spec.mesh.size is None:
        return []
    on_faults = [geometry.mesh.nodes[f.nodes] for f in geometry.faults.values()]
    points = np.concatenate(on_faults) if on_faults else None
    edge = spec.mesh.size.fault * KM
    misfits = list(describe_misfits(geometry.mesh, *parts, points, edge))
    steps = any(misfit.steps for misfit in misfits)
    return [misfit.note for misfit in misfits] + [STEPS_COST] * steps


def _placement(inputs: Inputs, mesh: TetMesh) -> Placement | None:
    """Say where the mesh is on the Earth; None where it stays in the box."""
    frame, ground = inputs.frame, inputs.topography
    if not frame.spherical and ground is None:
        return None
    lift = None
    if ground is not None:
        lift = ground.at(*mesh.nodes[: mesh.n_vertex, :2].T)
    return meshes.place(mesh, frame.radius, lift)


def _geometry(
    spec: earth.Model,
    inputs: Inputs,
    files: Files,
    bodies: list[Body],
    longer: float = 1.0,
) -> Geometry:
    """Mesh the domain, or read the mesh.

    Parameters
    ----------
    bodies : whose sides the mesh follows.
    longer : factor on the edges of a mesh that is built; faults, their margins and
        the layers that are embedded stay.
    """
    size = spec.mesh.size
    if size is None:
        return _imported(spec, inputs, files)
    lengths = size.fault * longer * KM, size.far * longer * KM
    return meshes.build_mesh(
        inputs.box,
        [_fault(item, inputs, _tolerance(spec)) for item in spec.faults],
        meshes.MeshSize(*lengths, size.growth * longer, size.ends),
        horizons=[layer.bottom * KM for layer in spec.layers[:-1]],
        refine=spec.mesh.refine,
        clearance=size.fault * KM,
        plates=bodies,
    )


def _imported(spec: earth.Model, inputs: Inputs, files: Files) -> Geometry:
    """Read the mesh that the spec names; readers tell formats by the file's name."""
    suffix = _SUFFIX[inputs.mesh_format or "gmsh"]
    with TemporaryDirectory(prefix="afterslip-mesh-") as folder:
        path = Path(folder) / f"mesh{suffix}"
        path.write_bytes(files.read(spec.mesh.file or ""))
        return meshes.import_mesh(
            path,
            scale=KM,
            faults=[fault.name for fault in spec.faults],
            refine=spec.mesh.refine,
        )


def _tolerance(spec: earth.Model) -> float | None:
    """Return the largest misfit of surfaces, m, where one is given."""
    return None if spec.mesh.fit is None else spec.mesh.fit * KM


def _fault(
    spec: Fault, inputs: Inputs, tolerance: float | None
) -> PlaneFault | CurvedFault:
    plane = spec.plane
    if plane is None:
        found = inputs.interfaces[spec.name]
        return CurvedFault(spec.name, found.points, found.outline, tolerance=tolerance)
    return plane_fault(spec.name, plane, inputs.frame)


def _properties(spec: earth.Material) -> dict[str, Any]:
    found = {"vp": spec.vp * KM, "vs": spec.vs * KM, "rho": spec.rho}
    if spec.rheology is None:
        return found
    law = spec.rheology.law
    if isinstance(law, Maxwell | Burgers):
        # arrays of their own, which a grid of viscosities may replace
        return found | law.model_dump()
    return found | {"branches": law.arrays}


def _parts(spec: earth.Model, inputs: Inputs) -> tuple[list[Layer], list[Body]]:
    layers = [
        Layer(name=item.name, bottom=item.bottom * KM, **_properties(item))
        for item in spec.layers
    ]
    # the last one goes on to the bottom of the domain
    layers[-1] = replace(layers[-1], bottom=max(layers[-1].bottom, inputs.box.depth))
    bodies = [
        Body(
            name=item.name,
            interface=Interface.fit(inputs.surfaces[item.name], _tolerance(spec)),
            thickness=item.thickness * KM,
            **_properties(item),
        )
        for item in spec.bodies
    ]
    return layers, bodies


def _facts(
    model: Model, quality: meshes.QualityReport, notes: list[str]
) -> dict[str, Any]:
    materials = model.materials
    flowing = materials.relaxation_time[materials.creeps]
    return {
        "n_node": len(model.mesh.nodes),
        "n_unknowns": 3 * len(model.mesh.nodes),
        "n_elements": len(model.mesh.elements),
        "n_surface_node": len(model.surface.nodes),
        "quality": asdict(quality),
        "relaxation_time_min_s": float(flowing.min()) if len(flowing) else None,
        "notes": notes,
    }
