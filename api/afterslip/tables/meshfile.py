"""What kind of mesh a file holds, by its content: uploads have no names."""

from __future__ import annotations

from afterslip.errors import one_problem
from afterslip.tables.netcdf import is_netcdf


def mesh_format(content: bytes, label: str = "mesh") -> str:
    """Return gmsh, exodus or vtu.

    Raises
    ------
    SpecError
        None of these.
    """
    head = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"$MeshFormat") or b"\n$MeshFormat" in head:
        return "gmsh"
    if is_netcdf(content):
        return "exodus"
    if b"<VTKFile" in head and b"UnstructuredGrid" in head:
        return "vtu"
    raise one_problem(
        label, None, "is not a mesh of Gmsh (.msh), Exodus (.exo) or VTK (.vtu)"
    )
