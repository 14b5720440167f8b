"""Meshes around planes: conformity, size, refinement, clear refusals."""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from afterslip_common.terms import KM
from afterslip_solver.mesh import (
    Box,
    MeshError,
    MeshSize,
    PlaneFault,
    build_mesh,
    quality_report,
    surface_trace,
)
from afterslip_solver.mesh.fault import triangle_normals
from afterslip_solver.mesh.numbering import signed_volumes

BOX = Box((-150 * KM, 150 * KM), (-120 * KM, 120 * KM), 100 * KM)
SIZE = MeshSize(6 * KM, 60 * KM, 0.4)
VOLUME = 300.0 * 240.0 * 100.0 * KM**3


def plane(name="main", x=3.0, y=-4.0, top=5.0, strike=37.0, dip=30.0, length=60, w=36):
    return PlaneFault(name, x * KM, y * KM, top * KM, strike, dip, length * KM, w * KM)


def slip_area(mesh, fault):
    corner = np.searchsorted(fault.nodes, fault.triangles[:, :3])
    along, down = fault.along[corner].mean(axis=1), fault.down[corner].mean(axis=1)
    inside = (along > 0) & (along < fault.length) & (down > 0) & (down < fault.width)
    normals = triangle_normals(mesh.nodes, fault.triangles[inside])
    return 0.5 * np.linalg.norm(normals, axis=1).sum()


@pytest.fixture(scope="module")
def buried():
    return build_mesh(BOX, [plane()], SIZE)


PLANES = [
    {"top": 0.0},
    {"top": 1.0},
    {"top": 0.0, "dip": 90.0, "strike": 120.0},
    {"top": 8.0, "dip": 90.0, "strike": 0.0},
    {"top": 0.0, "dip": 12.0, "strike": 200.0},
]


@pytest.mark.parametrize("options", PLANES)
def test_rectangle_is_embedded_with_its_area_and_margin(options):
    geometry = build_mesh(BOX, [plane(**options)], SIZE)
    mesh, fault = geometry.mesh, geometry.faults["main"]
    volume = signed_volumes(mesh.nodes, mesh.cells)
    assert volume.min() > 0.0
    assert volume.sum() == pytest.approx(VOLUME, rel=1e-10)
    assert slip_area(mesh, fault) == pytest.approx(60 * 36 * KM**2, rel=1e-9)
    spec = plane(**options)
    off = (mesh.nodes[fault.nodes] - spec.origin) @ spec.axes[2]
    assert np.abs(off).max() < 1e-6
    assert fault.open_top == (options["top"] == 0.0)
    assert fault.along.min() == pytest.approx(-SIZE.fault)
    assert fault.along.max() == pytest.approx(fault.length + SIZE.fault)
    assert fault.down.max() == pytest.approx(fault.width + SIZE.fault)
    assert quality_report(mesh).gamma_min > 0.05


def test_tip_lies_inside_the_split_surface(buried):
    fault, split = buried.faults["main"], buried.splits["main"]
    split_at = np.zeros(len(fault.nodes), dtype=bool)
    split_at[split.index[split.sign != 0.0]] = True
    near = 1e-6 * KM
    slipping = (fault.along > -near) & (fault.along < fault.length + near)
    slipping &= (fault.down > -near) & (fault.down < fault.width + near)
    assert split_at[slipping].all()
    assert (np.abs(fault.down) < near).sum() > 10


@pytest.mark.parametrize("options", PLANES)
def test_sides_agree_with_the_signed_distance(options):
    geometry = build_mesh(BOX, [plane(**options)], SIZE)
    split, spec = geometry.splits["main"], plane(**options)
    mesh = geometry.mesh
    centre = mesh.nodes[mesh.cells[split.elements]].mean(axis=1)
    side = 0.5 * np.sign((centre - spec.origin) @ spec.axes[2])
    decided = split.sign != 0.0
    expected = np.broadcast_to(side[:, None], decided.shape)
    np.testing.assert_array_equal(split.sign[decided], expected[decided])


def test_shallow_margin_ends_at_the_free_surface():
    geometry = build_mesh(BOX, [plane(top=1.0)], SIZE)
    fault = geometry.faults["main"]
    assert not fault.open_top
    assert geometry.mesh.nodes[fault.nodes, 2].max() == 0.0


def test_margin_is_cut_where_the_domain_ends():
    geometry = build_mesh(BOX, [plane(x=147.0, strike=0.0, dip=90.0)], SIZE)
    assert geometry.faults["main"].along.min() == pytest.approx(-SIZE.fault)
    geometry = build_mesh(BOX, [plane(y=87.0, strike=0.0, dip=90.0)], SIZE)
    margin = -geometry.faults["main"].along.min()
    assert 0.0 < margin < 3.0 * KM


def test_same_input_gives_the_same_mesh(buried):
    again = build_mesh(BOX, [plane()], SIZE)
    np.testing.assert_array_equal(again.mesh.nodes, buried.mesh.nodes)
    np.testing.assert_array_equal(again.mesh.elements, buried.mesh.elements)


def test_builds_in_a_thread(buried):
    found = []
    thread = threading.Thread(
        target=lambda: found.append(build_mesh(BOX, [plane()], SIZE))
    )
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0].mesh.nodes, buried.mesh.nodes)


def test_a_process_that_has_meshed_outlives_a_closed_pipe():
    code = textwrap.dedent("""
        import os, threading
        from afterslip_solver.mesh.mesher import quiet_gmsh

        def mesh():
            with quiet_gmsh():
                pass

        thread = threading.Thread(target=mesh)
        thread.start()
        thread.join()
        reading, writing = os.pipe()
        os.close(reading)
        try:
            os.write(writing, b"is anybody there?")
        except BrokenPipeError:
            print("nobody")
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "nobody\n"), done.stderr


def test_sizes_grow_from_the_fault(buried):
    mesh, fault = buried.mesh, buried.faults["main"]
    area = 0.5 * np.linalg.norm(triangle_normals(mesh.nodes, fault.triangles), axis=1)
    assert np.sqrt(np.median(area) * 4 / np.sqrt(3)) == pytest.approx(
        SIZE.fault, rel=0.2
    )
    report = quality_report(mesh)
    assert report.gamma_mean > 0.65
    assert report.edge_max < 2.5 * SIZE.far
    assert report.n_unknowns == 3 * len(mesh.nodes)


def test_refinement_keeps_everything_and_makes_eight_of_one(buried):
    fine = build_mesh(BOX, [plane()], SIZE, refine=1)
    coarse, mesh, fault = buried.mesh, fine.mesh, fine.faults["main"]
    assert len(mesh.elements) == 8 * len(coarse.elements)
    assert mesh.n_vertex == len(coarse.nodes)
    np.testing.assert_array_equal(mesh.nodes[: len(coarse.nodes)], coarse.nodes)
    # a parent's corners are the first corners of its first four children
    children = mesh.cells.reshape(-1, 8, 4)
    for corner in range(4):
        np.testing.assert_array_equal(
            children[:, corner, corner], coarse.cells[:, corner]
        )
    volume = signed_volumes(mesh.nodes, mesh.cells)
    assert volume.min() > 0.0
    np.testing.assert_allclose(
        volume.reshape(-1, 8).sum(axis=1), signed_volumes(coarse.nodes, coarse.cells)
    )
    assert len(fault.triangles) == 4 * len(buried.faults["main"].triangles)
    spec = plane()
    off = (mesh.nodes[fault.nodes] - spec.origin) @ spec.axes[2]
    assert np.abs(off).max() < 1e-6
    assert slip_area(mesh, fault) == pytest.approx(60 * 36 * KM**2, rel=1e-9)
    # the shortest diagonal keeps elements from getting worse
    assert quality_report(mesh).aspect_max < 1.3 * quality_report(coarse).aspect_max


def test_layers_are_conforming():
    horizons = (12 * KM, 35 * KM)
    geometry = build_mesh(BOX, [plane(top=0.0)], SIZE, horizons)
    mesh = geometry.mesh
    z = mesh.nodes[mesh.cells, 2]
    for depth in horizons:
        above = (z >= -depth - 1e-6).all(axis=1)
        below = (z <= -depth + 1e-6).all(axis=1)
        assert np.all(above | below)
    assert geometry.notes == ()
    assert quality_report(mesh).gamma_min > 0.05


def test_a_layer_that_grazes_an_edge_is_followed_with_few_bad_elements():
    geometry = build_mesh(BOX, [plane(top=5.0)], SIZE, (5.5 * KM, 40 * KM))
    assert geometry.notes == ()
    mesh = geometry.mesh
    z = mesh.nodes[mesh.cells, 2]
    # vertices of the fault do not move: there the bottom is off by a part of an edge
    off = 0.2 * SIZE.fault
    above = (z >= -5.5 * KM - off).all(axis=1)
    below = (z <= -5.5 * KM + off).all(axis=1)
    at = mesh.nodes[mesh.cells].mean(axis=1) - mesh.nodes[
        geometry.faults["main"].nodes
    ].mean(axis=0)
    near = np.linalg.norm(at, axis=1) < 40 * KM
    assert near.sum() > 1000
    assert np.all((above | below)[near])
    assert quality_report(mesh).gamma_min > 0.01


@pytest.mark.parametrize("depth", [7.0, 8.5, 37.95, 39.0, 41.0])
def test_margin_of_a_plane_makes_way_for_a_layer(depth):
    """The rectangle itself lies between 12 and 36 km; one element is 6 km."""
    fault = plane(top=12.0, dip=42.0)
    geometry = build_mesh(BOX, [fault], SIZE, (depth * KM,))
    mesh, own = geometry.mesh, geometry.faults["main"]
    assert geometry.notes == ()
    z = -mesh.nodes[mesh.cells, 2]
    above = (z <= depth * KM + 1e-6).all(axis=1)
    assert np.all(above | (z >= depth * KM - 1e-6).all(axis=1))
    assert slip_area(mesh, own) == pytest.approx(60 * 36 * KM**2, rel=1e-9)
    assert quality_report(mesh).gamma_min > 0.05


def test_two_faults_share_a_mesh():
    first = plane(x=-50.0, strike=0.0, dip=60.0, top=0.0)
    second = plane("other", x=50.0, strike=90.0, dip=45.0, length=40, w=20)
    geometry = build_mesh(BOX, [first, second], SIZE)
    assert set(geometry.faults) == {"main", "other"}
    mesh = geometry.mesh
    assert slip_area(mesh, geometry.faults["other"]) == pytest.approx(800 * KM**2)
    assert slip_area(mesh, geometry.faults["main"]) == pytest.approx(2160 * KM**2)


def test_no_fault_gives_a_plain_box():
    geometry = build_mesh(BOX, [], SIZE)
    assert geometry.faults == {}
    volume = signed_volumes(geometry.mesh.nodes, geometry.mesh.cells)
    assert volume.sum() == pytest.approx(VOLUME)
    assert len(surface_trace(geometry.mesh).faces) > 10


@pytest.mark.parametrize(
    ("faults", "size", "message"),
    [
        ([plane(x=140.0)], SIZE, "leaves the domain"),
        ([plane(w=300.0, dip=60.0)], SIZE, "leaves the domain"),
        ([plane(), plane()], SIZE, "share a name"),
        (
            [plane(top=0.0), plane("other", top=0.0, x=2.8)],
            SIZE,
            "main and other come closer",
        ),
        ([plane(dip=0.0)], SIZE, "dip between 0 and 90"),
        ([plane(dip=120.0)], SIZE, "dip between 0 and 90"),
        ([plane(top=-2.0)], SIZE, "top not negative"),
        ([plane()], MeshSize(60 * KM, 6 * KM), "mesh.size"),
    ],
)
def test_impossible_geometry_is_one_clear_error(faults, size, message):
    with pytest.raises(MeshError, match=message):
        build_mesh(BOX, faults, size)
