"""Curved interfaces: fit, embedding, sides, unrolled coordinates, real data."""

import os
from pathlib import Path

import numpy as np
import pytest

from afterslip_common.terms import KM
from afterslip_solver.mesh import (
    Box,
    CurvedFault,
    Interface,
    MeshError,
    MeshSize,
    build_mesh,
    quality_report,
)
from afterslip_solver.mesh.curved import place_curved
from afterslip_solver.mesh.fault import triangle_normals
from afterslip_solver.mesh.mesher import Mesher
from afterslip_solver.mesh.numbering import signed_volumes
from afterslip_solver.operators import Space

BOX = Box((-300 * KM, 300 * KM), (-300 * KM, 300 * KM), 200 * KM)
SIZE = MeshSize(12 * KM, 100 * KM, 0.4)
STRIKE = np.radians(30.0)


def slab_points(shallowest=8.0, deepest=60.0, n=40):
    """Cylinder with a horizontal axis: circle of 150 km, dip 10 degrees at z = 0."""
    s, depth = np.meshgrid(
        np.linspace(-120, 120, n) * KM, np.linspace(shallowest, deepest, n) * KM
    )
    d = circle(depth)
    x = s * np.sin(STRIKE) + d * np.cos(STRIKE)
    y = s * np.cos(STRIKE) - d * np.sin(STRIKE)
    return np.column_stack([x.ravel(), y.ravel(), -depth.ravel()])


def circle(depth):
    """Distance across strike at which the cylinder has a depth."""
    radius, dip = 150 * KM, np.radians(10.0)
    top = radius * np.cos(dip)
    return np.sqrt(radius**2 - (top - depth) ** 2) - radius * np.sin(dip)


def across(points):
    return points[:, 0] * np.cos(STRIKE) - points[:, 1] * np.sin(STRIKE)


@pytest.fixture(scope="module")
def geometry():
    return build_mesh(BOX, [CurvedFault("slab", slab_points(), None, 50 * KM)], SIZE)


def test_interface_recovers_strike_and_depth():
    smooth = Interface.fit(slab_points())
    assert np.degrees(smooth.strike) == pytest.approx(30.0, abs=0.5)
    assert smooth.misfit_rms < 0.4 * KM
    depth = np.array([10.0, 25.0, 45.0]) * KM
    d = circle(depth)
    found = smooth.depth(d * np.cos(STRIKE), -d * np.sin(STRIKE))
    np.testing.assert_allclose(found, depth, atol=0.8 * KM)


def test_interface_has_depth_zero_seaward_of_the_trench():
    smooth = Interface.fit(slab_points())
    d = np.array([-200.0, -60.0]) * KM
    assert np.all(smooth.depth(d * np.cos(STRIKE), -d * np.sin(STRIKE)) == 0.0)


def test_interface_goes_on_to_the_surface_with_the_local_dip():
    smooth = Interface.fit(slab_points(shallowest=10.0))
    trench = float(smooth.across(0.0, 0.0))
    slope = float(smooth.slope(0.0, 10.0 * KM))
    assert trench == pytest.approx(
        float(smooth.across(0.0, 10.0 * KM)) - 10.0 * KM * slope, abs=1.0
    )


def test_dip_of_the_interface_is_that_of_the_circle():
    smooth = Interface.fit(slab_points())
    depth = 30.0 * KM
    d = circle(depth)
    expected = np.arccos((150 * np.cos(np.radians(10.0)) - 30.0) / 150)
    dip = smooth.dip(d * np.cos(STRIKE), -d * np.sin(STRIKE))
    assert float(dip) == pytest.approx(expected, abs=np.radians(1.0))


def test_depth_and_dip_are_those_of_the_spline():
    smooth = Interface.fit(slab_points())
    rng = np.random.default_rng(3)
    # beyond the data too, where the spline's ends go on
    x, y = rng.uniform(-250, 250, (2, 50_000)) * KM
    depth, dip = smooth.depth_and_dip(x, y)
    s, d = smooth.local(x, y)
    # SciPy's derivative; both round sums of sixteen terms
    np.testing.assert_allclose(1 / np.tan(dip), smooth.slope(s, depth), rtol=1e-9)
    inside = (depth > 8.0 * KM) & (depth < 60.0 * KM) & (np.abs(s) < 120.0 * KM)
    assert inside.sum() > 1_000
    # linear between the 161 lines and depths of a table
    off = d - smooth.across(s, depth)
    assert np.abs(off[inside]).max() < 20.0


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.zeros((5, 3)), "at least 12 points"),
        (np.full((20, 3), np.nan), "not finite"),
        (np.random.default_rng(0).normal(size=(30, 3)) * [1e4, 1e4, 0], "horizontal"),
    ],
)
def test_points_that_are_no_interface_are_refused(points, message):
    with pytest.raises(MeshError, match=message):
        Interface.fit(points)


def test_embedded_surface_follows_the_points(geometry):
    fault, mesh = geometry.faults["slab"], geometry.mesh
    vertex = fault.nodes[fault.nodes < mesh.n_vertex]
    points = mesh.nodes[vertex]
    deep = points[:, 2] < -10 * KM
    off = across(points[deep]) - circle(-points[deep, 2])
    assert np.abs(off).max() < 3.0 * KM
    assert fault.open_top
    assert points[:, 2].max() == 0.0
    volume = signed_volumes(mesh.nodes, mesh.cells)
    assert volume.min() > 0.0
    assert volume.sum() == pytest.approx(600.0 * 600.0 * 200.0 * KM**3, rel=1e-9)


def test_sides_of_a_curved_fault(geometry):
    """Away from the triangles' sagitta, geometry must agree with topology."""
    fault, split, mesh = (
        geometry.faults["slab"],
        geometry.splits["slab"],
        geometry.mesh,
    )
    smooth = Interface.fit(slab_points())
    centre = mesh.nodes[mesh.cells[split.elements]].mean(axis=1)
    above = smooth.depth(centre[:, 0], centre[:, 1]) + centre[:, 2]
    clear = np.abs(above) > 1.0 * KM
    side = np.broadcast_to(0.5 * np.sign(above)[:, None], split.sign.shape)
    decided = (split.sign != 0.0) & clear[:, None]
    assert decided.sum() > 1000
    np.testing.assert_array_equal(split.sign[decided], side[decided])
    # around each node that is cut, both sides are present
    for sign in (0.5, -0.5):
        touched = np.unique(split.index[split.sign == sign])
        assert len(touched) == len(np.unique(split.index[split.sign != 0.0]))
    inside = (fault.along > 0) & (fault.along < fault.length)
    inside &= (fault.down > -1.0) & (fault.down < fault.width)
    cut = np.isin(np.arange(len(fault.nodes)), split.index[split.sign != 0.0])
    assert cut[inside].all()


def test_local_axes_are_orthonormal_and_dip_to_the_right(geometry):
    fault = geometry.faults["slab"]
    for a, b, c in (
        (fault.strike, fault.updip, fault.normal),
        (fault.updip, fault.normal, fault.strike),
    ):
        np.testing.assert_allclose(np.cross(a, b), c, atol=1e-12)
    assert np.all(fault.strike[:, 2] == 0.0)
    assert np.all(fault.normal[:, 2] > 0.0)
    azimuth = np.degrees(np.arctan2(fault.strike[:, 0], fault.strike[:, 1]))
    inside = (fault.down > 0.1 * fault.width) & (fault.down < fault.width)
    assert np.abs(azimuth[inside] - 30.0).max() < 12.0


def test_down_is_arc_length():
    radius, dip = 150 * KM, np.radians(10.0)
    slab = CurvedFault("slab", slab_points(0.0), None, 50 * KM)
    geometry = build_mesh(BOX, [slab], SIZE)
    fault, mesh = geometry.faults["slab"], geometry.mesh
    depth = -mesh.nodes[fault.nodes, 2]
    arc = radius * (np.arccos(np.cos(dip) - depth / radius) - dip)
    vertex = fault.nodes < mesh.n_vertex
    np.testing.assert_allclose(fault.down[vertex], arc[vertex], atol=4 * KM)
    assert fault.down[depth == 0.0] == pytest.approx(0.0, abs=1.0)
    assert fault.length == pytest.approx(240 * KM, rel=0.02)


def test_refined_vertices_lie_on_the_smooth_interface(geometry):
    fault = CurvedFault("slab", slab_points(), None, 50 * KM)
    fine = build_mesh(BOX, [fault], SIZE, refine=1)
    mesh, surface = fine.mesh, fine.faults["slab"]
    assert len(mesh.elements) == 8 * len(geometry.mesh.elements)
    assert signed_volumes(mesh.nodes, mesh.cells).min() > 0.0

    smooth = Interface.fit(slab_points())

    def off(points):
        points = points[points[:, 2] < -10 * KM]
        return np.sqrt(np.mean((across(smooth.project(points)) - across(points)) ** 2))

    middle = geometry.mesh.nodes[np.unique(geometry.faults["slab"].triangles[:, 3:])]
    vertex = mesh.nodes[np.unique(surface.triangles[:, :3])]
    assert off(vertex) < 0.25 * off(middle)
    assert not any("stay on straight edges" in note for note in fine.notes)
    # the solver still finds what was halved
    (parents,) = Space.build(mesh, np.zeros(mesh.nodes.shape, bool)).parents
    assert len(parents.cells) == len(geometry.mesh.cells)


def test_fitted_control_points_that_reach_the_trench():
    """A grid of 140 points that begins above the free surface."""
    s = np.linspace(-120, 120, 14) * KM
    depth = np.array([-1.5, 0, 4, 9, 15, 22, 30, 40, 50, 60]) * KM
    s, depth = (a.ravel() for a in np.meshgrid(s, depth))
    d = circle(depth)
    points = np.column_stack(
        [
            s * np.sin(STRIKE) + d * np.cos(STRIKE),
            s * np.cos(STRIKE) - d * np.sin(STRIKE),
            -depth,
        ]
    )
    geometry = build_mesh(BOX, [CurvedFault("slab", points, None, 50 * KM)], SIZE)
    fault = geometry.faults["slab"]
    assert fault.open_top
    trace = geometry.mesh.nodes[fault.nodes]
    trace = trace[trace[:, 2] == 0.0]
    np.testing.assert_allclose(across(trace), 0.0, atol=4 * KM)


def buried():
    """Return a fault between 30 and 45 km of depth."""
    corners = [(-80.0, 30.0), (70.0, 30.0), (70.0, 45.0), (-80.0, 45.0)]
    outline = []
    for s, depth in corners:
        d = circle(depth * KM)
        outline.append(
            [
                s * KM * np.sin(STRIKE) + d * np.cos(STRIKE),
                s * KM * np.cos(STRIKE) - d * np.sin(STRIKE),
            ]
        )
    return CurvedFault("slab", slab_points(), np.array(outline))


def test_outline_bounds_the_slipping_part():
    fault = buried()
    geometry = build_mesh(BOX, [fault], MeshSize(8 * KM, 100 * KM, 0.4))
    surface, mesh = geometry.faults["slab"], geometry.mesh
    assert not surface.open_top
    assert surface.length == pytest.approx(150 * KM, rel=0.02)
    edge = mesh.nodes[surface.nodes][np.abs(surface.down) < 1.5 * KM]
    inner = np.abs(edge[:, 2] + 30 * KM)
    assert np.median(inner) < 1.5 * KM
    # a margin of one element lies around the buried edges
    assert surface.down.min() < -6 * KM
    assert surface.down.max() > surface.width + 6 * KM


def test_fault_that_leaves_the_domain_is_named():
    small = Box((-80 * KM, 80 * KM), (-80 * KM, 80 * KM), 200 * KM)
    with pytest.raises(MeshError, match="fault slab leaves the domain"):
        build_mesh(small, [CurvedFault("slab", slab_points())], SIZE)


@pytest.mark.parametrize("depth", [24.0, 25.5, 27.0])
def test_margin_of_a_curved_fault_makes_way_for_a_layer_at_its_top(depth):
    """It would end at 25 km; a bottom that passes beside that edge would be cut."""
    size = MeshSize(8 * KM, 100 * KM, 0.4)
    geometry = build_mesh(BOX, [buried()], size, [depth * KM])
    mesh = geometry.mesh
    assert len(geometry.notes) == 1
    z = -mesh.nodes[mesh.cells, 2]
    above = (z <= depth * KM + 1e-6).all(axis=1)
    assert np.all(above | (z >= depth * KM - 1e-6).all(axis=1))
    assert quality_report(mesh).gamma_1pct > 0.3
    upper = place_curved(buried(), BOX, 8 * KM, [depth * KM]).edge_depths[0]
    assert upper == depth * KM or abs(upper - depth * KM) >= 0.3 * 8 * KM - 1e-6


@pytest.mark.parametrize("depths", [(10, 35), (5, 20, 80), (50,), (58,), (62,)])
def test_bottoms_of_layers_are_embedded_beside_a_curved_fault(depths):
    """Also where they would pass close to the lower edge of the embedded surface."""
    fault = CurvedFault("slab", slab_points(), None, 50 * KM)
    geometry = build_mesh(BOX, [fault], SIZE, [depth * KM for depth in depths])
    mesh = geometry.mesh
    thin = [note for note in geometry.notes if "thin beside elements" in note]
    assert len(thin) == (5 in depths)
    assert len(geometry.notes) == 1 + len(thin)
    z = -mesh.nodes[mesh.cells, 2]
    for depth in set(depths) - {5}:
        above = (z <= depth * KM + 1e-6).all(axis=1)
        below = (z >= depth * KM - 1e-6).all(axis=1)
        assert np.all(above | below)
    assert signed_volumes(mesh.nodes, mesh.cells).min() > 0.0
    quality = quality_report(mesh)
    assert quality.gamma_1pct > 0.3
    assert quality.aspect_max < 6.0


def test_a_layer_that_gmsh_cannot_mesh_beside_a_curved_fault_is_cut_into_its_mesh(
    monkeypatch,
):
    whole = Mesher.mesh

    def mesh(self, layers=()):
        if self.planes:
            raise MeshError("gmsh could not mesh the domain (planted)")
        return whole(self, layers)

    monkeypatch.setattr(Mesher, "mesh", mesh)
    fault = CurvedFault("slab", slab_points(), None, 50 * KM)
    geometry = build_mesh(BOX, [fault], SIZE, [35 * KM])
    corners = geometry.mesh.nodes[geometry.mesh.cells]
    height = corners[..., 2] + 35 * KM
    longest = np.linalg.norm(corners[:, :, None] - corners[:, None], axis=3).max((1, 2))
    # vertices of the fault do not move: there it may be off by a part of an edge
    both = np.minimum(height.max(axis=1), -height.min(axis=1)) / longest
    assert both.max() < 0.2
    assert (both > 0.05).mean() < 0.03
    assert geometry.faults["slab"].triangles.shape[0] > 0
    assert quality_report(geometry.mesh).gamma_min > 0.01


def data_folder():
    given = os.environ.get("AFTERSLIP_DATA")
    root = Path(__file__).resolve().parents[2]
    return Path(given) if given else root.parent / "shared" / "data"


def slab2(name, lon0, lat0):
    path = data_folder() / "slab2_japan" / f"{name}_slab2.csv"
    if not path.is_file():
        pytest.skip(f"{path.name} is not here; set AFTERSLIP_DATA")
    proj = pytest.importorskip("pyproj").Proj(proj="aeqd", lon_0=lon0, lat_0=lat0)
    lon, lat, depth = np.loadtxt(
        path, delimiter=",", skiprows=1, usecols=(0, 1, 2), unpack=True
    )
    x, y = proj(lon, lat)
    return np.column_stack([x, y, -depth * KM])


@pytest.mark.parametrize(
    ("name", "lon0", "lat0", "max_depth"),
    [("japan_trench", 142.4, 38.3, 62 * KM), ("nankai", 135.0, 33.0, 45 * KM)],
)
def test_real_subduction_interfaces(name, lon0, lat0, max_depth):
    points = slab2(name, lon0, lat0)
    wide = Box((-700 * KM, 700 * KM), (-700 * KM, 700 * KM), 500 * KM)
    fault = CurvedFault(name, points, None, max_depth)
    geometry = build_mesh(wide, [fault], MeshSize(20 * KM, 150 * KM, 0.35))
    mesh, surface = geometry.mesh, geometry.faults[name]
    report = quality_report(mesh)
    assert signed_volumes(mesh.nodes, mesh.cells).min() > 0.0
    assert 10_000 < report.n_element < 30_000
    assert report.aspect_median < 1.8
    assert report.aspect_99pct < 8.0
    assert report.gamma_1pct > 0.08
    assert surface.open_top
    # the unrolled rectangle has the area of the surface, but for its bending
    corner = np.searchsorted(surface.nodes, surface.triangles[:, :3])
    along = surface.along[corner].mean(axis=1)
    down = surface.down[corner].mean(axis=1)
    inside = (along > 0) & (along < surface.length)
    inside &= (down > 0) & (down < surface.width)
    normals = triangle_normals(mesh.nodes, surface.triangles[inside])
    area = 0.5 * np.linalg.norm(normals, axis=1).sum()
    assert area == pytest.approx(surface.length * surface.width, rel=0.12)


def bent_points():
    """The cylinder, bent by 3 km along strike over 75 km and steeper in the middle."""
    points = slab_points(n=60)
    along = points[:, 0] * np.sin(STRIKE) + points[:, 1] * np.cos(STRIKE)
    bend = 3 * KM * np.sin(2 * np.pi * along / (75 * KM)) * np.exp(points[:, 2] / 40e3)
    points[:, 0] += bend * np.cos(STRIKE)
    points[:, 1] -= bend * np.sin(STRIKE)
    return points


def test_surface_follows_its_points_as_well_as_is_asked():
    points = bent_points()
    misfits = []
    for tolerance in (None, 0.02 * KM):
        fault = CurvedFault("slab", points, None, 50 * KM, tolerance)
        placed = place_curved(fault, BOX, 12 * KM)
        misfits.append(placed.smooth.misfit(points)[0])
        # what the note says is of the surface that is embedded
        assert placed.smooth.misfit_rms == pytest.approx(misfits[-1])
    assert misfits[0] > 0.04 * KM
    assert misfits[1] < 0.02 * KM


def test_surface_that_misses_its_points_is_a_warning():
    points = slab_points()
    points[:, 0] += np.random.default_rng(1).normal(scale=0.3 * KM, size=len(points))
    fault = CurvedFault("slab", points, None, 50 * KM, 0.02 * KM)
    made = build_mesh(BOX, [fault], SIZE)
    assert any(
        note.startswith("warning: fault slab") and "mesh.fit, 0.02 km" in note
        for note in made.notes
    )
