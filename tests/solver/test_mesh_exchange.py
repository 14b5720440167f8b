"""Meshes of other programs: names, faults, refusals."""

import h5py
import meshio
import numpy as np
import pytest
from scipy.io import netcdf_file

from afterslip_solver.mesh import MeshError, export_vtu, import_mesh
from afterslip_solver.mesh.mesher import quiet_gmsh
from afterslip_solver.mesh.numbering import signed_volumes
from afterslip_solver.operators import Space
from afterslip_solver.testing.box import box_mesh, box_with_fault

# machines with a GPU may lack the mesher
gmsh = pytest.importorskip("gmsh")


@pytest.fixture(scope="module")
def gmsh_file(tmp_path_factory):
    """Box of two bodies in km with a vertical fault, as gmsh writes it."""
    path = tmp_path_factory.mktemp("gmsh") / "model.msh"
    with quiet_gmsh():
        occ = gmsh.model.occ
        crust = occ.addBox(-50, -50, -20, 100, 100, 20)
        mantle = occ.addBox(-50, -50, -60, 100, 100, 40)
        wire = [occ.addPoint(0, y, z) for y, z in ((-20, -12), (20, -12), (20, 0))]
        wire.append(occ.addPoint(0, -20, 0))
        lines = [occ.addLine(wire[i], wire[(i + 1) % 4]) for i in range(4)]
        face = occ.addPlaneSurface([occ.addCurveLoop(lines)])
        _, parts = occ.fragment([(3, crust), (3, mantle)], [(2, face)])
        occ.synchronize()
        for name, children in zip(("crust", "mantle"), parts, strict=False):
            gmsh.model.addPhysicalGroup(3, [t for _, t in children], name=name)
        gmsh.model.addPhysicalGroup(2, [t for _, t in parts[2]], name="main")
        gmsh.option.setNumber("Mesh.MeshSizeMax", 12.0)
        gmsh.model.mesh.generate(3)
        gmsh.write(str(path))
    return path


def test_gmsh_names_and_faults(gmsh_file):
    geometry = import_mesh(gmsh_file, scale=1e3, faults=["main"])
    mesh, fault = geometry.mesh, geometry.faults["main"]
    assert set(mesh.tag_names) == {"crust", "mantle"}
    volume = signed_volumes(mesh.nodes, mesh.cells)
    crust = mesh.tags == mesh.tag_names.index("crust")
    assert volume[crust].sum() == pytest.approx(100.0 * 100.0 * 20.0 * 1e9)
    assert volume[~crust].sum() == pytest.approx(100.0 * 100.0 * 40.0 * 1e9)
    assert fault.length == pytest.approx(40e3)
    assert fault.width == pytest.approx(12e3)
    assert fault.open_top
    points = mesh.nodes[fault.nodes]
    np.testing.assert_allclose(fault.along, points[:, 1] + 20e3, atol=1e-6)
    np.testing.assert_allclose(fault.down, -points[:, 2], atol=1e-6)
    np.testing.assert_allclose(
        fault.normal, np.tile([1.0, 0.0, 0.0], (len(points), 1)), atol=1e-12
    )


def test_imported_fault_is_split_up_to_the_surface(gmsh_file):
    geometry = import_mesh(gmsh_file, scale=1e3, faults=["main"], refine=1)
    fault, split = geometry.faults["main"], geometry.splits["main"]
    cut = np.zeros(len(fault.nodes), dtype=bool)
    cut[split.index[split.sign != 0.0]] = True
    rim = (
        (fault.along < 1e-3) | (fault.along > 40e3 - 1e-3) | (fault.down > 12e3 - 1e-3)
    )
    np.testing.assert_array_equal(cut, ~rim)
    mesh = geometry.mesh
    assert len(Space.build(mesh, np.zeros(mesh.nodes.shape, bool)).parents) == 1


def test_missing_surface_lists_those_that_exist(gmsh_file):
    with pytest.raises(
        MeshError, match=r"no surface named slab; its surfaces are: main"
    ):
        import_mesh(gmsh_file, scale=1e3, faults=["slab"])


def test_forgotten_unit_is_noticed(gmsh_file):
    with pytest.raises(MeshError, match="scale: 1000 for km"):
        import_mesh(gmsh_file)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(MeshError, match=r"nothing\.msh does not exist"):
        import_mesh(tmp_path / "nothing.msh")


def test_unreadable_file_is_named(tmp_path):
    path = tmp_path / "broken.msh"
    path.write_text("$MeshFormat\nnonsense\n")
    with pytest.raises(MeshError, match=r"cannot read mesh file broken\.msh"):
        import_mesh(path)


def write(path, points, cells, **options):
    meshio.Mesh(points, cells, **options).write(path)
    return path


def test_mesh_without_tetrahedra_is_refused(tmp_path):
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    path = write(tmp_path / "flat.vtu", points, [("triangle", [[0, 1, 2]])])
    with pytest.raises(MeshError, match="no tetrahedra"):
        import_mesh(path)


@pytest.fixture(scope="module")
def box():
    return box_mesh((3, 3, 3), (3e4, 3e4, 3e4))


def test_inverted_elements_are_counted(tmp_path, box):
    cells = box.cells.copy()
    cells[[3, 8]] = cells[[3, 8]][:, [1, 0, 2, 3]]
    path = write(tmp_path / "bad.vtu", box.nodes[: box.n_vertex], [("tetra", cells)])
    with pytest.raises(MeshError, match="2 of 162 elements are inverted or flat"):
        import_mesh(path)


def test_left_handed_files_are_turned(tmp_path, box):
    cells = box.cells[:, [1, 0, 2, 3]]
    path = write(tmp_path / "left.vtu", box.nodes[: box.n_vertex], [("tetra", cells)])
    mesh = import_mesh(path).mesh
    assert signed_volumes(mesh.nodes, mesh.cells).min() > 0.0


def test_doubled_nodes_are_refused(tmp_path, box):
    points = np.vstack([box.nodes[: box.n_vertex], box.nodes[:1]])
    cells = box.cells.copy()
    rows, columns = np.nonzero(cells == 0)
    cells[rows[0], columns[0]] = box.n_vertex
    path = write(tmp_path / "twice.vtu", points, [("tetra", cells)])
    with pytest.raises(MeshError, match="1 nodes lie on top of others"):
        import_mesh(path)


def test_surface_off_zero_is_refused(tmp_path, box):
    points = box.nodes[: box.n_vertex] + np.array([0.0, 0.0, 500.0])
    path = write(tmp_path / "high.vtu", points, [("tetra", box.cells)])
    with pytest.raises(MeshError, match=r"highest point is at z = 0\.5 km"):
        import_mesh(path)


def test_vtu_comes_back_as_it_went(tmp_path):
    geometry = box_with_fault((6, 6, 4), (6e4, 6e4, 4e4), 90.0, 2e4, 1e4, 1e4)
    mesh, fault = geometry.mesh, geometry.faults["main"]
    path = tmp_path / "out.vtu"
    values = np.arange(len(mesh.nodes), dtype=np.float64)
    export_vtu(path, mesh, {"u": values}, {"mu": np.ones(len(mesh.cells))}, [fault])
    again = import_mesh(path, faults=["-1"])
    assert len(again.mesh.elements) == len(mesh.elements)
    np.testing.assert_allclose(
        again.mesh.nodes[: mesh.n_vertex], mesh.nodes[: mesh.n_vertex]
    )
    assert len(again.faults["-1"].triangles) == len(fault.triangles)
    read = meshio.read(path)
    np.testing.assert_array_equal(read.point_data["u"], values)


SIDES = np.array([[0, 1, 3], [1, 2, 3], [0, 3, 2], [0, 2, 1]])


def exodus_arrays(geometry):
    """Two blocks by depth and a side set on the fault, as Exodus stores them."""
    mesh, fault = geometry.mesh, geometry.faults["main"]
    vertices = mesh.nodes[: mesh.n_vertex]
    deep = vertices[mesh.cells, 2].mean(axis=1) < -2e4
    blocks = [mesh.cells[~deep], mesh.cells[deep]]
    cells = np.concatenate(blocks)
    faces = np.sort(cells[:, SIDES], axis=2).reshape(-1, 3)
    wanted = {tuple(t) for t in np.sort(fault.triangles[:, :3], axis=1)}
    found = {}
    for i, face in enumerate(map(tuple, faces)):
        if face in wanted:
            found.setdefault(face, i)
    chosen = np.array(list(found.values()))
    return {
        **{f"coord{a}": vertices[:, i] for i, a in enumerate("xyz")},
        "connect1": (blocks[0] + 1).astype(np.int32),
        "connect2": (blocks[1] + 1).astype(np.int32),
        "elem_ss1": (chosen // 4 + 1).astype(np.int32),
        "side_ss1": (chosen % 4 + 1).astype(np.int32),
        "eb_names": np.array([list("crust".ljust(8, "\0")), list("mantle\0\0")], "S1"),
        "ss_names": np.array([list("main".ljust(8, "\0"))], "S1"),
    }


@pytest.mark.parametrize("kind", ["classic", "hdf5"])
def test_exodus_blocks_and_side_sets(tmp_path, kind):
    geometry = box_with_fault((6, 6, 4), (6e4, 6e4, 4e4), 45.0, 2e4, 1e4, 1e4 * 2**0.5)
    arrays = exodus_arrays(geometry)
    path = tmp_path / "model.exo"
    if kind == "hdf5":
        with h5py.File(path, "w") as file:
            for name, values in arrays.items():
                file[name] = values
    else:
        with netcdf_file(path, "w", version=2) as file:
            for name, values in arrays.items():
                axes = []
                for i, size in enumerate(values.shape):
                    axes.append(f"{name}_{i}")
                    file.createDimension(axes[-1], size)
                file.createVariable(name, values.dtype, axes)[:] = values
    again = import_mesh(path, faults=["main"])
    assert again.mesh.tag_names == ("crust", "mantle")
    centre = again.mesh.nodes[again.mesh.cells, 2].mean(axis=1)
    np.testing.assert_array_equal(again.mesh.tags, (centre < -2e4).astype(int))
    fault = again.faults["main"]
    assert len(fault.triangles) == len(geometry.faults["main"].triangles)
    normal = geometry.faults["main"].normal[0]
    np.testing.assert_allclose(
        fault.normal, np.tile(normal, (len(fault.nodes), 1)), atol=1e-12
    )
