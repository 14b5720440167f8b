"""What kind of mesh a file holds, by its content: uploads have no names."""

from __future__ import annotations

from collections.abc import Mapping
from xml.parsers import expat

from afterslip.errors import one_problem
from afterslip.readers.hdf_process import check_apart
from afterslip.readers.netcdf import HDF, is_netcdf

MAX_DECLARED = 16 * 2**30
_SIZES = ("UInt32", "UInt64")


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
            check_apart(content, label, MAX_DECLARED)
        return "exodus"
    if b"<VTKFile" in head:
        _check_vtu(_root(content, label), label)
        return "vtu"
    raise one_problem(
        label, None, "is not a mesh of Gmsh (.msh), Exodus (.exo) or VTK (.vtu)"
    )


class _Root(Exception):  # noqa: N818 no error: stops the parser
    """The first element of a document was reached."""


def _root(content: bytes, label: str) -> Mapping[str, str]:
    """Return the attributes of a document's root, VTKFile.

    Definitions can only stand before it, so nothing after it needs parsing.
    """
    found: dict[str, str] = {}

    def start(name: str, attributes: dict[str, str]) -> None:
        found.update(attributes if name == "VTKFile" else {})
        raise _Root

    def define(*_: object) -> None:
        # XML's own definitions may grow without bound, and no mesh needs any
        raise one_problem(label, None, "has XML definitions (<!...>)", "remove them")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = define
    try:
        for begin in range(0, len(content), 2**16):
            parser.Parse(content[begin : begin + 2**16], False)
    except _Root:
        pass
    except expat.ExpatError as error:
        raise one_problem(
            f"{label} line {error.lineno}", None, "is not XML", "save it again"
        ) from None
    return found


def _check_vtu(root: Mapping[str, str], label: str) -> None:
    """Refuse what the reader of meshes does not know, or would not end on."""
    if root.get("type") != "UnstructuredGrid":
        raise one_problem(label, root.get("type"), "is no VTK UnstructuredGrid")
    sizes = root.get("header_type", "UInt32")
    if sizes not in _SIZES:
        # of a signed type sizes may be negative: a reader would step back for ever
        raise one_problem(label, sizes, f"header_type must be {' or '.join(_SIZES)}")
