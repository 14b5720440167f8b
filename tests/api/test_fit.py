"""What a result says of how well its data are fitted."""

import numpy as np
import pytest
import xarray as xr
from example_result import example_result, two_solutions

from afterslip.result import check, fit_by_type, variance_reduction, vectors


@pytest.fixture(scope="module")
def result():
    return example_result()


def test_variance_reduction_is_weighted_by_the_errors():
    data = xr.Dataset(
        {
            "observed": ("obs", [2.0, 0.3]),
            "predicted": ("obs", [1.0, 0.3]),
            "sigma": ("obs", [0.5, 0.1]),
        }
    )
    # residuals 2 and 0 sigmas; data 4 and 3 sigmas
    assert variance_reduction(data) == pytest.approx(1 - 4 / 25)


def test_fit_is_reported_for_each_type_and_side(result):
    rows = {row.name: row for row in fit_by_type(result)}
    assert list(rows) == [
        "GNSS, horizontal", "GNSS, vertical", "GNSS-acoustic, horizontal",
        "GNSS-acoustic, vertical", "ocean-bottom pressure, vertical", "all",
    ]  # fmt: skip
    assert rows["all"].count == result.sizes["obs"]
    assert sum(r.count for r in rows.values()) == 2 * result.sizes["obs"]
    obp = result.isel(obs=result["obs_type"].values == "obp")
    rms = float(np.sqrt(((obp.observed - obp.predicted) ** 2).mean()))
    assert rows["ocean-bottom pressure, vertical"].rms == pytest.approx(rms)


def test_residuals_of_velocities_have_their_unit_and_are_not_summed_with_others(result):
    kinds = result["obs_type"].values.astype(object)
    kinds[kinds == "obp"] = "velocity"
    rows = {
        row.name: row for row in fit_by_type(result.assign(obs_type=("obs", kinds)))
    }
    assert rows["GNSS, vertical"].unit == "m"
    moved = rows["velocity through seconds, vertical"]
    assert moved.unit == "m/s"
    assert moved.rms > 0
    assert rows["all"].unit == ""
    assert np.isnan([rows["all"].rms, rows["all"].variance_reduction_unweighted]).all()
    assert np.isfinite([rows["all"].chi, rows["all"].variance_reduction]).all()


def test_vectors_gather_the_components_of_a_station(result):
    data = vectors(result)
    assert data.observed.shape == (result.sizes["station"], 3)
    row = result["station"].values.tolist().index("P09")
    mine = data.observed[data.station == row]
    assert np.isnan(mine[0, :2]).all()
    assert np.isfinite(mine[0, 2])


def test_solutions_of_a_station_in_two_data_sets_are_two_vectors(result):
    both = two_solutions(result)
    data = vectors(both)
    assert len(data.station) == 2 * len(vectors(result).station)
    mine = data.station == both["station"].values.tolist().index("J000")
    assert data.dataset[mine].tolist() == ["first", "second"]
    np.testing.assert_allclose(np.diff(data.observed[mine], axis=0), 1.0)
    assert data[mine].dataset.tolist() == ["first", "second"]


def test_repeated_solutions_of_a_data_set_are_two_vectors(result):
    both = two_solutions(result).drop_vars("obs_dataset")
    data = vectors(both)
    assert len(data.station) == 2 * len(vectors(result).station)
    mine = data.station == both["station"].values.tolist().index("J000")
    np.testing.assert_allclose(np.diff(data.observed[mine], axis=0), 1.0)


def test_what_is_no_result_is_reported_by_name(result):
    broken = result.drop_vars(["slip", "series"])
    broken["observed"] = (("obs", "extra"), np.zeros((broken.sizes["obs"], 2)))
    with pytest.raises(ValueError, match="slip is missing") as caught:
        check(broken)
    assert "series is missing" in str(caught.value)
    assert "observed has dimensions (obs, extra), not (obs)" in str(caught.value)
