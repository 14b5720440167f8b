"""Meshes from other programs, and results for them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_solver.mesh.exodus import read_exodus
from afterslip_solver.mesh.external import External, checked
from afterslip_solver.mesh.geometry import Geometry
from afterslip_solver.mesh.imported import imported_geometry
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.mesh.quality import check_quality
from afterslip_solver.model import FaultMesh, Float, Int, TetMesh

_CELLS = ("tetra", "tetra10")
_TRIANGLES = ("triangle", "triangle6")
# cell data that number the parts of a mesh, in the order of trust
_TAGS = ("gmsh:physical", "medit:ref", "tag", "tags", "material", "subdomain")


def import_mesh(
    path: str | Path,
    scale: float = 1.0,
    faults: Sequence[str] = (),
    refine: int = 0,
) -> Geometry:
    """Read a mesh of tetrahedra.

    Gmsh (.msh) names its parts by physical groups, Exodus (.exo, .e) by blocks and
    side sets. VTU and others number them in cell data ``tag``, and the number is the
    name. Elements of second order are used with straight edges.

    Parameters
    ----------
    scale : metres in one unit of the file; 1000 for km.
    faults : names of the surfaces that are faults.
    refine : number of uniform refinements.

    Returns
    -------
    Geometry; ``mesh.tag_names`` are the names of the volumes. Raises MeshError.
    """
    path = Path(path)
    if not path.is_file():
        raise MeshError(f"mesh file {path} does not exist")
    if path.suffix.lower() in (".exo", ".e", ".ex2", ".g"):
        external = _from_exodus(path)
    else:
        external = _from_meshio(path)
    missing = [name for name in faults if name not in external.surfaces]
    if missing:
        known = ", ".join(sorted(external.surfaces)) or "none"
        raise MeshError(
            f"{path.name} has no surface named {', '.join(missing)}; its surfaces are: "
            f"{known}. Make each fault a physical surface (or side set) of its name"
        )
    external = checked(external, scale)
    mesh = second_order(
        external.points, external.cells, external.tags, external.tag_names
    )
    check_quality(mesh)
    triangles = {name: external.surfaces[name] for name in faults}
    return imported_geometry(mesh, triangles, refine)


def export_vtu(
    path: str | Path,
    mesh: TetMesh,
    point_data: Mapping[str, Float] | None = None,
    cell_data: Mapping[str, Float | Int] | None = None,
    faults: Sequence[FaultMesh] = (),
) -> None:
    """Write a mesh for ParaView, P2 elements as they are.

    Parameters
    ----------
    point_data : by name (n_node, ...) values.
    cell_data : by name (n_elem,) values; triangles of faults get NaN or -1.
    faults : written as triangles, numbered from -1 downwards in cell data ``tag``.
    """
    import meshio

    # VTK orders the midpoints of a tetrahedron as this package does
    cells: list[tuple[str, Int]] = [("tetra10", mesh.elements)]
    cells += [("triangle6", fault.triangles) for fault in faults]
    tags = [mesh.tags]
    tags += [np.full(len(f.triangles), -1 - i) for i, f in enumerate(faults)]
    data: dict[str, list[Float | Int]] = {"tag": list(tags)}
    for name, values in (cell_data or {}).items():
        blank = np.nan if np.issubdtype(values.dtype, np.floating) else -1
        data[name] = [values]
        data[name] += [np.full(len(f.triangles), blank) for f in faults]
    points = {k: np.asarray(v) for k, v in (point_data or {}).items()}
    meshio.Mesh(mesh.nodes, cells, point_data=points, cell_data=data).write(path)


def _from_exodus(path: Path) -> External:
    try:
        return read_exodus(path)
    except MeshError:
        raise
    except Exception as error:
        raise MeshError(_unreadable(path, error)) from error


def _unreadable(path: Path, error: BaseException) -> str:
    reason = str(error) or type(error).__name__
    return f"cannot read mesh file {path.name}: {reason[:500]}"


def _from_meshio(path: Path) -> External:
    import meshio

    try:
        # meshio prints what it would better raise
        with contextlib.redirect_stdout(io.StringIO()):
            read = meshio.read(path)
    except (Exception, SystemExit) as error:
        raise MeshError(_unreadable(path, error)) from error
    tag_key = next((key for key in _TAGS if key in read.cell_data), None)
    volumes, surfaces = [], []
    for i, block in enumerate(read.cells):
        corners = np.asarray(block.data, dtype=np.int64)
        tag = np.zeros(len(corners), dtype=np.int64)
        if tag_key is not None:
            tag = np.asarray(read.cell_data[tag_key][i], dtype=np.int64).ravel()
        if block.type in _CELLS:
            volumes.append((corners[:, :4], tag))
        elif block.type in _TRIANGLES:
            surfaces.append((corners[:, :3], tag))
    if not volumes:
        found = ", ".join(sorted({block.type for block in read.cells})) or "nothing"
        raise MeshError(
            f"{path.name} holds no tetrahedra ({found}); save the volume mesh, in gmsh "
            "with a physical volume for each material or with Mesh.SaveAll"
        )
    names = {
        (int(entry[1]), int(entry[0])): str(name)
        for name, entry in read.field_data.items()
    }
    cells = np.concatenate([c for c, _ in volumes])
    numbers, tags = np.unique(
        np.concatenate([t for _, t in volumes]), return_inverse=True
    )
    return External(
        points=np.asarray(read.points, dtype=np.float64),
        cells=cells,
        tags=tags.astype(np.int64),
        tag_names=tuple(names.get((3, int(n)), str(n)) for n in numbers),
        surfaces=_surfaces(surfaces, names),
    )


def _surfaces(
    parts: list[tuple[Int, Int]], names: Mapping[tuple[int, int], str]
) -> dict[str, Int]:
    if not parts:
        return {}
    triangles = np.concatenate([t for t, _ in parts])
    tag = np.concatenate([t for _, t in parts])
    return {names.get((2, int(n)), str(n)): triangles[tag == n] for n in np.unique(tag)}
