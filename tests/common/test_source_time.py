import numpy as np
import pytest

from afterslip_common.source_time import brune, smooth_step, tabulated, yoffe

KINDS = {
    "smooth_step": smooth_step(2.0),
    "brune": brune(0.3),
    "yoffe": yoffe(2.0, 0.4),
    "tabulated": tabulated([0.0, 1.0, 3.0], [0.0, 0.7, 1.0]),
}


@pytest.mark.parametrize("name", KINDS)
def test_slip_grows_from_0_before_the_event_to_1_at_its_end(name):
    source = KINDS[name]
    assert not source([-1.0, -1e-9, 0.0]).any()
    shares = source(np.linspace(0.0, 2.0 * source.end, 500))
    assert np.diff(shares).min() > -1e-12
    assert source([source.end])[0] == pytest.approx(1.0, abs=2e-4)
    assert shares[-1] == pytest.approx(1.0, abs=2e-4)


def test_yoffe_is_the_convolution_with_a_triangle():
    rise, half = 2.0, 0.4
    step = 1e-4
    t = np.arange(0.0, 3.0, step)
    x = (np.arange(0.0, rise, step) + 0.5 * step) / rise
    rate = 2.0 / (np.pi * rise) * np.sqrt((1.0 - x) / x)
    around = np.arange(0.0, 2 * half, step) + 0.5 * step
    triangle = np.minimum(around, 2 * half - around) / half**2
    slip = np.cumsum(np.convolve(rate, triangle)) * step**2
    # the midpoint rule loses a share sqrt(step) of the singular begin
    expected = np.interp(t, step * (np.arange(len(slip)) + 2.0), slip)
    np.testing.assert_allclose(yoffe(rise, half)(t), expected, atol=8e-3)


def test_the_spectrum_beyond_a_frequency_is_that_of_the_formula():
    # |1 / (1 + i omega tau)^2| of Brune's
    assert brune(0.3).beyond(1.0) == pytest.approx(
        1.0 / (1.0 + (2 * np.pi * 0.3) ** 2), rel=0.03
    )
    # half at 1 / rise, and under 3 % from twice of it on
    assert smooth_step(2.0).beyond(0.5) == pytest.approx(0.5, rel=0.01)
    assert smooth_step(2.0).beyond(1.0) < 0.03


@pytest.mark.parametrize(
    ("times", "shares", "message"),
    [
        ([0.0, 1.0], [0.0, 2.0], "from 0 to 2"),
        ([0.0, 1.0, 1.0], [0.0, 0.5, 1.0], "must begin with 0 and rise"),
        ([0.0], [0.0], "two rows"),
        ([0.0, np.nan], [0.0, 1.0], "not finite"),
    ],
)
def test_a_table_that_is_no_source_time_function_is_refused(times, shares, message):
    with pytest.raises(ValueError, match=message):
        tabulated(times, shares)
