"""Okada's formulas against his table, against point sources, and at their limits."""

import numpy as np
import pytest

from afterslip_solver.reference import (
    PointSources,
    Rectangles,
    dislocation_surface,
    point_source_surface,
    surface_displacement,
)
from afterslip_solver.reference.okada import corner_displacement

# Okada (1985), Table 2, finite fault L = 3, W = 2, cases 2 to 4 (poisson 0.25):
# (x, y, depth, dip), then strike, dip, tensile each ux, uy, uz
TABLE = {
    (2, 3, 4, 70): [
        (-8.689e-3, -4.298e-3, -2.747e-3),
        (-4.682e-3, -3.527e-2, -3.564e-2),
        (-2.660e-4, 1.056e-2, 3.214e-3),
    ],
    (0, 0, 4, 90): [
        (0, 5.253e-3, 0),
        (0, 0, 0),
        (1.223e-2, 0, -1.606e-2),
    ],
    (0, 0, 4, -90): [
        (0, -1.303e-3, 0),
        (0, 0, 0),
        (3.507e-3, 0, -7.740e-3),
    ],
}


@pytest.mark.parametrize("case", TABLE)
def test_reproduces_the_checklist_of_the_paper(case):
    x, y, depth, dip = case
    for component, expected in enumerate(TABLE[case]):
        u = corner_displacement(
            np.array([[x, y]], dtype=float),
            depth=depth,
            dip_deg=dip,
            length=3.0,
            width=2.0,
            slip=np.eye(3)[component],
            poisson=0.25,
        )[0]
        for value, printed in zip(u, expected, strict=True):
            assert value == pytest.approx(printed, rel=5e-4, abs=1e-9)


def points(n=40, span=60e3, seed=1):
    return np.random.default_rng(seed).uniform(-span, span, (n, 2))


def frame(strike_deg, dip_deg):
    strike, dip = np.deg2rad([strike_deg, dip_deg])
    along = np.array([np.sin(strike), np.cos(strike), 0.0])
    right = np.array([np.cos(strike), -np.sin(strike), 0.0])
    updip = -np.cos(dip) * right + np.array([0, 0, np.sin(dip)])
    normal = np.cross(along, updip)
    # the hanging wall lies to the right of strike and above
    normal *= np.sign(normal[2] + 1e-9 * (normal @ right))
    return along, updip, normal


@pytest.mark.parametrize("poisson", [0.1, 0.25, 0.45])
@pytest.mark.parametrize("dip", [0.0, 20.0, 60.0, 90.0])
@pytest.mark.parametrize("component", [0, 1, 2])
def test_agrees_with_boussinesq_and_cerruti_by_reciprocity(dip, component, poisson):
    strike = 37.0
    along, updip, normal = frame(strike, dip)
    corners = np.array([[-10e3, 0], [10e3, 0], [10e3, -15e3], [-10e3, -15e3]])
    top = np.array([3e3, -2e3, -6e3])
    square = top + corners[:, :1] * along + corners[:, 1:] * updip
    triangles = np.array([square[[0, 1, 2]], square[[0, 2, 3]]])
    face = np.cross(square[1] - square[0], square[2] - square[0])
    if face @ normal < 0:
        triangles = triangles[:, ::-1]
    vector = (along, updip, normal)[component]
    u = surface_displacement(
        points(),
        Rectangles(3e3, -2e3, 6e3, strike, dip, 20e3, 15e3),
        np.eye(3)[component],
        poisson,
    )
    v = dislocation_surface(
        points(), triangles, np.tile(vector, (2, 6, 1)), poisson, ratio=4.0
    )
    assert np.abs(u - v).max() < 1e-7 * np.abs(u).max()


def test_small_rectangle_is_a_point_source():
    along, updip, normal = frame(120.0, 35.0)
    slip = 0.7 * along + 0.4 * updip
    u = surface_displacement(
        points(),
        Rectangles(0.0, 0.0, 12e3, 120.0, 35.0, 10.0, 10.0),
        [0.7, 0.4, 0.0],
    )
    centre = np.array([[0.0, 0.0, -12e3]]) - 5.0 * updip
    v = point_source_surface(
        points(), PointSources(centre, 100.0 * slip[None], normal[None])
    )
    assert np.abs(u - v).max() < 1e-6 * np.abs(u).max()


def test_rectangles_add_up_and_may_be_cut():
    whole = Rectangles(0.0, 0.0, 2e3, 10.0, 30.0, 20e3, 10e3)
    azimuth = np.deg2rad(10.0)
    step = 5e3 * np.array([np.sin(azimuth), np.cos(azimuth)])
    halves = Rectangles(
        [-step[0], step[0]], [-step[1], step[1]], 2e3, 10.0, 30.0, 10e3, 10e3
    )
    slip = [0.3, 1.0, 0.1]
    u = surface_displacement(points(), whole, slip)
    v = surface_displacement(points(), halves, slip)
    assert np.abs(u - v).max() < 1e-12


def test_dip_near_vertical_is_continuous():
    angles = 90.0 - np.rad2deg([0.0, 4.9e-6, 5.1e-6, 1e-4])
    u = [
        surface_displacement(
            points(), Rectangles(0.0, 0.0, 1e3, 0.0, a, 20e3, 10e3), [1.0, 1.0, 1.0]
        )
        for a in angles
    ]
    assert np.abs(u[1] - u[0]).max() < 1e-5
    assert np.abs(u[2] - u[0]).max() < 3e-5
    assert np.abs(u[3] - u[0]).max() < 3e-4


def test_points_above_edges_and_in_line_with_them_are_finite():
    xy = np.array([[0, 0], [0, 10e3], [0, -10e3], [0, 25e3], [5e3, 10e3], [-5e3, 0.0]])
    for dip in (0.0, 45.0, 90.0):
        for top in (0.0, 3e3):
            if dip == 0.0 and top == 0.0:
                continue
            u = surface_displacement(
                xy, Rectangles(0.0, 0.0, top, 0.0, dip, 20e3, 8e3), [1.0, 1.0, 0.5]
            )
            near = surface_displacement(
                xy + 1e-4, Rectangles(0.0, 0.0, top, 0.0, dip, 20e3, 8e3), [1, 1, 0.5]
            )
            corner = (np.arange(6) == 1) | (np.arange(6) == 2)
            if top == 0:
                assert np.isnan(u[corner]).all()
                u, near = u[~corner], near[~corner]
            assert np.isfinite(u).all()
            if top > 0:
                assert np.abs(u - near).max() < 1e-6


def test_signs_are_left_lateral_and_reverse():
    # strike north, dips to the east; the hanging wall is the eastern side
    fault = Rectangles(0.0, 0.0, 0.0, 0.0, 45.0, 40e3, 10e3)
    east, west = np.array([[1e3, 0.0]]), np.array([[-1e3, 0.0]])
    lateral = [surface_displacement(p, fault, [1.0, 0, 0])[0] for p in (east, west)]
    # left-lateral: viewed from the west, the eastern side moves to the left (north)
    assert lateral[0][1] > 0 > lateral[1][1]
    reverse = [surface_displacement(p, fault, [0, 1.0, 0])[0] for p in (east, west)]
    assert reverse[0][2] > 0.3
    assert reverse[0][0] < 0


def test_surface_breaking_jump_equals_the_slip():
    fault = Rectangles(0.0, 0.0, 0.0, 0.0, 30.0, 60e3, 20e3)
    sides = np.array([[1e-3, 0.0], [-1e-3, 0.0]])
    u = surface_displacement(sides, fault, [0.5, 1.0, 0.0])
    dip = np.deg2rad(30.0)
    jump = [-np.cos(dip), 0.5, np.sin(dip)]
    assert np.abs(u[0] - u[1] - jump).max() < 1e-4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"length": 0.0}, "positive"),
        ({"top": -1.0}, "above the ground"),
        ({"x": np.nan}, "finite"),
    ],
)
def test_refuses_impossible_rectangles(change, words):
    good = {
        "x": 0.0,
        "y": 0.0,
        "top": 1.0,
        "strike_deg": 0.0,
        "dip_deg": 30.0,
        "length": 1.0,
        "width": 1.0,
    }
    with pytest.raises(ValueError, match=words):
        surface_displacement(points(), Rectangles(**(good | change)), [1, 0, 0])
