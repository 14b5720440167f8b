"""Unit sources and prescribed slip: partition, potency, shapes, refusals."""

from dataclasses import replace
from itertools import product
from typing import Literal

import numpy as np
import pytest

from afterslip_common.geometry import bspline_spacing
from afterslip_common.terms import KM
from afterslip_solver.materials import Layer, assign
from afterslip_solver.mesh import Box, MeshSize, PlaneFault, build_mesh
from afterslip_solver.sources import (
    CLAMPED,
    FREE,
    Edges,
    SourceError,
    group_in_fours,
    interpolated_slip,
    potency,
    slip_of,
    slips_of,
    source_integrals,
    uniform_slip,
    unit_sources,
    window,
)
from afterslip_solver.sources.basis import shape_values
from afterslip_solver.sources.profile import bspline_profile, cubic_bspline
from afterslip_solver.testing.box import box_with_fault

End = Literal["free", "zero", "clamped"]
CLOSED: tuple[End, End] = ("clamped", "clamped")
OPEN: tuple[End, End] = ("free", "clamped")
BOX = Box((-100 * KM, 100 * KM), (-100 * KM, 100 * KM), 80 * KM)


def uniform(mesh):
    return assign(mesh, [Layer("all", 80 * KM, 6000.0, 3400.0, 2700.0)])


def built(top):
    plane = PlaneFault("main", 2 * KM, 0.0, top, 25.0, 35.0, 48 * KM, 30 * KM)
    return plane, build_mesh(BOX, [plane], MeshSize(2.5 * KM, 50 * KM, 0.5))


@pytest.fixture(scope="module")
def buried():
    return built(4 * KM)


@pytest.fixture(scope="module")
def breaking():
    return built(0.0)


@pytest.fixture(params=["buried", "breaking"])
def case(request):
    return request.getfixturevalue(request.param)


def slipping(fault):
    near = 1.0
    return (
        (fault.along > near)
        & (fault.along < fault.length - near)
        & (fault.down > (-near if fault.open_top else near))
        & (fault.down < fault.width - near)
    )


def test_patches_sum_to_one_inside_and_to_zero_on_the_margin(case):
    _, geometry = case
    fault = geometry.faults["main"]
    sources = unit_sources(fault, 5, 3, "patch", ["dip"])
    total = np.sum([shape_values(s, fault) for s in sources], axis=0)
    inside = slipping(fault)
    np.testing.assert_allclose(total[inside], 1.0, atol=1e-12)
    outside = (fault.along < -1.0) | (fault.along > fault.length + 1.0)
    outside |= (fault.down < -1.0) | (fault.down > fault.width + 1.0)
    assert np.all(total[outside] == 0.0)


def test_potency_of_patches_and_of_uniform_slip_is_exact(case):
    plane, geometry = case
    fault, mesh = geometry.faults["main"], geometry.mesh
    area = plane.length * plane.width
    patches = unit_sources(fault, 5, 3, "patch", ["strike"])
    areas = source_integrals(patches, fault, mesh, uniform(mesh)).area
    assert areas.sum() == pytest.approx(area, rel=1e-9)
    assert areas[len(patches) // 2] == pytest.approx(area / 15, rel=0.03)
    slip = uniform_slip(fault, strike=0.0, dip=2.0) @ plane.axes[1]
    assert potency(slip, fault, mesh).sum() == pytest.approx(2.0 * area, rel=1e-9)


def test_structured_edges_have_half_and_corners_a_quarter():
    geometry = box_with_fault((8, 8, 6), (8.0, 8.0, 6.0), 90.0, 4.0, 2.0, 2.0)
    fault = geometry.faults["main"]
    value = uniform_slip(fault, strike=1.0) @ fault.strike[0]
    ends = np.isclose(fault.along, 0.0) | np.isclose(fault.along, 4.0)
    edges = np.isclose(fault.down, 0.0) | np.isclose(fault.down, 2.0)
    inner = slipping_box(fault)
    np.testing.assert_allclose(value[ends & edges], 0.25)
    np.testing.assert_allclose(value[inner], 1.0)
    half = (ends ^ edges) & (fault.along > -0.1) & (fault.along < 4.1)
    half &= (fault.down > -0.1) & (fault.down < 2.1)
    np.testing.assert_allclose(value[half], 0.5)


def slipping_box(fault):
    return (
        (fault.along > 0.1)
        & (fault.along < 3.9)
        & (fault.down > 0.1)
        & (fault.down < 1.9)
    )


def test_cubic_bspline_is_the_textbook_one():
    from scipy.interpolate import BSpline

    t = np.linspace(-2.5, 2.5, 101)
    exact = np.nan_to_num(BSpline.basis_element(np.arange(-2.0, 3.0), False)(t))
    np.testing.assert_allclose(cubic_bspline(t), 1.5 * exact, atol=1e-12)


def test_closed_bsplines_lie_wholly_inside():
    x = np.linspace(-5.0, 15.0, 2001)
    for index in range(4):
        value = bspline_profile(x, 10.0, 4, index, CLOSED)
        assert value.max() == pytest.approx(1.0, abs=1e-3)
        assert np.all(value[(x <= 0.0) | (x >= 10.0)] < 1e-12)
        integral = np.trapezoid(value, x)
        assert integral == pytest.approx(1.5 * 10.0 / 7.0, rel=1e-4)


def test_open_bsplines_reach_the_surface_without_gradient_and_sum_evenly():
    x = np.linspace(0.0, 10.0, 2001)
    values = [bspline_profile(x, 10.0, 4, k, OPEN) for k in range(4)]
    for value in values:
        assert abs(value[1] - value[0]) < 1e-4
        assert value[-1] == pytest.approx(0.0, abs=1e-12)
    # a partition of unity (times the peak's 1.5) down to two steps above the end
    shallow = x < 10.0 - 3 * 2.0
    np.testing.assert_allclose(np.sum(values, axis=0)[shallow], 1.5)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_free_bsplines_hold_uniform_slip_exactly(case, count):
    _, geometry = case
    fault = geometry.faults["main"]
    sources = unit_sources(fault, count, 3, "bspline", ["dip"], FREE)
    total = sum(shape_values(s, fault) for s in sources)
    peak = 1.5 if count > 1 else 1.0
    whole = uniform_slip(fault, dip=1.0)
    uniform_dip = np.einsum("ij,ij->i", whole, fault.updip)
    np.testing.assert_allclose(total, 1.5 * peak * uniform_dip, atol=1e-12)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_zero_bsplines_vanish_at_the_edges_with_a_gradient(count):
    x = np.linspace(0.0, 10.0, 4001)
    step = x[1] - x[0]
    steep = []
    for index in range(count):
        value = bspline_profile(x, 10.0, count, index, ("zero", "zero"))
        assert value[0] == value[-1] == 0.0
        assert value.max() == pytest.approx(1.0, abs=1e-3)
        # odd about the edge, so there is no curvature there
        assert abs(value[2] - 2.0 * value[1] + value[0]) < 1e-2 * step
        steep.append(abs(value[1] - value[0]) / step)
        outside = bspline_profile(x - 20.0, 10.0, count, index, ("zero", "zero"))
        assert not outside.any()
    # 3/4 of the peak over an interval, doubled by the reflection
    assert max(steep) == pytest.approx(1.5 * (count + 1) / 10.0, rel=1e-2)


@pytest.mark.parametrize("ends", list(product(["free", "zero", "clamped"], repeat=2)))
def test_bsplines_lie_in_the_cubic_splines_of_their_knots(ends):
    from scipy.interpolate import make_interp_spline

    from afterslip_solver.sources.profile import bspline_centre

    step = bspline_spacing(10.0, 4, ends)
    x = np.linspace(0.0, 10.0, 1001)
    order = {"free": 1, "zero": 2, "clamped": 1}
    knots = np.linspace(0.0, 10.0, round(10.0 / step) + 1)
    for index in range(4):
        exact = bspline_profile(knots, 10.0, 4, index, ends)
        conditions = tuple([(order[end], 0.0)] for end in ends)
        spline = make_interp_spline(knots, exact, k=3, bc_type=conditions)
        value = bspline_profile(x, 10.0, 4, index, ends)
        np.testing.assert_allclose(value, spline(x), atol=1e-12)
        centre = np.array([bspline_centre(10.0, 4, index, ends)])
        assert bspline_profile(centre, 10.0, 4, index, ends)[0] == pytest.approx(1.0)


def test_each_edge_keeps_its_own_condition(buried):
    fault = buried[1].faults["main"]
    edges = Edges(top="zero", bottom="free", start="clamped", end="free")
    sources = unit_sources(fault, 4, 3, "bspline", ["dip"], edges)
    total = np.sum([shape_values(s, fault) for s in sources], axis=0)
    near = 1e-6 * fault.length
    inner = (fault.along > 0.3 * fault.length) & (fault.along < 0.7 * fault.length)
    deep = (fault.down > 0.4 * fault.width) & (fault.down < 0.6 * fault.width)
    at_top = inner & (np.abs(fault.down) < near)
    at_bottom = inner & (np.abs(fault.down - fault.width) < near)
    at_start = deep & (np.abs(fault.along) < near)
    at_end = deep & (np.abs(fault.along - fault.length) < near)
    for edge, value in ((at_top, 0.0), (at_start, 0.0)):
        np.testing.assert_allclose(total[edge], value, atol=1e-12)
    # the half on an edge line, as for patches
    for edge in (at_bottom, at_end):
        assert edge.sum() > 3
        assert total[edge].min() > 0.5
    beyond = (fault.down < -near) | (fault.down > fault.width + near)
    beyond |= (fault.along < -near) | (fault.along > fault.length + near)
    assert not total[beyond].any()


def test_area_and_position_of_bsplines(case):
    plane, geometry = case
    fault, mesh = geometry.faults["main"], geometry.mesh
    step_along = plane.length / 8
    step_down = plane.width / (4 if fault.open_top else 6)
    sources = unit_sources(fault, 5, 3, "bspline", ["dip"], CLAMPED)
    found = source_integrals(sources, fault, mesh, uniform(mesh))
    for number, source in enumerate(sources):
        half = 0.5 if fault.open_top and source.patch[1] == 0 else 1.0
        expected = half * 1.5 * step_along * 1.5 * step_down
        assert found.area[number] == pytest.approx(expected, rel=3e-3)
        if not fault.open_top:
            strike, updip, _ = plane.axes
            along, down = source.centre
            centre = plane.origin + along * strike - down * updip
            np.testing.assert_allclose(found.position[number], centre, atol=100.0)


def test_slip_vector_of_components(buried):
    plane, geometry = buried
    fault = geometry.faults["main"]
    strike, dip = unit_sources(fault, 3, 2)[:2]
    assert (strike.component, dip.component) == ("strike", "dip")
    assert strike.patch == dip.patch
    value = shape_values(strike, fault)
    np.testing.assert_allclose(slip_of(strike, fault), value[:, None] * plane.axes[0])
    np.testing.assert_allclose(slip_of(dip, fault), value[:, None] * plane.axes[1])


def test_what_all_sources_of_a_fault_share_is_found_once(breaking, monkeypatch):
    fault, looked = replace(breaking[1].faults["main"]), []
    lines = window.edge_lines

    def counted(fault):
        looked.append(fault)
        return lines(fault)

    monkeypatch.setattr(window, "edge_lines", counted)
    sources = unit_sources(fault, 4, 2)
    slips = slips_of(sources, fault)
    assert len(looked) == 1
    # and it is what a fault that nothing is known of gives
    assert np.array_equal(slips[:, :, 5], slip_of(sources[5], replace(fault)))


@pytest.mark.parametrize("components", [["strike", "dip"], ["dip"]])
@pytest.mark.parametrize("counts", [(6, 4), (5, 3), (4, 1)])
def test_groups_are_neighbours_and_cover_everything_once(buried, counts, components):
    fault = buried[1].faults["main"]
    n, m = counts
    sources = unit_sources(fault, n, m, "patch", components)
    assert len({(s.patch, s.component) for s in sources}) == n * m * len(components)
    assert [s.index for s in sources] == list(range(len(sources)))
    groups = group_in_fours(sources)
    assert sorted(i for g in groups for i in g) == list(range(len(sources)))
    assert all(len(g) == 4 for g in groups[:-1])
    for group in groups:
        patches = np.array([sources[i].patch for i in group])
        assert np.ptp(patches, axis=0).sum() <= 3


def test_rigidity_is_the_mean_of_both_sides(buried):
    plane, geometry = buried
    fault, mesh = geometry.faults["main"], geometry.mesh
    source = unit_sources(fault, 1, 1, "patch", ["dip"])[0]
    layers = [
        Layer("upper", 12 * KM, 6000.0, 3400.0, 2700.0),
        Layer("lower", 80 * KM, 8000.0, 4600.0, 3300.0),
    ]
    one = source_integrals([source], fault, mesh, uniform(mesh)).rigidity
    assert one == pytest.approx(2700.0 * 3400.0**2)
    two = source_integrals([source], fault, mesh, assign(mesh, layers)).rigidity
    sin = np.sin(np.radians(plane.dip))
    share = (12 * KM - plane.top) / (plane.width * sin)
    expected = share * 2700.0 * 3400.0**2 + (1.0 - share) * 3300.0 * 4600.0**2
    assert two == pytest.approx(expected, rel=0.05)


def test_too_many_functions_for_the_mesh_name_the_size(buried):
    fault = buried[1].faults["main"]
    with pytest.raises(SourceError, match=r"reduce mesh\.size\.fault to 0\.\d+ km"):
        unit_sources(fault, 80, 50, "patch")


def test_nonsense_counts_are_refused(buried):
    fault = buried[1].faults["main"]
    with pytest.raises(SourceError, match="at least 1"):
        unit_sources(fault, 0, 3)
    with pytest.raises(SourceError, match="strike, dip or both"):
        unit_sources(fault, 2, 2, "patch", [])


def test_taper_vanishes_at_buried_edges_only(case):
    plane, geometry = case
    fault = geometry.faults["main"]
    value = uniform_slip(fault, strike=1.0, taper=True) @ plane.axes[0]
    assert np.all(value[~slipping(fault)] < 1e-6)
    core = (fault.along > 0.2 * fault.length) & (fault.along < 0.8 * fault.length)
    core &= fault.down < 0.8 * fault.width
    core &= fault.down > (-1.0 if fault.open_top else 0.2 * fault.width)
    np.testing.assert_allclose(value[core], 1.0)


def test_table_is_interpolated_linearly_and_zero_beyond(buried):
    plane, geometry = buried
    fault, mesh = geometry.faults["main"], geometry.mesh
    strike, updip, _ = plane.axes
    along, down = (
        a.ravel()
        for a in np.meshgrid(np.linspace(10, 40, 7) * KM, np.linspace(5, 20, 4) * KM)
    )
    points = plane.origin + along[:, None] * strike - down[:, None] * updip
    table = np.column_stack([1e-4 * along, 2.0 - 5e-5 * down])
    slip = interpolated_slip(fault, mesh, points, table)
    inside = (fault.along > 10.01 * KM) & (fault.along < 39.99 * KM)
    inside &= (fault.down > 5.01 * KM) & (fault.down < 19.99 * KM)
    np.testing.assert_allclose(slip[inside] @ strike, 1e-4 * fault.along[inside])
    np.testing.assert_allclose(slip[inside] @ updip, 2.0 - 5e-5 * fault.down[inside])
    beyond = (fault.along < 9.9 * KM) | (fault.down > 20.1 * KM)
    assert np.all(slip[beyond] == 0.0)


def test_table_far_from_the_fault_is_refused(buried):
    _, geometry = buried
    fault, mesh = geometry.faults["main"], geometry.mesh
    rng = np.random.default_rng(0)
    points = rng.uniform(-20 * KM, 20 * KM, (20, 3))
    points[:, 2] += 60 * KM
    with pytest.raises(SourceError, match="sign of depth"):
        interpolated_slip(fault, mesh, points, np.ones((20, 2)))


def test_table_on_a_line_is_refused(buried):
    plane, geometry = buried
    points = plane.origin + np.linspace(0, 20 * KM, 5)[:, None] * plane.axes[0]
    with pytest.raises(SourceError, match="not on one line"):
        interpolated_slip(
            geometry.faults["main"], geometry.mesh, points, np.ones((5, 2))
        )
