"""Materials by layer, body, grid and name."""

import dataclasses
import re
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest

from afterslip_common.terms import KM
from afterslip_solver.materials import (
    Body,
    Layer,
    MaterialError,
    PropertyGrid,
    assign,
    describe_misfits,
)
from afterslip_solver.mesh import Interface
from afterslip_solver.testing.box import box_mesh

CRUST = Layer("crust", 20 * KM, 6400.0, 3700.0, 2800.0)
MANTLE = Layer("mantle", 60 * KM, 8000.0, 4600.0, 3300.0, 1e19)


@pytest.fixture(scope="module")
def mesh():
    return box_mesh((12, 6, 12), (120 * KM, 60 * KM, 60 * KM))


def depths(mesh):
    return -mesh.nodes[mesh.cells, 2].mean(axis=1)


def test_layers_by_depth_of_the_centroid(mesh):
    materials = assign(mesh, [CRUST, MANTLE])
    shallow = depths(mesh) < 20 * KM
    assert np.all(materials.mu[shallow] == 2800.0 * 3700.0**2)
    assert np.all(materials.mu[~shallow] == 3300.0 * 4600.0**2)
    assert np.all(np.isinf(materials.viscosity[shallow]))
    assert np.all(materials.viscosity[~shallow] == 1e19)
    p_wave = np.sqrt((materials.lam + 2 * materials.mu) / materials.rho)
    np.testing.assert_allclose(p_wave[shallow], 6400.0)
    assert np.all(np.isinf(materials.relaxation_time[shallow]))


def test_steps_around_a_boundary_are_measured():
    """Steps are at most as high as the elements, and shrink with them."""
    off = []
    for n in (6, 12, 24):
        mesh = box_mesh((n, n // 2, n), (120 * KM, 60 * KM, 60 * KM))
        (misfit,) = describe_misfits(
            mesh, [dataclasses.replace(CRUST, bottom=21.7 * KM), MANTLE], []
        )
        said = misfit.note
        assert said.startswith("layer crust: ")
        assert "its bottom at 21.7 km" in said
        off.append(float(re.findall(r"([\d.]+) km RMS", said)[0]))
    assert 0.1 * 10 < off[0] < 0.5 * 10
    assert off[1] < 0.8 * off[0]
    assert off[2] < 0.8 * off[1]


def test_a_boundary_in_the_middle_of_elements_is_stepped_around():
    mesh = box_mesh((6, 3, 6), (120 * KM, 60 * KM, 60 * KM))
    for bottom, steps in ((25 * KM, True), (20.2 * KM, False)):
        layers = [dataclasses.replace(CRUST, bottom=bottom), MANTLE]
        (misfit,) = describe_misfits(mesh, layers, [])
        assert misfit.steps is steps
        assert ("does not follow" in misfit.note) is steps


def test_long_elements_far_away_do_not_hide_the_steps_near_the_faults():
    """Steps are at most as high as elements: 2.5 km near the fault, 50 km far away."""
    mesh = box_mesh((24, 6, 24), (60 * KM, 60 * KM, 60 * KM))
    x = mesh.nodes[:, 0] - mesh.nodes[:, 0].min()
    # the second half is 20 times as long
    x = np.where(x > 30 * KM, 30 * KM + 20 * (x - 30 * KM), x) - 30 * KM
    mesh = dataclasses.replace(mesh, nodes=np.column_stack([x, mesh.nodes[:, 1:]]))
    slab = Body("slab", plane_interface(10.0), 15 * KM, 7800.0, 4500.0, 3350.0)
    layers = [dataclasses.replace(MANTLE, bottom=60 * KM)]
    # extent 20 km: steps within 10 km of it are near
    fault = np.array([[-28.0, 0.0, -0.35], [-8.3, 0.0, -3.8]]) * KM
    (misfit,) = describe_misfits(mesh, layers, [slab], fault)
    said = misfit.note
    near, everywhere = (float(v) for v in re.findall(r"([\d.]+) km RMS", said))
    assert "RMS near the faults" in said
    assert near < 2.5
    assert everywhere > 2.0 * near
    (misfit,) = describe_misfits(mesh, layers, [slab])
    assert misfit.note.endswith(f"by {everywhere:.2g} km RMS")


@pytest.mark.parametrize(
    ("thickness", "said"),
    [
        (1.5 * KM, "does not follow all of its boundary but steps around it"),
        (
            0.001,
            "no element of the mesh has its centre in it, as its 1e-06 km are thin",
        ),
    ],
)
def test_a_body_much_thinner_than_elements_is_not_said_to_be_followed(
    mesh, thickness, said
):
    """Faces in or beside it are then a small part of an edge away from its sides."""
    slab = Body("slab", plane_interface(30.0), thickness, 8000.0, 4600.0, 3400.0)
    layers = [dataclasses.replace(MANTLE, bottom=60 * KM)]
    (misfit,) = describe_misfits(mesh, layers, [slab], edge=10 * KM)
    assert misfit.steps
    assert said in misfit.note
    assert f"mesh.size.fault of {3.8e-3 * thickness:.2g} km would do" in misfit.note


def test_a_boundary_that_the_mesh_follows_has_no_steps(mesh):
    assert list(describe_misfits(mesh, [CRUST, MANTLE], [])) == []


def test_uncovered_depth_is_an_error(mesh):
    with pytest.raises(MaterialError, match=r"elements have no material.*last layer"):
        assign(mesh, [CRUST])


@pytest.fixture
def in_ranges(monkeypatch):
    """Assign materials in seven ranges of the elements, as of a large mesh."""
    module = import_module("afterslip_solver.materials.assign")

    def over(n, call):
        cuts = np.linspace(0, n, 8).astype(int).tolist()
        for first, last in pairwise(cuts):
            call(first, last)

    return lambda: monkeypatch.setattr(module, "over", over)


def test_ranges_of_elements_have_the_materials_of_all(mesh, in_ranges):
    tags = (depths(mesh) > 33 * KM).astype(np.int64)
    named = dataclasses.replace(mesh, tags=tags, tag_names=("crust", "mantle"))
    slab = Body("slab", plane_interface(30.0), 20 * KM, 8000.0, 4600.0, 3400.0)
    delayed = dataclasses.replace(MANTLE, kelvin_viscosity=2e18, kelvin_ratio=0.5)
    cases = [
        lambda: assign(mesh, [CRUST, delayed], [slab]),
        lambda: assign(named, [CRUST, delayed], by_tag=True),
    ]
    whole = [case() for case in cases]
    in_ranges()
    for case, before in zip(cases, whole, strict=True):
        found = case()
        for item in dataclasses.fields(found):
            one, other = getattr(found, item.name), getattr(before, item.name)
            assert (one is None) == (other is None)
            assert one is None or np.array_equal(one, other)


def test_errors_count_the_elements_of_all_ranges(mesh, in_ranges):
    said = []
    for _ in range(2):
        with pytest.raises(MaterialError, match="elements have no material") as found:
            assign(mesh, [CRUST])
        said.append(str(found.value))
        in_ranges()
    assert said[0] == said[1]


def test_layers_out_of_order_are_an_error(mesh):
    with pytest.raises(MaterialError, match="from the surface down"):
        assign(mesh, [MANTLE, CRUST])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vs": 5600.0}, r"vp / 1\.155"),
        ({"rho": -1.0}, "rho = -1 must be positive"),
        ({"vp": np.inf}, "vp = inf"),
        ({"viscosity": 0.0}, "viscosity = 0 must be positive"),
        ({"viscosity": np.nan}, "viscosity = nan"),
    ],
)
def test_unphysical_layer_is_named(mesh, change, message):
    with pytest.raises(MaterialError, match=message):
        assign(mesh, [dataclasses.replace(CRUST, **change), MANTLE])


def plane_interface(dip):
    """Plane that dips east from a trench at x = -30 km."""
    depth, y = np.meshgrid(np.linspace(0, 40, 15) * KM, np.linspace(-30, 30, 15) * KM)
    x = -30 * KM + depth / np.tan(np.radians(dip))
    return Interface.fit(np.column_stack([x.ravel(), y.ravel(), -depth.ravel()]))


@pytest.mark.parametrize("dip", [30.0, 60.0])
def test_slab_has_its_thickness_across_the_interface(mesh, dip):
    slab = Body("slab", plane_interface(dip), 12 * KM, 7800.0, 4500.0, 3350.0)
    materials = assign(mesh, [CRUST, MANTLE], [slab])
    x, _, z = mesh.nodes[mesh.cells].mean(axis=1).T
    sin, cos = np.sin(np.radians(dip)), np.cos(np.radians(dip))
    across = -((x + 30 * KM) * sin + z * cos)
    landward = x + 30 * KM > 0.0
    inside = (across > 0.0) & (across <= 12 * KM)
    clear = np.minimum(np.abs(across), np.abs(across - 12 * KM)) > 0.3 * KM
    chosen = landward & clear
    np.testing.assert_array_equal(materials.rho[chosen] == 3350.0, inside[chosen])
    # seaward of the trench the slab lies under the free surface
    seaward = x < -34 * KM
    expected = -z * np.cos(np.radians(dip)) <= 12 * KM
    found = materials.rho[seaward] == 3350.0
    assert np.mean(found == expected[seaward]) > 0.98


def test_grid_is_trilinear_and_layers_fill_the_rest(mesh):
    x = np.linspace(-40, 40, 5) * KM
    y = np.linspace(-40, 40, 3) * KM
    depth = np.array([0.0, 10.0, 40.0]) * KM
    gx, gy, gz = np.meshgrid(x, y, depth, indexing="ij")
    vs = 3000.0 + 0.004 * gx + 0.002 * gy + 0.02 * gz
    grid = PropertyGrid(x, y, depth, 1.8 * vs, vs, 2500.0 + 0.005 * gz)
    materials = assign(mesh, [CRUST, MANTLE], grid=grid)
    cx, cy, cz = mesh.nodes[mesh.cells].mean(axis=1).T
    inside = (np.abs(cx) < 40 * KM) & (-cz < 40 * KM)
    expected = 3000.0 + 0.004 * cx + 0.002 * cy - 0.02 * cz
    found = np.sqrt(materials.mu / materials.rho)
    np.testing.assert_allclose(found[inside], expected[inside])
    outside = ~inside & (-cz > 20 * KM)
    np.testing.assert_allclose(found[outside], 4600.0)
    assert np.all(materials.viscosity[inside & (-cz > 20 * KM)] == 1e19)


def test_grid_viscosity_is_interpolated_in_its_logarithm(mesh):
    axis = np.array([-1e6, 1e6])
    depth = np.array([0.0, 60.0]) * KM
    shape = (2, 2, 2)
    viscosity = np.broadcast_to([1e18, 1e20], shape).copy()
    grid = PropertyGrid(
        axis,
        axis,
        depth,
        np.full(shape, 8e3),
        np.full(shape, 4e3),
        np.full(shape, 3e3),
        viscosity,
    )
    materials = assign(mesh, [], grid=grid)
    np.testing.assert_allclose(
        np.log10(materials.viscosity), 18.0 + 2.0 * depths(mesh) / (60 * KM)
    )


def test_grid_with_gaps_and_no_layers_is_an_error(mesh):
    axis = np.array([-1e6, 1e6])
    field = np.full((2, 2, 2), np.nan)
    grid = PropertyGrid(axis, axis, np.array([0.0, 1e5]), field, field, field)
    with pytest.raises(MaterialError, match="have no material"):
        assign(mesh, [], grid=grid)


def test_named_parts_of_an_imported_mesh(mesh):
    tags = (depths(mesh) > 33 * KM).astype(np.int64)
    named = dataclasses.replace(mesh, tags=tags, tag_names=("crust", "mantle"))
    materials = assign(named, [CRUST, MANTLE], by_tag=True)
    assert np.all(materials.rho[tags == 0] == 2800.0)
    assert np.all(materials.rho[tags == 1] == 3300.0)


def test_part_without_material_is_named(mesh):
    named = dataclasses.replace(mesh, tag_names=("wedge",))
    with pytest.raises(MaterialError, match=r"part 'wedge'.*known are crust, mantle"):
        assign(named, [CRUST, MANTLE], by_tag=True)


def test_branches_of_another_rheology_belong_to_their_part(mesh):
    """A Burgers body given as branches relaxes as the one that is built in."""
    delayed = dataclasses.replace(MANTLE, kelvin_viscosity=2e18, kelvin_ratio=0.5)

    def branches(mu):
        eta = np.broadcast_to([1e19, 2e18], (len(mu), 2))
        return eta, np.stack([0.0 * mu, 0.5 * mu], axis=1)

    added = dataclasses.replace(MANTLE, viscosity=np.inf, branches=branches)
    middle = dataclasses.replace(MANTLE, name="middle", bottom=40 * KM, viscosity=3e19)
    shallow = depths(mesh) < 20 * KM
    found = assign(mesh, [CRUST, middle, added])
    wanted = assign(mesh, [CRUST, middle, delayed])
    assert (found.creeps == ~shallow).all()
    assert len(found.branches) == len(wanted.branches)
    for one, other in zip(found.branches, wanted.branches, strict=True):
        assert np.array_equal(one.viscosity, other.viscosity)
        assert np.array_equal(one.springs, other.springs)
    assert found.branches[0].modulus is None
    assert np.array_equal(found.relaxation_time, wanted.relaxation_time)


def test_kelvin_elements_belong_to_their_layer(mesh):
    delayed = dataclasses.replace(MANTLE, kelvin_viscosity=2e18, kelvin_ratio=0.5)
    materials = assign(mesh, [CRUST, delayed])
    shallow = depths(mesh) < 20 * KM
    assert materials.kelvin_modulus is not None
    assert np.all(np.isinf(materials.kelvin_modulus[shallow]))
    assert materials.kelvin_viscosity is not None
    assert np.all(np.isinf(materials.kelvin_viscosity[shallow]))
    assert np.all(materials.kelvin_viscosity[~shallow] == 2e18)
    assert np.all((materials.kelvin_modulus == 0.5 * materials.mu)[~shallow])
    plain = assign(mesh, [CRUST, MANTLE])
    assert plain.kelvin_modulus is None
    assert plain.kelvin_viscosity is None


def test_a_grid_moves_the_dashpot_and_stops_all_creep_where_it_is_infinite(mesh):
    delayed = dataclasses.replace(MANTLE, kelvin_viscosity=2e18, kelvin_ratio=0.5)
    x, y, depth = (np.array(v) * KM for v in ([-60, 0, 60], [-30, 30], [0, 60]))
    shape = (3, 2, 2)
    viscosity = np.full(shape, 4e19)
    viscosity[2] = np.inf
    vp, vs, rho = (np.full(shape, v) for v in (8000.0, 4600.0, 3300.0))
    grid = PropertyGrid(x, y, depth, vp, vs, rho, viscosity)
    materials = assign(mesh, [CRUST, delayed], grid=grid)
    west = mesh.nodes[mesh.cells].mean(axis=1)[:, 0] < 0
    deep = depths(mesh) > 20 * KM
    np.testing.assert_allclose(materials.viscosity[west], 4e19)
    assert materials.kelvin_viscosity is not None
    assert np.all(np.isfinite(materials.kelvin_viscosity) == (deep & finite(materials)))
    assert np.isfinite(materials.kelvin_viscosity[west & deep]).all()
    # a grid alone says nothing of Kelvin elements
    assert assign(mesh, [], grid=grid).kelvin_viscosity is None


def finite(materials):
    return np.isfinite(materials.viscosity)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kelvin_viscosity": 1e18}, "kelvin_viscosity and kelvin_ratio"),
        ({"kelvin_viscosity": 1e18, "kelvin_ratio": -1.0}, "kelvin_ratio = -1"),
        (
            {"kelvin_viscosity": 1e18, "kelvin_ratio": 1.0, "viscosity": np.inf},
            "its Maxwell dashpot too",
        ),
    ],
)
def test_half_a_burgers_body_is_an_error(mesh, change, message):
    with pytest.raises(MaterialError, match=message):
        assign(mesh, [CRUST, dataclasses.replace(MANTLE, **change)])


def test_layer_that_no_element_has_is_refused_with_a_size_that_would_do(mesh):
    thin = dataclasses.replace(CRUST, name="thin", bottom=20.1 * KM)
    with pytest.raises(MaterialError, match="layer thin: no element"):
        assign(mesh, [CRUST, thin, MANTLE])
