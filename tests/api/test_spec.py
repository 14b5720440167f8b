"""Specs: what parses, and what every mistake says."""

import copy
import json
import pickle
from pathlib import Path

import pytest

from afterslip.errors import SpecError
from afterslip.physics.viscoelastic.spec import (
    ViscoelasticCampaign,
    ViscoelasticForward,
)
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.forward import Forward, SlipFile
from afterslip.spec import load, loads, parse, parse_campaign, parse_forward
from afterslip.units import DAY, YEAR

SPECS = Path(__file__).parent / "specs"
STEPPING = {"integrator": "stepping", "step": "0.1 s"}


@pytest.fixture
def campaign() -> dict:
    return load(SPECS / "tohoku.yaml")


@pytest.fixture
def forward() -> dict:
    return load(SPECS / "forward.yaml")


def put(data: dict, path: str, value: object) -> dict:
    """Set (or, with KeyError as the value, remove) what a path names."""
    data = copy.deepcopy(data)
    here, keys = data, path.replace("]", "").replace("[", ".").split(".")
    steps = [int(k) if k.isdigit() else k for k in keys]
    for key in steps[:-1]:
        here = here[key]
    if value is KeyError:
        del here[steps[-1]]
    else:
        here[steps[-1]] = value
    return data


def viscosity(spec: Campaign) -> float:
    """Return that of the mantle."""
    law = spec.model.layers[1].rheology
    assert law is not None
    assert law.maxwell is not None
    return law.maxwell.viscosity


def only_problem(data: dict):
    with pytest.raises(SpecError) as caught:
        parse(data)
    assert len(caught.value.problems) == 1, str(caught.value)
    return caught.value.problems[0]


def test_the_documented_campaign_parses(campaign: dict) -> None:
    spec = parse_campaign(campaign)
    assert isinstance(spec, ViscoelasticCampaign)
    assert float(spec.times.until) == 10 * YEAR
    assert [float(t) for t in spec.times.output][:2] == [0.0, 30 * DAY]
    assert spec.times.until.text == "10 yr"
    assert viscosity(spec) == 1e19
    assert spec.model.layers[0].rheology is None
    assert spec.sources.count == 144
    assert spec.inversions[0].sign == {"dip": "positive"}


def test_the_planar_fault_of_the_documents_parses(campaign: dict) -> None:
    plane = {"x": 0, "y": 0, "top": 5, "strike": 0, "dip": 30}
    fault = {"name": "main", "plane": {**plane, "length": 80, "width": 60}}
    spec = parse_campaign(put(campaign, "model.faults[0]", fault))
    assert spec.model.faults[0].plane is not None
    assert spec.model.faults[0].plane.width == 60.0


def test_a_spec_with_slip_is_a_forward_run(forward: dict) -> None:
    spec = parse(forward)
    assert isinstance(spec, Forward)
    assert not isinstance(spec.slip, SlipFile)
    assert spec.tapered(spec.slip[0])
    assert isinstance(spec.points, list)
    assert spec.points[2] == (20.0, -5.0, 3.0)
    at_once = parse_forward(put(forward, "times", KeyError))
    assert isinstance(at_once, ViscoelasticForward)
    assert at_once.times.until == 0.0


@pytest.mark.parametrize("name", ["tohoku", "forward"])
def test_plain_data_of_a_spec_make_the_same_spec(name: str) -> None:
    spec = parse(load(SPECS / f"{name}.yaml"))
    assert parse(spec.to_dict()) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert isinstance(spec, ViscoelasticCampaign | ViscoelasticForward)
    assert pickle.loads(pickle.dumps(spec)).times.until.text == spec.times.until.text


def test_a_spec_remembers_its_folder() -> None:
    assert Campaign.from_yaml(SPECS / "tohoku.yaml").base == SPECS


def test_json_schema_can_be_made() -> None:
    for model in (Campaign, Forward):
        schema = model.model_json_schema()
        assert schema["additionalProperties"] is False


MISTAKES = [
    # path, value, path of the problem, words in message, words in hint
    ("model.layrs", 1, "model.layrs", "not a known key", "layers"),
    ("colour", 1, "colour", "not a known key", "known here: name, physics, model"),
    ("sources.fault", KeyError, "sources.fault", "is missing", "name of the fault"),
    ("sources.fault", "mian", "sources.fault", "not the name of a fault", "main"),
    ("model.layers[1].vs", 7.9, "model.layers[1].vs", "below vp/1.155", "6.928"),
    ("model.layers[0].vp", 6400, "model.layers[0].vp", "at most 20 km/s", "write 6.4"),
    ("model.layers[0].rho", 2.8, "model.layers[0].rho", "at least 500", "write 2800"),
    ("model.layers[0].vp", True, "model.layers[0].vp", "must be a number", "km/s"),
    ("model.layers[0].vp", "fast", "model.layers[0].vp", "is not a number", ""),
    ("model.layers[0].vp", float("nan"), "model.layers[0].vp", "finite", ""),
    ("model.layers[0].vp", 10**400, "model.layers[0].vp", "finite", ""),
    ("model.layers[0].vp", "6.4 Pa s", "model.layers[0].vp", "must be in km/s", ""),
    ("model.layers[0].name", "mantle", "model.layers[1].name", "already", ""),
    ("model.layers[0].name", 3, "model.layers[0].name", "must be a text", "quotes"),
    ("model.layers[0].name", "a/b", "model.layers[0].name", "must not hold '/'", ""),
    ("model.layers[1].bottom", 400, "model.layers[1].bottom", "reach the depth", ""),
    ("model.layers[0].bottom", 500, "model.layers[1].bottom", "below the layer", ""),
    ("model.layers", [], "model.layers", "at least 1", ""),
    ("model.layers", {}, "model.layers", "must be a list", ""),
    ("model", [1], "model", "must be a mapping", ""),
    (
        "model.layers[1].rheology",
        {"burgers": {"viscosity": 1e19, "kelvin_viscosity": 1e18, "kelvin_ratio": 0}},
        "model.layers[1].rheology.burgers.kelvin_ratio",
        "at least 0.001",
        "",
    ),
    (
        "model.layers[1].rheology",
        {"burgers": {"viscosity": 1e19, "kelvin_viscosity": 1e18}},
        "model.layers[1].rheology.burgers.kelvin_ratio",
        "is missing",
        "",
    ),
    (
        "model.layers[1].rheology",
        {
            "maxwell": {"viscosity": 1e19},
            "burgers": {"viscosity": 1e19, "kelvin_viscosity": 1e8, "kelvin_ratio": 1},
        },
        "model.layers[1].rheology.burgers.kelvin_viscosity",
        "at least 1e+12 Pa s",
        "",
    ),
    (
        "model.layers[1].rheology",
        "maxwell",
        "model.layers[1].rheology",
        "must",
        "1.0e19",
    ),
    (
        "model.layers[1].rheology.maxwell.viscosity",
        5,
        "model.layers[1].rheology.maxwell.viscosity",
        "at least 1e+12 Pa s",
        "",
    ),
    ("model.gravity.restoring", "no", "model.gravity.restoring", "true or false", ""),
    ("model.frame.lon0", KeyError, "model.frame.lon0", "is missing", "geographic"),
    ("model.frame.lat0", 95, "model.frame.lat0", "at most 90 deg", ""),
    ("model.frame", {"kind": "local", "lon0": 1}, "model.frame.lon0", "belongs", ""),
    ("model.domain.x", [700, -700], "model.domain.x", "must grow", "[-700, 700]"),
    ("model.domain.x", 700, "model.domain.x", "two numbers", "[from, to]"),
    ("model.domain.depth", -500, "model.domain.depth", "above 0 km", ""),
    ("model.faults[0].surface", KeyError, "model.faults[0]", "one of surface", ""),
    (
        "model.faults[0].surface.file",
        "/etc/passwd",
        "model.faults[0].surface.file",
        "relative path",
        "",
    ),
    ("stations.file", "../x.csv", "stations.file", "must not lead out", ""),
    ("stations.file", "a/..\\b", "stations.file", "must not lead out", ""),
    ("stations.file", "http://a/b", "stations.file", "not an address", ""),
    ("stations.file", "sha256:12", "stations.file", "64 hexadecimal", ""),
    ("stations.file", "", "stations.file", "empty", ""),
    ("model.mesh", {}, "model.mesh", "one of size, accuracy, file", ""),
    ("model.mesh.size.far", 5, "model.mesh.size.far", "at least mesh.size.fault", ""),
    ("model.mesh.size.growth", 0, "model.mesh.size.growth", "at least 0.05", ""),
    ("model.mesh.size.ends", 2, "model.mesh.size.ends", "at most 1", ""),
    ("model.mesh.refine", 1.5, "model.mesh.refine", "whole number", ""),
    ("model.mesh.refine", 9, "model.mesh.refine", "between 0 and 5", ""),
    ("times.until", 10, "times.until", "time without a unit", '"10 yr"'),
    ("times.until", "10", "times.until", "time without a unit", '"10 d"'),
    ("times.until", "10 parsec", "times.until", "no known unit", "d or yr"),
    ("times.until", "-1 yr", "times.until", "zero or more", ""),
    ("times.until", "5 yr", "times.output[4]", "not be after until", ""),
    ("times.output[1]", "2 yr", "times.output[2]", "must be after", "order"),
    ("times.output", [], "times.output", "at least 1", ""),
    ("solver.integrator", "spectrl", "solver.integrator", "one of", "spectral"),
    ("solver.integrator", "stepping", "solver.step", "is missing", "1 d"),
    ("solver.step", "1 d", "solver.step", "belongs to integrator: stepping", ""),
    ("solver.tolerance", 1, "solver.tolerance", "at most 0.01", ""),
    ("solver.preconditioner", "two_level", "solver.preconditioner", "one of", "three"),
    ("solver.predictor", "dmd", "solver.predictor", "belongs to", "remove"),
    ("datasets[0].sigma", {}, "datasets[0].sigma", "is empty", "horizontal"),
    (
        "datasets[0].sigma.horizontal",
        0,
        "datasets[0].sigma.horizontal",
        "above 0 m",
        "",
    ),
    ("datasets[0].epoch", "11 yr", "datasets[0].epoch", "times.until", ""),
    (
        "inversions[0].datasets[0]",
        "gns",
        "inversions[0].datasets[0]",
        "data set",
        "gnss",
    ),
    ("inversions[0].folds", 1, "inversions[0].folds", "between 2 and 50", ""),
    ("inversions[0].smoothness", "often", "inversions[0].smoothness", "auto", ""),
    ("inversions[0].sign", {"dip": "up"}, "inversions[0].sign.dip", "one of", ""),
    ("sources.components", ["dip", "dip"], "sources.components", "only once", ""),
    ("sources.along_strike", 0, "sources.along_strike", "between 1 and", ""),
    ("solver", STEPPING, "solver.step", "steps until", "lengthen it"),
    ("name", " ", "name", "must not be empty", ""),
    ("name", "a\nb", "name", "one line", ""),
]


@pytest.mark.parametrize(
    ("path", "value", "where", "says", "hint"),
    MISTAKES,
    ids=[f"{m[0]}={str(m[1])[:20]}" for m in MISTAKES],
)
def test_every_mistake_has_its_path_and_hint(
    campaign: dict, path: str, value: object, where: str, says: str, hint: str
) -> None:
    problem = only_problem(put(campaign, path, value))
    assert problem.path == where
    assert says in problem.message
    assert hint in problem.hint
    assert "pydantic" not in str(problem)


@pytest.mark.parametrize(
    ("path", "value", "where", "says"),
    [
        ("slip[0].fault", "mani", "slip[0].fault", "not the name of a fault"),
        ("slip[0].dip", 1000, "slip[0].dip", "at most 200 m"),
        ("slip", [], "slip", "at least 1"),
        ("slip", [{"fault": "main"}], "slip[0]", "has neither strike nor dip"),
        ("slip", [{"fault": "main", "dip": 0}], "slip[0]", "neither strike nor dip"),
        ("slip", {"fiel": "x.csv", "file": "y.csv"}, "slip.fiel", "not a known key"),
        ("slip", 3, "slip", "must be a list"),
        ("points", [[1, 2], [3]], "points[1]", "[x, y]"),
        ("points", [[1, "a"]], "points[0]", "is not a number"),
        ("points", [[1, 2, -3]], "points[0]", "at least 0 km"),
        ("model.faults[0].plane.dip", 95, "model.faults[0].plane.dip", "at most 90"),
        (
            "model.faults[0].plane.width",
            KeyError,
            "model.faults[0].plane.width",
            "is missing",
        ),
    ],
)
def test_mistakes_of_forward_runs(
    forward: dict, path: str, value: object, where: str, says: str
) -> None:
    problem = only_problem(put(forward, path, value))
    assert problem.path == where
    assert says in problem.message


def test_all_mistakes_are_reported_at_once(campaign: dict) -> None:
    data = put(campaign, "model.layers[0].vp", -1)
    data = put(data, "solver.backend", "tpu")
    data = put(data, "nmae", "x")
    with pytest.raises(SpecError) as caught:
        parse(data)
    paths = {problem.path for problem in caught.value.problems}
    assert paths == {"model.layers[0].vp", "solver.backend", "nmae"}
    assert caught.value.as_dicts()[0]["path"] == "model.layers[0].vp"


def test_problems_can_be_sent_whatever_the_user_wrote(campaign: dict) -> None:
    for change in ({"\ud800key": 1}, {"name": "\udfff", "solver": float("inf")}):
        with pytest.raises(SpecError) as caught:
            parse({**campaign, **change})
        found = caught.value.as_dicts()
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize("data", [None, [], "text", 3, {}])
def test_what_is_no_spec_at_all_is_reported_so(data: object) -> None:
    with pytest.raises(SpecError):
        parse(data)


@pytest.mark.parametrize(
    "text", ["1e19", "1.0e19", "1.0e+19", '"1e19"', "1E19", "10000000000000000000"]
)
def test_numbers_in_any_notation_are_numbers(text: str, campaign: dict) -> None:
    law = loads(f"maxwell: {{viscosity: {text}}}")
    spec = parse_campaign(put(campaign, "model.layers[1].rheology", law))
    assert viscosity(spec) == 1e19


def test_units_of_the_same_kind_are_converted(campaign: dict) -> None:
    spec = parse_campaign(put(campaign, "model.layers[0].bottom", "35000 m"))
    assert spec.model.layers[0].bottom == 35.0


def test_yaml_reads_words_and_times_as_they_are_written() -> None:
    data = loads("a: no\nb: 12:30\nc: 2011-03-11\nd: 0o17\ne: true\nf: 1_000\ny: ~")
    assert data == {
        "a": "no",
        "b": "12:30",
        "c": "2011-03-11",
        "d": "0o17",
        "e": True,
        "f": "1_000",
        "y": None,
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3", "line 3, column 1: key 'a' is given twice"),
        ("a: [1, 2", "is not YAML"),
        ("a:\n\tb: 1", "line 2, column 1: is not YAML"),
        ("a: !!python/object/apply:os.system [ls]", "line 1, column 4: tags"),
        ("a: &x [1]\nb: *x", "line 2, column 4: aliases"),
        ("? [1, 2]\n: 3", "a key must be a plain word"),
        ("[1, 2]", "must be a mapping"),
        ("", "is empty"),
        ("a: 1\n---\nb: 2", "is not YAML"),
        (b"a: \xff\xfe", "line 1: is not UTF-8"),
        ("a: \x00", "characters"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_malformed_yaml_says_where(text: str | bytes, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        loads(text)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "a": 2}', "key 'a' is given twice"),
        ('{"a": NaN}', "holds NaN"),
        ('{"a": 1,}', "line 1, column"),
        ("[" * 100000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "too many digits"),
    ],
)
def test_malformed_json_says_where(text: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        loads(text, "spec.json")
    assert says in str(caught.value)


def test_a_missing_spec_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="file not found"):
        load(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="cannot be read"):
        load(tmp_path)


def test_densities_must_not_fall_downwards_with_a_restoring_force() -> None:
    data = load(SPECS / "tohoku.yaml")
    data["model"]["gravity"] = {"restoring": True}
    assert parse_campaign(data).model.gravity.restoring
    data["model"]["layers"][0]["rho"] = 3400
    with pytest.raises(SpecError) as caught:
        parse_campaign(data)
    (problem,) = caught.value.problems
    assert problem.path == "model.layers[1].rho"
    assert "3400 or more" in problem.hint
    data["model"]["gravity"] = {"restoring": False}
    assert parse_campaign(data).model.layers[0].rho == 3400


def test_an_unknown_key_in_angle_brackets_is_named():
    with pytest.raises(SpecError, match="<: is not a known key"):
        parse({"<": None})
