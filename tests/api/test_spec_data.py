"""Data that cannot be inverted are refused with the spec, before anything is solved."""

import copy

import numpy as np
import pytest

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers.observations import read_observations
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset
from afterslip.schemas.validation import validate
from afterslip.spec import load, parse_campaign
from afterslip.spec.data import data_problems, gather
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import read_dataset, resolve

HEAD = "station,x_km,y_km,east,north,up,sigma_e,sigma_n,sigma_u,type"
PIXELS = "x_km,y_km,los,sigma_los,los_e,los_n,los_u"
FAULT = np.array([[-20e3, -20e3], [20e3, 20e3]])


def rows(lines, head=HEAD, name="d", **more):
    text = f"{head}\n{lines}".encode()
    return read_observations(text, Frame("local"), label=name, **more).rows(name)


def stations(n, name="d", dataset=""):
    lines = [f"{name}{i},{i},0,{i}.5,,,.1,,,gnss" for i in range(n)]
    return rows("\n".join(lines), name=dataset or name)


def pixels(n, name="d", seed=1):
    rng = np.random.default_rng(seed)
    lines = [f"{x:.3f},{y:.3f},{v:.4f},.01,.6,0,.8" for x, y, v in rng.random((n, 3))]
    return rows("\n".join(lines), PIXELS, name=name)


def said(tables, fault=FAULT, settings=None, faults=None, **request):
    settings = settings or {}
    asked = {"name": "i", "datasets": list(tables), **request}
    sets = {
        name: validate(
            Dataset, {"name": name, "file": "f.csv", **settings.get(name, {})}
        )
        for name in tables
    }
    found = data_problems(
        validate(Inversion, asked), sets, tables, faults or {"main": fault}
    )
    return "\n".join(map(str, found))


def test_good_data_raise_no_problem():
    assert said({"a": stations(8, "a"), "b": pixels(9)}) == ""


def test_fewer_stations_than_folds():
    text = said({"a": stations(4, "a")}, folds=6)
    assert text.startswith("folds = 6: must be at most the number of stations")
    assert said({"a": stations(4, "a")}, folds=4) == ""


def test_usual_number_of_folds_gives_way_to_few_stations():
    assert said({"a": stations(4, "a")}) == ""
    assert "folds = 5" in said({"a": stations(1, "a")})


def test_datum_of_two_data_sets_counts_once():
    text = said({"a": stations(8, "a"), "b": stations(8, "a", "b")})
    assert "b line 2 = a0 east: is the same datum as in a line 2" in text
    assert "leave out one" in text
    assert "has 3 more lines twice" in text


def test_station_at_two_places_of_two_data_sets():
    moved = rows("a0,9,0,7,,,.1,,,gnss")
    assert "a0: is a station in d, 9000 m from" in said(
        {"a": stations(8, "a"), "b": moved}
    )


def test_pixels_of_two_scenes_are_places_of_their_own():
    one, two = pixels(3, "ascending"), pixels(4, "descending", seed=2)
    assert said({"ascending": one, "descending": two}) == ""
    found = gather([one, two])
    assert found.stations[2:4] == ("ascending pixel 4", "descending pixel 2")
    assert found.station.tolist() == list(range(7))
    assert found.x.tolist() == [*one.x, *two.x]
    assert found.y.tolist() == [*one.y, *two.y]


def test_named_pixels_at_two_places_are_refused():
    head = f"station,{PIXELS}"
    one = rows("pixel 2,1,1,.1,.01,.6,0,.8", head, "one")
    two = rows("pixel 2,9,1,.2,.01,.6,0,.8", head, "two")
    text = said({"one": one, "two": two}, folds=2)
    assert "pixel 2: is a station in two, 8000 m from where one has it" in text
    assert "a file of pixels needs no column station" in text


def test_data_of_another_earthquake():
    far = FAULT + 1e6
    text = said({"a": stations(8, "a")}, fault=far)
    assert "have no station within" in text
    assert "another earthquake?" in text


def test_a_fault_that_no_datum_is_near_is_named_beside_others():
    table = {"a": stations(8, "a")}
    far = {"main": FAULT, "other": FAULT + 400e3}
    text = said(table, faults=far)
    assert "km of the fault other" in text
    assert "leave other out of sources" in text
    # a small fault beside a large one may lie as far from land as the large one
    near = {"main": FAULT, "splay": 0.01 * FAULT + 90e3}
    assert said(table, faults=near) == ""


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ramp": "linear"}, "datasets[0].ramp: is for lines of sight"),
        (
            {"covariance": {"exponential": {"sigma": 0.01, "length": 9}}},
            "datasets[0].covariance: is for lines of sight",
        ),
        ({"terms": ["offset", "rate"]}, "are 2 unknowns for each component, and a0"),
    ],
)
def test_settings_that_the_data_cannot_answer(settings, words):
    assert words in said({"a": stations(8, "a")}, settings={"a": settings})


def test_variogram_without_enough_pixels_that_are_still():
    window = {"covariance": {"variogram": {"x": [-1, 0.5], "y": [-1, 2]}}}
    text = said({"a": pixels(40)}, settings={"a": window})
    assert "covariance.variogram" in text
    assert "30 are needed" in text
    assert said({"a": pixels(90)}, settings={"a": window}) == ""


def test_series_long_enough_for_its_terms():
    head = HEAD + ",time"
    lines = [f"A,0,0,{t},,,.1,,,gnss,{t}" for t in range(1, 4)]
    long = rows("\n".join(lines), head)
    terms = {"d": {"terms": ["offset", "rate"]}}
    assert "terms" not in said({"d": long}, settings=terms)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"floor": {}}, "floor: is empty"),
        ({"floor": {"relative": 2}}, "floor.relative = 2: must be at most 1"),
        ({"scale": 0}, "scale = 0: must be above 0"),
        ({"weight": "much"}, "weight = much: must be auto or a number"),
        ({"covariance": {}}, "must have one of exponential, variogram, file"),
        ({"terms": ["rate", "rate"]}, "terms = [rate, rate]: must name each only once"),
        ({"translation": True, "terms": ["offset"]}, "part of the offset"),
        ({"ramp": "cubic"}, "ramp = cubic: must be one of"),
        ({"types": {"a": "gravity"}}, "types.a = gravity: must be one of"),
        (
            {"covariance": {"variogram": {"x": [3, 1], "y": [0, 1]}}},
            "covariance.variogram.x = [3.0, 1.0]: must go from low to high",
        ),
        ({"epoch": "-3 d"}, "epoch = -3 d: "),
    ],
)
def test_wrong_settings_name_path_value_and_what_to_write(change, words):
    with pytest.raises(SpecError) as caught:
        validate(Dataset, {"name": "d", "file": "d.csv", **change})
    assert words in str(caught.value)


def test_own_tags_mean_kinds():
    found = rows("A,0,0,1,,,.1,,,campaign-gps", types={"Campaign-GPS": "gnss"})
    assert found.kind.tolist() == ["gnss"]


def test_unknown_tag_is_named_once_however_many_lines_have_it():
    lines = "\n".join(f"S{i},{i},0,1,,,.1,,,gravity" for i in range(155))
    with pytest.raises(SpecError) as caught:
        rows(lines)
    (problem,) = caught.value.problems
    assert problem.path == "d line 2, column type and 154 more"
    assert "types: {gravity: gnss} in the data set" in problem.hint


def test_same_line_twice_in_one_file_is_refused(tmp_path):
    line = "A,0,0,1,2,,.1,.1,,gnss"
    (tmp_path / "d.csv").write_text(f"{HEAD}\n{line}\nB,1,0,1,2,,.1,.1,,gnss\n{line}\n")
    with pytest.raises(SpecError) as caught:
        _read(tmp_path)
    assert str(caught.value.problems[0]).startswith(
        "d line 4 = A east, north: is the same datum as in d line 2"
    )


def _read(folder, **more):
    spec = {
        "name": "n",
        "model": {
            "domain": {"x": [-90, 90], "y": [-90, 90], "depth": 90},
            "layers": [{"name": "a", "bottom": 90, "vp": 6, "vs": 3, "rho": 2700}],
            "faults": [{"name": "f", "plane": PLANE}],
            "mesh": {"size": {"fault": 9, "far": 30}},
        },
        "sources": {"fault": "f", "along_strike": 1, "down_dip": 1},
        "times": {"until": "1 yr", "output": ["0 d"]},
    }
    campaign = parse_campaign(spec)
    dataset = validate(Dataset, {"name": "d", "file": "d.csv", **more})
    return read_dataset(dataset, campaign.model, campaign.end, LocalFiles(folder))


PLANE = {"x": 0, "y": 0, "top": 1, "strike": 0, "dip": 40, "length": 20, "width": 10}


def test_correlations_of_a_line_become_its_covariance():
    head = HEAD.replace(",type", ",corr_en,corr_eu,corr_nu")
    found = rows("A,0,0,1,,3,.1,,.3,.5,.4,\nB,1,0,1,1,1,.1,.2,.3,.5,,.2", head)
    (first, matrix), (second, full) = found.blocks
    assert first.tolist() == [0, 1]
    np.testing.assert_allclose(matrix, [[0.01, 0.012], [0.012, 0.09]])
    assert second.tolist() == [2, 3, 4]
    np.testing.assert_allclose(
        full, [[0.01, 0.01, 0], [0.01, 0.04, 0.012], [0, 0.012, 0.09]]
    )


def test_correlations_that_no_errors_have_are_refused():
    head = HEAD.replace(",type", ",corr_en,corr_eu,corr_nu")
    with pytest.raises(SpecError, match="no positive definite covariance"):
        rows("A,0,0,1,1,1,.1,.1,.1,.9,.9,-.9", head)
    with pytest.raises(SpecError, match=r"corr_en = 1\.5: must be between -1 and 1"):
        rows("A,0,0,1,1,1,.1,.1,.1,1.5,0,0", head)


def test_full_covariance_stands_for_the_sigmas_of_the_file(tmp_path):
    (tmp_path / "d.csv").write_text("station,x_km,y_km,east,north\nA,0,0,1,2\n")
    (tmp_path / "c.txt").write_text("0.04 0.01\n0.01, 0.09\n")
    found = _read(tmp_path, covariance={"file": "c.txt"})
    assert found.sigma.tolist() == pytest.approx([0.2, 0.3])
    np.testing.assert_allclose(found.blocks[0][1], [[0.04, 0.01], [0.01, 0.09]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 2\n2 1\n", "covariance is not positive definite"),
        ("1 0 0\n0 1 0\n0 0 1\n", "is 3 x 3, and there are 2 data"),
        ("1 0\n0 nan\n", "has a number that is not finite"),
        ("1 0.5\n0 1\n", "is not symmetric"),
        ("one two\n", "is no table of numbers"),
    ],
)
def test_matrix_that_is_no_covariance_of_the_data(tmp_path, text, words):
    (tmp_path / "d.csv").write_text("station,x_km,y_km,east,north\nA,0,0,1,2\n")
    (tmp_path / "c.txt").write_text(text)
    with pytest.raises(SpecError, match=words) as caught:
        _read(tmp_path, covariance={"file": "c.txt"})
    assert caught.value.problems[0].path == "covariance.file (c.txt)"


def test_campaign_whose_inversion_cannot_be_done_is_refused_with_its_path(
    tmp_path, request
):
    folder = request.path.parent / "specs"
    data = copy.deepcopy(load(folder / "tohoku.yaml"))
    data["inversions"][0]["folds"] = 9
    with pytest.raises(SpecError) as caught:
        resolve(parse_campaign(data), LocalFiles(folder))
    (problem,) = caught.value.problems
    assert problem.path == "inversions[0].folds"
    assert problem.value == 9
    assert "fewer folds" in problem.hint


def test_increments_need_data_after_they_begin():
    head = HEAD + ",time"
    lines = [f"S{k},{k},0,{k}.5,,,.1,,,gnss,{t}" for k in range(6) for t in (0, 1)]
    series = {"d": rows("\n".join(lines), head)}
    assert said(series, increments={"ends": ["30 d", "1 yr"]}) == ""
    text = said(series, increments={"ends": ["1 yr", "2 yr"]})
    assert "increments.ends[1] = 2 yr: is of an interval that begins after" in text
    text = said({"a": stations(8, "a")}, increments={"ends": ["1 yr"]})
    assert "increments: need data after the event" in text


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        (["0 d"], "increments.ends[0] = 0 d: must be later than the one before"),
        (["1 yr", "3 d"], "increments.ends[1] = 3 d: must be later"),
        ([], "increments.ends = []: needs at least 1"),
    ],
)
def test_intervals_follow_each_other(ends, words):
    asked = {"name": "i", "datasets": ["d"], "increments": {"ends": ends}}
    with pytest.raises(SpecError) as caught:
        validate(Inversion, asked)
    assert words in str(caught.value)


@pytest.mark.parametrize("amplitude", [0, -1, "large"])
def test_afterslip_of_no_size_is_refused(amplitude):
    increments = {"ends": ["1 yr"], "amplitude": amplitude}
    with pytest.raises(SpecError) as caught:
        validate(Inversion, {"name": "i", "datasets": ["d"], "increments": increments})
    assert "increments.amplitude" in str(caught.value)
