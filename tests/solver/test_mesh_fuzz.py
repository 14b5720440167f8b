"""Any mesh file is read, or refused as a mesh, in little memory and time."""

from __future__ import annotations

import meshio
import numpy as np
import pytest
from guarded import Guarded
from hypothesis import given
from mutation import damaged, examples
from scipy.io import netcdf_file

from afterslip_solver.mesh import MeshError, import_mesh
from afterslip_solver.testing.box import box_mesh

FORMATS = ("mesh.msh", "ascii.msh", "mesh.vtu", "plain.vtu", "mesh.exo")


@pytest.fixture(scope="module")
def guarded():
    process = Guarded("mesh_reader")
    yield process
    process.close()


def exodus(path, connect, sides=((1, 2), (1, 1))):
    box = box_mesh((2, 2, 2), (3e4, 3e4, 3e4))
    with netcdf_file(path, "w") as file:
        points = box.nodes[: box.n_vertex]
        for name, size in (("n", len(points)), ("e", len(connect)), ("four", 4),
                           ("s", len(sides[0]))):  # fmt: skip
            file.createDimension(name, size)
        for axis, values in zip("xyz", points.T, strict=True):
            file.createVariable(f"coord{axis}", "f8", ("n",))[:] = values
        file.createVariable("connect1", "i4", ("e", "four"))[:] = connect
        for name, values in zip(("elem_ss1", "side_ss1"), sides, strict=True):
            file.createVariable(name, "i4", ("s",))[:] = values
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("meshes")
    box = box_mesh((2, 2, 2), (3e4, 3e4, 3e4))
    mesh = meshio.Mesh(
        box.nodes[: box.n_vertex],
        [("tetra", box.cells)],
        cell_data={"gmsh:physical": [np.ones(len(box.cells), np.int32)],
                   "gmsh:geometrical": [np.ones(len(box.cells), np.int32)]},
    )  # fmt: skip
    mesh.write(folder / "mesh.msh", file_format="gmsh22", binary=True)
    mesh.write(folder / "ascii.msh", file_format="gmsh22", binary=False)
    mesh.write(folder / "mesh.vtu")
    mesh.write(folder / "plain.vtu", binary=False)
    exodus(folder / "mesh.exo", box.cells + 1)
    return folder


@pytest.mark.parametrize("name", FORMATS)
def test_valid_files_are_read(files, name):
    assert import_mesh(files / name).mesh.n_vertex == 27


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files(files, tmp_path_factory, guarded, name):
    path = tmp_path_factory.mktemp("damaged") / name

    @examples(40)
    @given(damaged((files / name).read_bytes()))
    def fuzz(content):
        path.write_bytes(content)
        found = guarded("read", str(path))
        assert found is None, f"{found}\n{content[:300]!r} ({len(content)} bytes)"

    fuzz()


@pytest.mark.parametrize("number", [0, -1, 28, 2**31 - 1])
def test_exodus_corner_that_is_no_point_is_refused(tmp_path, number):
    cells = box_mesh((2, 2, 2), (3e4, 3e4, 3e4)).cells + 1
    cells[7, 2] = number
    with pytest.raises(MeshError, match="name points that are not there"):
        import_mesh(exodus(tmp_path / "mesh.exo", cells))


@pytest.mark.parametrize(
    "sides",
    [((0, 1), (1, 1)), ((1, 99), (1, 1)), ((1, 2), (0, 1)), ((1, 2), (1, 5))],
)
def test_exodus_side_that_is_none_is_refused(tmp_path, sides):
    cells = box_mesh((2, 2, 2), (3e4, 3e4, 3e4)).cells + 1
    with pytest.raises(MeshError, match=r"side set 1 .* not there"):
        import_mesh(exodus(tmp_path / "mesh.exo", cells, sides))


def test_exodus_file_that_is_cut_short_is_refused(tmp_path, files):
    path = tmp_path / "mesh.exo"
    path.write_bytes((files / "mesh.exo").read_bytes()[:900])
    with pytest.raises(MeshError, match=r"cannot read mesh file mesh\.exo"):
        import_mesh(path)
