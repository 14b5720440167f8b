"""Frames: degrees or kilometres to local metres and back."""

import numpy as np
import pyproj
import pytest

from afterslip.frame import Frame
from afterslip_common.sphere import EARTH_RADIUS, onto_sphere


def test_distance_and_azimuth_from_the_origin_are_those_on_the_ellipsoid() -> None:
    frame = Frame("geographic", 142.4, 38.3)
    lon, lat = np.array([141.5, 150.0, 142.4]), np.array([38.3, 30.0, 45.0])
    x, y = frame.to_local(lon, lat)
    azimuth, _, distance = pyproj.Geod(ellps="WGS84").inv(
        np.full(3, 142.4), np.full(3, 38.3), lon, lat
    )
    np.testing.assert_allclose(np.hypot(x, y), distance, rtol=1e-9)
    turn = np.degrees(np.arctan2(x, y)) - azimuth
    np.testing.assert_allclose(np.mod(turn + 180, 360) - 180, 0, atol=1e-9)


@pytest.mark.parametrize("lon0", [142.4, -179.9, 359.0, 0.0])
def test_there_and_back(lon0: float) -> None:
    frame = Frame("geographic", lon0, -41.0)
    x, y = np.random.default_rng(0).uniform(-7e5, 7e5, (2, 50))
    back = frame.to_local(*frame.to_geographic(x, y))
    np.testing.assert_allclose(back, (x, y), atol=1e-4)


def test_longitudes_beyond_the_date_line_are_the_same_place() -> None:
    frame = Frame("geographic", 179.5, -40.0)
    np.testing.assert_allclose(
        frame.to_local(-179.5, -40.0), frame.to_local(180.5, -40)
    )


def test_local_frames_take_kilometres() -> None:
    frame = Frame("local")
    x, y = frame.to_local([1.5, -2.0], [0.0, 3.0])
    assert x.tolist() == [1500.0, -2000.0]
    assert y.tolist() == [0.0, 3000.0]
    assert frame.to_geographic(1500.0, 0.0)[0] == 1.5


def test_missing_positions_stay_missing() -> None:
    x, y = Frame("geographic", 0.0, 0.0).to_local([np.nan, 1.0], [1.0, 1.0])
    assert np.isnan([x[0], y[0]]).all()
    assert np.isfinite([x[1], y[1]]).all()


def test_axes_on_a_sphere_point_along_meridians_and_parallels() -> None:
    frame = Frame("geographic", 142.4, 38.3, EARTH_RADIUS)
    x, y = np.random.default_rng(3).uniform(-3e6, 3e6, (2, 20))
    axes = frame.axes(x, y)
    assert axes is not None
    geod = pyproj.Geod(ellps="WGS84")
    lon, lat = frame.to_geographic(x, y)

    def place(azimuth: float, distance: float) -> np.ndarray:
        there = geod.fwd(lon, lat, np.full(20, azimuth), np.full(20, distance))
        px, py = frame.to_local(*there[:2])
        return onto_sphere(np.column_stack([px, py, 0 * px]), EARTH_RADIUS)

    for row, azimuth in enumerate((90.0, 0.0)):
        step = place(azimuth, 100.0) - place(azimuth, -100.0)
        step /= np.linalg.norm(step, axis=1, keepdims=True)
        # directions on the ellipsoid and on the sphere differ by its flattening
        np.testing.assert_allclose(axes[:, row], step, atol=4e-3)


def test_a_flat_earth_has_one_north() -> None:
    frame = Frame("geographic", 142.4, 38.3)
    assert frame.axes(np.array([1e6]), np.array([2e6])) is None
    assert frame.convergence(1e6, 2e6) == 0.0


def test_meridians_of_a_sphere_converge_towards_the_pole() -> None:
    frame = Frame("geographic", 0.0, 60.0, EARTH_RADIUS)
    x, y = frame.to_local(10.0, 60.0)
    # the azimuth of an arc along a parallel changes by dlon sin(lat)
    assert frame.convergence(x, y) == pytest.approx(
        10 * np.sin(np.radians(60)), rel=5e-3
    )
    assert frame.convergence(0.0, 0.0) == 0.0
