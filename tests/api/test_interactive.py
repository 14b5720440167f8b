"""Interactive figures show the numbers of the result, and need no server."""

import numpy as np
import pytest
from example_result import example_result
from small_store import (
    TIMES,
    create_whole_store,
)

pytest.importorskip("plotly", reason="comes with the extra interactive")

from afterslip import interactive
from afterslip.archive import GreensStore
from afterslip.result import vectors


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "greens.zarr"
    create_whole_store(path)
    return path


def test_greens_functions_move_with_the_slider(store):
    figure = interactive.greens(store, source=5)
    expected = GreensStore(store).evaluate(TIMES, sources=[5]).values[0]
    (slider,) = figure.layout.sliders
    assert [step.label for step in slider.steps] == ["0 yr", "0.5 yr", "10 yr"]
    assert [trace.visible for trace in figure.data] == [True] * 2 + [False] * 4
    for step, motion in zip(slider.steps, expected, strict=True):
        visible = step.args[0]["visible"]
        ground, arrows = (t for t, on in zip(figure.data, visible, strict=True) if on)
        np.testing.assert_allclose(ground.customdata, motion)
        np.testing.assert_allclose(ground.marker.color, motion[:, 2])
        # north over east of each arrow is that of the motion
        east, north = (np.diff(np.reshape(v, (-1, 3))[:, :2])[:, 0]
                       for v in (arrows.x, arrows.y))  # fmt: skip
        np.testing.assert_allclose(north * motion[:, 0], east * motion[:, 1], atol=1e-9)
        assert np.hypot(east, north).max() < 0.1 * np.ptp(ground.x)


def test_slip_is_on_the_nodes_of_the_fault():
    result = example_result()
    fault, places = interactive.slip(result).data
    np.testing.assert_allclose(fault.z, result["fault_z"] / 1e3)
    np.testing.assert_allclose(
        fault.intensity, np.linalg.norm(result["fault_slip"], axis=1)
    )
    assert len(places.x) == result.sizes["station"]


def test_fit_has_each_station_once_with_its_numbers():
    result = example_result()
    data = vectors(result)
    figure = interactive.fit(result)
    places, observed, predicted = figure.data
    assert len(places.x) == len(set(data.station))
    first = int(np.argmin(data.station))
    for value in data.observed[first][np.isfinite(data.observed[first])]:
        assert f"{value:.4f}" in places.text[0]
    assert observed.name == "observed"
    # both are drawn to one scale
    finite = np.isfinite(data.observed[first, :2]).all()
    if finite:
        drawn, other = (np.diff(np.asarray(t.x)[:2])[0] for t in (observed, predicted))
        share = data.predicted[first, 0] / data.observed[first, 0]
        assert other / drawn == pytest.approx(share)


def test_a_result_without_stations_is_refused():
    result = example_result()
    only_scene = result.isel(obs=slice(0, 1)).copy()
    only_scene["obs_component"] = ("obs", [3])
    with pytest.raises(ValueError, match="no data of stations"):
        interactive.fit(only_scene)


def test_a_page_needs_nothing_from_elsewhere(tmp_path):
    path = tmp_path / "slip.html"
    interactive.slip(example_result()).write_html(path, include_plotlyjs=True)
    text = path.read_text()
    assert 'src="http' not in text
    assert "Plotly.newPlot" in text
