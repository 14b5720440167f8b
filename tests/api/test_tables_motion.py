"""Tables of ground motion: what is read, what the filter does, what is refused."""

import numpy as np
import pytest

from afterslip import SpecError
from afterslip.frame import Frame
from afterslip.readers.motion import lowpassed, read_motion
from afterslip.schemas.earth import Frame as FrameSpec
from afterslip.schemas.observation import Dataset, Series, Sigma

LOCAL = Frame.of(FrameSpec(kind="local"))
SIGMA = Sigma(horizontal=0.01, vertical=0.02)


def content(times, values, station="A", head=True):
    """Lines of a station that moves east alone."""
    lines = ["station,x_km,y_km,time_s,east,north,up"] if head else []
    lines += [f"{station},1,2,{t},{v},0,0" for t, v in zip(times, values, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def read(text, **series):
    return read_motion(text, LOCAL, Series(**series), SIGMA)


def test_lines_in_any_order_become_series():
    times = np.array([2.0, 0.0, 1.0])
    found = read(content(times, times), quantity="velocity")
    assert found.time.tolist() == [0.0, 1.0, 2.0]
    rows = found.rows("v")
    assert set(rows.kind) == {"velocity"}
    assert rows.moving.all()
    assert rows.value[rows.component == 0].tolist() == [0.0, 1.0, 2.0]
    assert (rows.sampled["v"].sampling, rows.sampled["v"].lowpass) == (1.0, None)


def test_filter_halves_the_power_at_its_corner_and_leaves_a_constant():
    time = np.arange(0.0, 400.0, 0.25)
    for frequency, share in ((0.02, 1.0), (0.2, np.sqrt(0.5)), (0.8, 0.0)):
        wave = lowpassed(np.sin(2 * np.pi * frequency * time), 0.25, 0.2)
        # Butterworth: 1 / sqrt(1 + (f / corner)^8), past its beginning
        assert np.abs(wave[400:]).max() == pytest.approx(share, abs=0.01)
    constant = np.full((2, 50), 3.0)
    np.testing.assert_allclose(lowpassed(constant, 0.25, 0.2), constant)


def test_filtered_series_keep_two_and_a_half_samples_in_a_period():
    time = np.arange(0.0, 40.0, 0.5)
    step = np.where(time > 5.0, 0.1, 0.0)
    found = read(content(time, step), lowpass=0.2)
    assert found.sampled is not None
    assert found.sampled.every == 4  # 2 s, and 2.5 samples in 5 s
    assert np.diff(found.time) == pytest.approx(2.0)
    assert found.displacement[-1, 0] == pytest.approx(0.1, rel=1e-3)
    exact = lowpassed(step, 0.5, 0.2)[::4]
    np.testing.assert_allclose(found.displacement[:, 0], exact)


def test_stations_are_filtered_one_by_one():
    time = np.arange(0.0, 20.0, 0.5)
    both = content(time, np.sin(time)) + content(time, time, "B", head=False)
    found = read(both, lowpass=0.2)
    alone = read(content(time, time, "B"), lowpass=0.2)
    mine = np.array(found.name) == "B"
    np.testing.assert_allclose(found.displacement[mine], alone.displacement)


@pytest.mark.parametrize(
    ("times", "values", "words"),
    [
        ([0.0], [0.0], "has one sample, which is no series"),
        ([0.0, 1.0, 1.0], [0, 0, 1], "has a sample of this time already"),
        ([0.0, 5e-324], [0.0, 0.0], "s after another sample"),
        ([0.0, 1.0, 2.0, 4.0], [0, 1, 2, 3], "comes 2 s after the sample before"),
        ([3.0, 4.0, 5.0], [0, 1, 2], "begins at 3 s, and the filter needs it from 0"),
        ([0.0, 1.0, 2.0], [0, "", 2], "has an empty field in a series"),
        ([-1.0, 0.0, 1.0], [0, 0, 1], "is before the event"),
    ],
)
def test_series_that_cannot_be_filtered_are_refused_with_the_line(times, values, words):
    with pytest.raises(SpecError, match=words):
        read(content(times, values), lowpass=0.2)


def test_stations_of_one_table_have_one_sampling():
    both = content([0, 1, 2], [0, 1, 2]) + content([0, 2, 4], [0, 1, 2], "B", False)
    with pytest.raises(SpecError, match="is sampled in 2 s, others in 1 s"):
        read(both)


def test_a_filter_above_the_samples_is_refused():
    with pytest.raises(SpecError, match="is not below half of the sampling rate"):
        read(content([0, 1, 2], [0, 1, 2]), lowpass=0.6)


def test_series_have_no_covariance_of_scenes():
    with pytest.raises(ValueError, match="is not for series of ground motion"):
        Dataset(
            name="d",
            file="d.csv",
            series=Series(),
            ramp="linear",
        )


def test_options_of_the_command_are_windows_of_a_request():
    from afterslip.cli.invert import _windows
    from afterslip.schemas.validation import validate
    from afterslip.schemas.windows import Windows

    asked = _windows("4, 2s", 3.0, "4.6,-11.3,8.7", {"kind": "local"})
    found = validate(Windows, asked)
    assert (found.count, found.step, found.hypocentre.depth) == (4, 2.0, 8.7)
    away = _windows("1", 3.0, "142,38,20", {"kind": "geographic"})
    assert validate(Windows, away).hypocentre.geographic
    assert _windows(None, None, None, {}) is None
    with pytest.raises(SpecError, match="needs all three options"):
        _windows("4,2s", None, None, {})
    with pytest.raises(SpecError, match="must be three numbers"):
        _windows("4,2s", 3.0, "1,2", {})
