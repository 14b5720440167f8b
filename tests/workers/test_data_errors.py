"""Errors that an inversion weighs data by, and what is unknown beside slip."""

import numpy as np
import pytest

from afterslip.frame import Frame
from afterslip.readers.observations import read_observations
from afterslip.schemas.observation import Dataset
from afterslip.schemas.validation import validate
from afterslip.spec.data import gather
from afterslip_workers.errors import TaskError
from afterslip_workers.inverting.data import (
    dataset_facts,
    problem_terms,
    refuse_degenerate_ramps,
    unknowns,
    with_errors,
)

HEAD = "station,x_km,y_km,east,north,up,sigma_e,sigma_n,sigma_u,type,time"
LAND = f"{HEAD}\nA,0,0,3,,4,.3,,.4,gnss,\nB,90,0,1,2,,.1,.2,,gnss,2"
RADAR = (
    "x_km,y_km,los,sigma_los,los_e,los_n,los_u,time\n"
    "0,0,.5,.1,.6,0,.8,1\n30,0,.6,.1,.6,0,.8,1\n0,0,.7,.1,.6,0,.8,2\n"
)


def read(content, name):
    return read_observations(content.encode(), Frame("local")).rows(name)


def posed(**settings):
    """Rows of a land and a radar data set with their settings."""
    rows = gather([read(LAND, "land"), read(RADAR, "radar")])
    sets = {
        name: validate(Dataset, {"name": name, "file": "f", **settings.get(name, {})})
        for name in ("land", "radar")
    }
    return rows, sets


def test_errors_of_the_files_stay_where_nothing_is_asked():
    rows, sets = posed()
    found, made = with_errors(rows, sets)
    assert found.sigma.tolist() == rows.sigma.tolist()
    assert found.blocks == ()
    assert made == {}


def test_scale_floor_and_relative_error_add_as_squares():
    floor = {"horizontal": 0.05, "vertical": 0.5, "relative": 0.1}
    rows, sets = posed(land={"scale": 2, "floor": floor})
    found, _ = with_errors(rows, sets)
    expected = [
        np.sqrt(0.6**2 + 0.05**2 + 0.3**2),
        np.sqrt(0.8**2 + 0.5**2 + 0.4**2),
        np.sqrt(0.2**2 + 0.05**2 + 0.1**2),
        np.sqrt(0.4**2 + 0.05**2 + 0.2**2),
    ]
    assert found.sigma[:4].tolist() == pytest.approx(expected)
    assert found.sigma[4:].tolist() == [0.1, 0.1, 0.1]


def test_weight_divides_variances_and_settles_them():
    rows, sets = posed(land={"weight": 4})
    found, _ = with_errors(rows, sets)
    assert found.sigma[:4].tolist() == pytest.approx([0.15, 0.2, 0.05, 0.1])
    terms = problem_terms(found, sets, [])
    assert terms["variance_free"].tolist() == [False, True]
    assert terms["dataset"].tolist() == [0] * 4 + [1] * 3


def test_pixels_of_one_scene_share_errors_and_scenes_do_not():
    covariance = {"exponential": {"sigma": 0.2, "length": 15}}
    rows, sets = posed(radar={"covariance": covariance, "weight": 4, "scale": 3})
    found, _ = with_errors(rows, sets)
    (first, pair), (second, single) = found.blocks
    assert first.tolist() == [4, 5]
    assert second.tolist() == [6]
    own, shared = 0.3**2, 0.2**2
    off = shared * np.exp(-30 / 15)
    np.testing.assert_allclose(pair * 4, [[own + shared, off], [off, own + shared]])
    np.testing.assert_allclose(single * 4, [[own + shared]])
    np.testing.assert_allclose(found.sigma[4:], np.sqrt(own + shared) / 2)


def test_correlated_components_are_scaled_with_their_errors():
    head = HEAD.replace(",type", ",corr_en")
    table = read(f"{head}\nA,0,0,3,4,,.3,.4,,.5,", "land")
    sets = {"land": validate(Dataset, {
        "name": "land", "file": "f", "scale": 2, "floor": {"horizontal": 0.1},
    })}  # fmt: skip
    found, _ = with_errors(table, sets)
    ((_, matrix),) = found.blocks
    np.testing.assert_allclose(matrix, [[0.37, 0.24], [0.24, 0.65]])
    np.testing.assert_allclose(found.sigma, np.sqrt([0.37, 0.65]))
    assert table.blocks[0][1][0, 0] == pytest.approx(0.09)  # the table stays as it was


def test_translation_is_one_constant_for_each_component_and_each_scene():
    rows, sets = posed(land={"translation": True}, radar={"translation": True})
    found = unknowns(rows, sets)
    assert [(u.dataset, u.component) for u in found] == [
        ("land", 0), ("land", 1), ("land", 2), ("radar", 3), ("radar", 3),
    ]  # fmt: skip
    columns = np.array([u.column for u in found])
    assert columns.tolist() == [
        [1, 0, 1, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 0, 1],
    ]


def test_ramp_is_a_plane_about_the_middle_of_each_scene():
    rows, sets = posed(radar={"ramp": "linear"})
    found = unknowns(rows, sets)
    assert [u.name for u in found[:3]] == ["ramp constant", "ramp x", "ramp y"]
    # 30 km apart, in 100 km
    assert found[1].column.tolist() == pytest.approx([0, 0, 0, 0, -0.15, 0.15, 0])
    assert found[1].unit == "m/(100 km)^1"
    quadratic = posed(radar={"ramp": "quadratic", "translation": True})
    names = [u.name for u in unknowns(*quadratic)]
    assert names[2:] == ["ramp x", "ramp y", "ramp xx", "ramp xy", "ramp yy"] * 2


def pixels(places, **settings):
    """Unknowns beside slip of one scene with pixels at places in km."""
    head, *_ = RADAR.splitlines()
    lines = "\n".join(f"{x},{y},.5,.1,.6,0,.8,1" for x, y in places)
    rows = read(f"{head}\n{lines}", "radar")
    item = {"name": "radar", "file": "f", **settings}
    sets = {"radar": validate(Dataset, item)}
    return unknowns(rows, sets), sets


PROFILE = [(x, 0.5 * x) for x in range(-40, 41, 8)]
SCENE = [(x, y) for x in (-20, 0, 15) for y in (-30, 5, 20)]


@pytest.mark.parametrize(
    ("places", "settings"),
    [
        (PROFILE, {"ramp": "linear"}),
        (PROFILE, {"ramp": "quadratic"}),
        (PROFILE, {"ramp": "linear", "translation": True}),
        (SCENE[:5], {"ramp": "quadratic"}),
    ],
)
def test_a_ramp_that_its_pixels_do_not_determine_is_refused_by_name(places, settings):
    said = f"datasets radar, ramp: {settings['ramp']}: the {len(places)} pixels at 1 yr"
    with pytest.raises(
        TaskError, match=f"{said} .*leave ramp out, or give translation"
    ):
        refuse_degenerate_ramps(*pixels(places, **settings))


@pytest.mark.parametrize(
    ("places", "settings"),
    [
        (SCENE, {"ramp": "linear"}),
        (SCENE, {"ramp": "quadratic", "translation": True}),
        # 100 m beside a line of 80 km
        ([*PROFILE, (0, 0.1)], {"ramp": "linear"}),
        (PROFILE[:1], {"translation": True}),
        (PROFILE, {}),
    ],
)
def test_a_ramp_that_its_pixels_determine_passes(places, settings):
    refuse_degenerate_ramps(*pixels(places, **settings))


def test_terms_of_a_series_are_functions_of_the_years_after_the_event():
    lines = "\n".join(f"A,0,0,{t},,,.1,,,gnss,{t}" for t in (0.25, 0.5, 1.0))
    rows = read(f"{HEAD}\n{lines}", "land")
    sets = {"land": validate(Dataset, {
        "name": "land", "file": "f", "terms": ["offset", "rate", "annual"],
    })}  # fmt: skip
    found = {u.name: u for u in unknowns(rows, sets)}
    assert found["offset"].column.tolist() == [1, 1, 1]
    assert found["rate"].column.tolist() == pytest.approx([0.25, 0.5, 1.0])
    assert found["rate"].unit == "m/yr"
    np.testing.assert_allclose(found["annual cos"].column, [0, -1, 1], atol=1e-9)
    np.testing.assert_allclose(found["annual sin"].column, [1, 0, 0], atol=1e-9)
    assert found["rate"].station == 0


def test_facts_say_where_the_errors_came_from():
    text = f"{HEAD}\nA,0,0,3,2,,.3,,,gnss,"
    sigma = {"horizontal": 0.5}
    dataset = validate(Dataset, {"name": "d", "file": "f", "sigma": sigma})
    rows = read_observations(text.encode(), Frame("local"), dataset.sigma).rows("d")
    (fact,) = dataset_facts(rows, {"d": dataset}, {})
    assert (fact["count"], fact["sigma_of_file"]) == (2, 1)
    assert fact["errors"]["sigma"] == {"horizontal": 0.5}
