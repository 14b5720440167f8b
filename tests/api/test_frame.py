"""Frames: degrees or kilometres to local metres and back."""

import numpy as np
import pyproj
import pytest

from afterslip.frame import Frame


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
