"""Windows and ground motion that do not go with a campaign of waves."""

from typing import Any

import numpy as np
import pytest

from afterslip import SpecError
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve

SPEC: dict[str, Any] = {
    "name": "waves",
    "physics": "waves",
    "model": {
        "frame": {"kind": "local"},
        "domain": {"x": [-20, 20], "y": [-20, 20], "depth": 20},
        "layers": [{"name": "rock", "bottom": 20, "vp": 6.0, "vs": 3.464, "rho": 2700}],
        "faults": [
            {
                "name": "main",
                "plane": {"x": 0, "y": 0, "top": 2, "strike": 0, "dip": 90,
                          "length": 8, "width": 4},
            }
        ],
    },
    "sources": {"fault": "main", "along_strike": 4, "down_dip": 2, "shape": "patch"},
    "stations": {"file": "stations.csv"},
    "waves": {
        "frequency": 0.5,
        "duration": "20 s",
        "sampling": "0.5 s",
        "source_time": {"kind": "smooth_step", "rise": "3 s"},
    },
    "datasets": [
        {"name": "offsets", "file": "static.csv"},
        {"name": "motion", "file": "motion.csv", "series": {"lowpass": 0.4}},
    ],
    "inversions": [
        {
            "name": "rupture",
            "datasets": ["offsets", "motion"],
            "windows": {
                "count": 3,
                "spacing": "1.5 s",
                "rupture_speed": 2.5,
                "hypocentre": {"x": 0, "y": -2, "depth": 4},
            },
        }
    ],
}  # fmt: skip
PLACES = {"A": (5.0, 3.0), "B": (-4.0, 6.0)}
HEAD = "station,x_km,y_km,time_s,east,north,up,sigma_e,sigma_n,sigma_u"


def motion(places, end=20.0, sampling=0.25):
    times = np.arange(0.0, end + 1e-9, sampling)
    lines = [
        f"{name},{x},{y},{t:g},{0.01 * t:g},0,0,0.01,0.01,0.01"
        for name, (x, y) in places.items()
        for t in times
    ]
    return "\n".join([HEAD, *lines]) + "\n"


@pytest.fixture
def folder(tmp_path):
    rows = [f"{name},{x},{y}" for name, (x, y) in PLACES.items()]
    (tmp_path / "stations.csv").write_text(
        "\n".join(["station,x_km,y_km", *rows]) + "\n"
    )
    moved = "0.01,0.01,0,0.01,0.01,0.01"
    offsets = [f"{name},{x},{y},{moved}" for name, (x, y) in PLACES.items()]
    head = HEAD.replace("time_s,", "")
    (tmp_path / "static.csv").write_text("\n".join([head, *offsets]) + "\n")
    (tmp_path / "motion.csv").write_text(motion(PLACES))
    return tmp_path


def changed(windows=None, series=None, waves=None, **request):
    own = {**SPEC["inversions"][0], **request}
    if "windows" not in request:
        own["windows"] = {**own["windows"], **(windows or {})}
    motion = {**SPEC["datasets"][1], "series": series or {"lowpass": 0.4}}
    return {
        **SPEC,
        "waves": {**SPEC["waves"], **(waves or {})},
        "datasets": [SPEC["datasets"][0], motion],
        "inversions": [own],
    }


def refused(folder, spec):
    with pytest.raises(SpecError) as caught:
        resolve(parse_campaign(spec, folder), LocalFiles(folder))
    return caught.value.problems


def test_what_fits_is_taken(folder):
    found = resolve(parse_campaign(SPEC, folder), LocalFiles(folder))
    assert set(found.datasets["motion"].kind) == {"displacement"}
    assert found.datasets["motion"].sampled["motion"].every == 4
    assert not found.datasets["offsets"].moving.any()


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        (
            {"series": {"quantity": "velocity"}},
            "datasets[1].series",
            "is sampled for frequencies to 2 Hz, and the waves carry 0.5 Hz",
        ),
        (
            {"series": {"lowpass": 0.6}},
            "datasets[1].series.lowpass",
            "is above what the waves carry, 0.5 Hz",
        ),
        (
            {"windows": {"hypocentre": {"x": 3, "y": 0, "depth": 4}}},
            "windows.hypocentre",
            "is 3 km from the fault main, and half a patch is 1 km",
        ),
        (
            {"windows": {"hypocentre": {"lon": 3, "lat": 0, "depth": 4}}},
            "windows.hypocentre",
            "is in degrees, but the model's frame is local",
        ),
        (
            {"windows": {"count": 14}},
            "windows",
            "end 24.54 s after the event, and the waves end at 20 s",
        ),
        (
            {"waves": {"absorbing": {"kind": "sponge"}, "frequency": 0.6}},
            "datasets[0]",
            "sides of kind sponge hold no static displacement",
        ),
    ],
)
def test_windows_and_series_that_do_not_fit_are_refused(folder, changes, path, words):
    found = refused(folder, changed(**changes))
    assert any(
        item.path == f"inversions[0].{path}" and words in item.message for item in found
    ), found


def test_series_that_end_before_the_last_waves_are_refused_with_the_station(folder):
    (folder / "motion.csv").write_text(motion(PLACES, end=6.0))
    found = refused(folder, SPEC)
    (problem, *_) = found
    assert problem.value == "A"
    assert problem.path == "inversions[0].datasets[1]"
    assert "ends at 6 s (2 stations do)" in problem.message
    # front 5.1 km / 2.5 km/s, two windows, and 7.07 km at 3.464 km/s
    assert "may arrive until 7.081 s" in problem.message


def test_stations_that_have_no_waves_are_refused_unless_the_ground_is_stored(folder):
    (folder / "motion.csv").write_text(motion({**PLACES, "C": (1.0, 8.0)}))
    (problem,) = refused(folder, SPEC)
    assert problem.value == "C"
    assert "is not a station of the campaign, B is 5.39 km away" in problem.message
    ground = changed(waves={"surface": {"spacing": 1.0}})
    resolve(parse_campaign(ground, folder), LocalFiles(folder))


def test_data_after_the_waves_are_refused_in_seconds(folder):
    (folder / "motion.csv").write_text(motion(PLACES, end=25.0))
    (problem, *_) = refused(folder, SPEC)
    assert "is later than the end of the Green's functions (20 s)" in problem.message


def test_other_physics_have_no_windows_and_no_ground_motion(folder):
    slow = {
        "name": "slow",
        "model": {
            **SPEC["model"],
            "mesh": {"size": {"fault": 2, "far": 10}},
        },
        "sources": {**SPEC["sources"]},
        "times": {"until": "1 yr", "output": ["0 d", "1 yr"]},
        "datasets": SPEC["datasets"],
        "inversions": SPEC["inversions"],
    }
    found = refused(folder, slow)
    assert [item.path for item in found] == [
        "inversions[0].windows",
        "inversions[0].datasets[1].series",
    ]


def test_slip_of_waves_needs_windows(folder):
    spec = changed()
    del spec["inversions"][0]["windows"]
    (problem,) = refused(folder, spec)
    assert problem.path == "inversions[0].windows"
    assert "is missing: slip makes waves in windows" in problem.message


@pytest.mark.parametrize(
    ("windows", "words"),
    [
        ({"spacing": "0 s"}, "must be above 0 with several windows"),
        ({"count": 0}, "must be between 1 and 50"),
        ({"rupture_speed": 0}, "must be at least 0.1"),
        ({"hypocentre": {"x": 1, "depth": 3}}, "must have one place"),
        (
            {"hypocentre": {"x": 1, "y": 2, "lon": 3, "lat": 4, "depth": 3}},
            "must have one place",
        ),
    ],
)
def test_windows_that_make_no_sense_are_refused(folder, windows, words):
    with pytest.raises(SpecError, match=words):
        parse_campaign(changed(windows=windows), folder)


def test_windows_and_increments_exclude_each_other(folder):
    with pytest.raises(SpecError, match="and windows exclude each other"):
        parse_campaign(changed(increments={"ends": ["1 d"]}), folder)


def test_the_depth_of_a_hypocentre_counts_from_the_level_of_the_sea(folder):
    heights = "\n".join(
        f"{x},{y},1.5" for x in (-30, -10, 10, 30) for y in (-30, -10, 10, 30)
    )
    (folder / "ground.csv").write_text(f"x_km,y_km,height_km\n{heights}\n")
    spec = changed(windows={"hypocentre": {"x": 0, "y": -2, "depth": 1}})
    spec["model"] = {**SPEC["model"], "topography": "ground.csv"}
    # the top of the fault, 2 km below a ground of 1.5 km, is 0.65 km below the sea
    resolve(parse_campaign(spec, folder), LocalFiles(folder))
    (problem, *_) = refused(folder, {**spec, "model": SPEC["model"], "inversions": [
        {**spec["inversions"][0], "windows": {**spec["inversions"][0]["windows"],
         "hypocentre": {"x": 0, "y": -2, "depth": 0.5}}}]})  # fmt: skip
    assert problem.path == "inversions[0].windows.hypocentre"
