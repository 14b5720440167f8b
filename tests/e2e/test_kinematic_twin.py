"""A rupture that is known, inverted by the service from noisy data of three kinds."""

import json
from typing import Any

import numpy as np
import pytest

from afterslip import Campaign, Client
from afterslip.client.errors import ApiError
from afterslip.result import moving
from afterslip_common.source_time import smooth_step

HYPOCENTRE = np.array([0.0, -6.0, -7.0])  # km
SPEED, RISE = 2.0, 4.0
PLACES = [(5, 4), (-6, 8), (8, -8), (-9, -5), (11, 9), (-3, -14), (2, 14), (-12, 2)]
SPEC: dict[str, Any] = {
    "name": "twin",
    "physics": "waves",
    "model": {
        "frame": {"kind": "local"},
        "domain": {"x": [-26, 26], "y": [-26, 26], "depth": 28},
        "layers": [{"name": "rock", "bottom": 28, "vp": 6.0, "vs": 3.464, "rho": 2700}],
        "faults": [
            {
                "name": "main",
                "plane": {"x": -3.5, "y": 0, "top": 3, "strike": 0, "dip": 50,
                          "length": 20, "width": 10},
            }
        ],
    },
    "sources": {"fault": "main", "along_strike": 5, "down_dip": 2, "shape": "patch",
                "components": ["dip"]},
    "stations": {"file": "stations.csv"},
    "waves": {
        "frequency": 0.3,
        "points_per_wavelength": 8,
        "duration": "36 s",
        "sampling": "0.5 s",
        "source_time": {"kind": "smooth_step", "rise": "4 s"},
        "backend": "cpu",
    },
}  # fmt: skip
WINDOWS = {
    "count": 4,
    "spacing": "2 s",
    "rupture_speed": 2.5,
    "hypocentre": {"x": 0.0, "y": -6.0, "depth": 7.0},
}
SIGMA = {"static": 0.002, "gnss": 0.005, "motion": 0.002}


def truth(table):
    """Slip, m, begin, s, and windows of 2 s, of sources at most as large as patches."""
    place = table["source_position"].values / 1e3
    y = place[:, 1]
    slip = 0.8 * np.exp(-(((y + 4.0) / 4.0) ** 2)) + 1.2 * np.exp(
        -(((y - 5.0) / 3.5) ** 2)
    )
    begin = np.linalg.norm(place - HYPOCENTRE, axis=1) / SPEED
    return slip, begin, np.where(y > 1.0, 3, 1)


def moved(greens, variable):
    """(n_station, 3, n_sample) motion of the truth."""
    slip, begin, steps = truth(greens)
    time, series = greens["sample"].values, greens[variable].values.astype(float)
    total = np.zeros(series.shape[1:])
    for k, (amount, first, count) in enumerate(zip(slip, begin, steps, strict=True)):
        for step in range(count):
            late = time - first - 2.0 * step
            for place in np.ndindex(total.shape[:2]):
                part = np.interp(late, time, series[(k, *place)], left=0.0)
                total[place] += amount / count * part
    return total


def write(folder, name, times, values, rng):
    """Write (n_station, 3, n_time) with noise."""
    sigma = SIGMA[name]
    lines = ["station,x_km,y_km,time_s,east,north,up,sigma_e,sigma_n,sigma_u"]
    for row, (x, y) in enumerate(PLACES):
        for k, time in enumerate(times):
            noisy = values[row, :, k] + sigma * rng.standard_normal(3)
            numbers = ",".join(f"{value:.6f}" for value in noisy)
            lines.append(f"S{row},{x},{y},{time:g},{numbers},{sigma},{sigma},{sigma}")
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with Client.embedded(tmp_path_factory.mktemp("service"), workers=1) as client:
        yield client


@pytest.fixture(scope="module")
def data(client, tmp_path_factory):
    """Folder with the stations and three tables, from patches of half the size."""
    folder = tmp_path_factory.mktemp("data")
    rows = [f"S{k},{x},{y}" for k, (x, y) in enumerate(PLACES)]
    (folder / "stations.csv").write_text("\n".join(["station,x_km,y_km", *rows]) + "\n")
    finer = {**SPEC["sources"], "along_strike": 10, "down_dip": 4}
    spec = Campaign.from_dict({**SPEC, "sources": finer}, folder)
    greens = client.submit(spec).wait(timeout=280).greens().load()
    rng = np.random.default_rng(3)
    offset = np.tensordot(truth(greens)[0], greens["offset"].values, axes=1)
    write(folder, "static", [0.0], offset[..., None], rng)
    times = greens["sample"].values
    write(folder, "gnss", times[::2], moved(greens, "displacement")[..., ::2], rng)
    write(folder, "motion", times, moved(greens, "seismogram"), rng)
    return folder


@pytest.fixture(scope="module")
def campaign(client, data):
    return client.submit(Campaign.from_dict(SPEC, data)).wait(timeout=280)


@pytest.fixture(scope="module")
def inversion(client, campaign, data):
    client.add_dataset("static", data / "static.csv")
    client.add_dataset("gnss", data / "gnss.csv", series={"lowpass": 0.25})
    velocity = {"quantity": "velocity", "lowpass": 0.3}
    client.add_dataset("motion", data / "motion.csv", series=velocity)
    return campaign.invert(
        ["static", "gnss", "motion"],
        sign={"dip": "positive"},
        windows=WINDOWS,
        timeout=280,
    )


@pytest.mark.slow
def test_a_rupture_is_found_with_its_moment_place_and_times(inversion):
    found = inversion.result
    slip, begin, steps = truth(found)
    moment = (found["source_rigidity"] * found["source_area"]).values * slip
    magnitude = 2.0 / 3.0 * (np.log10(moment.sum()) - 9.1)
    assert inversion.magnitude == pytest.approx(magnitude, abs=0.05)
    exact = moment @ found["source_position"].values / moment.sum()
    ours = [found.attrs[f"centroid_{axis}"] for axis in "xyz"]
    # half a patch
    assert np.linalg.norm(ours - exact) < 2000.0
    times, grow = np.arange(0.0, 40.0, 0.01), smooth_step(RISE)
    done = np.stack([grow(times - first) for first in begin])
    for row in np.flatnonzero(steps == 3):
        parts = [grow(times - begin[row] - 2.0 * k) for k in range(3)]
        done[row] = np.mean(parts, axis=0)
    tenth, most = (times[np.argmax(done >= share, axis=1)] for share in (0.1, 0.9))
    strong = slip > 0.5 * slip.max()
    late = (found["rupture_time"].values - tenth)[strong]
    assert np.abs(late).max() < 2.0
    rise = found["rise_time"].values
    # smoothness lengthens some: within a window on average, and the longer is longer
    assert np.abs(rise - (most - tenth))[strong].mean() < 2.0
    long = strong & (steps == 3)
    assert rise[long].mean() > 1.3 * rise[strong & (steps == 1)].mean()


@pytest.mark.slow
def test_moment_rate_sums_up_and_has_its_band(inversion):
    found = inversion.result
    rate, time = found["moment_rate"].values, found["rate_time"].values
    step = time[1] - time[0]
    assert rate.sum() * step == pytest.approx(inversion.moment, rel=1e-6)
    low, high = found["moment_rate_interval"].values.T
    assert (
        (low <= rate + 1e-3 * rate.max()) & (rate <= high + 1e-3 * rate.max())
    ).mean() > 0.9
    whole = found["slip_window"].values.sum(axis=0)
    np.testing.assert_allclose(whole, found["slip"].values, atol=1e-9)
    assert (found["slip_window"].values >= 0.0).all()


@pytest.mark.slow
def test_the_result_says_how_series_were_filtered_and_reports_them(inversion, tmp_path):
    found = inversion.result
    chosen = moving(found)
    assert 0 < (~chosen).sum() == 24
    assert set(found["obs_unit"].values[chosen].astype(str)) == {"m", "m s-1"}
    facts = {item["name"]: item for item in json.loads(found.attrs["datasets"])}
    assert facts["gnss"]["series"]["lowpass"] == 0.25
    # 2.5 samples in 4 s, of samples 1 s apart
    assert facts["gnss"]["series"]["sampling"] == 1.0
    folder = inversion.save(tmp_path / "out")
    page = (folder / "report.html").read_text()
    assert "Butterworth" in page
    assert "Moment rate" in page
    assert "Ground motion" in page
    assert (folder / "moment_rate.png").stat().st_size > 10_000


@pytest.mark.slow
def test_requests_that_do_not_fit_are_refused_by_the_service(campaign, inversion):
    wrong = {**WINDOWS, "hypocentre": {"x": 9.0, "y": 0.0, "depth": 7.0}}
    with pytest.raises(ApiError, match=r"windows\.hypocentre.* km from the fault main"):
        campaign.invert(["gnss"], windows=wrong)
    with pytest.raises(ApiError, match="windows: is missing"):
        campaign.invert(["static"])
