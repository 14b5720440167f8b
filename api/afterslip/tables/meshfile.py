"""What kind of mesh a file holds, by its content: uploads have no names."""

from __future__ import annotations

from afterslip.errors import one_problem
from afterslip.tables.hdf import check_hdf
from afterslip.tables.netcdf import HDF, is_netcdf

MAX_DECLARED = 16 * 2**30


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
        if content.startswith(HDF):
            check_hdf(content, label, MAX_DECLARED)
        return "exodus"
    if b"<VTKFile" in head and b"UnstructuredGrid" in head:
        # XML's own definitions may grow without bound, and no mesh needs any
        if b"<!" in content.partition(b"<AppendedData")[0].replace(b"<!--", b""):
            raise one_problem(
                label, None, "has XML definitions (<!...>)", "remove them"
            )
        return "vtu"
    raise one_problem(
        label, None, "is not a mesh of Gmsh (.msh), Exodus (.exo) or VTK (.vtu)"
    )
