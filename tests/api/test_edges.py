"""Edges of faults in a spec: the default, what is stored, what is refused."""

import copy
from pathlib import Path

import pytest

from afterslip.errors import SpecError
from afterslip.identity import canonical_spec, greens_digest
from afterslip.physics.registry import find
from afterslip.spec import load, parse_campaign, parse_stored
from afterslip.spec.files import LocalFiles

SPECS = Path(__file__).parent / "specs"
FILES = LocalFiles(SPECS)
CLAMPED = dict.fromkeys(("top", "bottom", "start", "end"), "clamped")


@pytest.fixture
def data() -> dict:
    return load(SPECS / "tohoku.yaml")


def with_sources(data: dict, **changes) -> dict:
    return {**copy.deepcopy(data), "sources": {**data["sources"], **changes}}


def test_a_new_campaign_writes_its_edges_out(data: dict) -> None:
    spec = parse_campaign(with_sources(data, edges={"top": "zero"}))
    plain = canonical_spec(spec, FILES)
    assert plain["sources"]["edges"] == {
        "top": "zero", "bottom": "free", "start": "free", "end": "free",
    }  # fmt: skip
    assert parse_stored(plain).sources == spec.sources
    default = canonical_spec(parse_campaign(data), FILES)["sources"]["edges"]
    assert set(default.values()) == {"free"}


def test_a_stored_campaign_without_edges_is_clamped(data: dict) -> None:
    plain = canonical_spec(parse_campaign(data), FILES)
    del plain["sources"]["edges"]
    stored = parse_stored(plain)
    edges = stored.grids[0].edges
    assert edges is not None
    assert edges.model_dump() == CLAMPED
    asked = parse_campaign(with_sources(data, edges=CLAMPED))
    assert greens_digest(stored) == greens_digest(asked, FILES)
    assert greens_digest(stored) != greens_digest(parse_campaign(data), FILES)


def test_several_faults_are_a_list(data: dict) -> None:
    second = copy.deepcopy(data["model"]["faults"][0]) | {"name": "splay"}
    data["model"]["faults"].append(second)
    one = data["sources"]
    data["sources"] = [one, {**one, "fault": "splay", "components": ["dip"]}]
    spec = parse_campaign(data)
    assert [grid.fault for grid in spec.grids] == [one["fault"], "splay"]
    plain = canonical_spec(spec, FILES)
    assert parse_stored(plain).sources == spec.sources
    work = find(spec.physics).work(spec)
    assert work.sources == 3 * one["along_strike"] * one["down_dip"]


def test_mistakes_of_one_grid_of_several_have_its_path(data: dict) -> None:
    one = data["sources"]
    for second, says in (
        ({**one}, r"sources\[1\]\.fault = main: has sources already"),
        ({**one, "fault": "mian"}, r"sources\[1\]\.fault.*did you mean main"),
        ({**one, "down_dip": 0}, r"sources\[1\]\.down_dip = 0"),
    ):
        with pytest.raises(SpecError, match=says):
            parse_campaign({**data, "sources": [one, second]})
    with pytest.raises(SpecError, match="sources"):
        parse_campaign({**data, "sources": []})


def test_patches_have_no_edges(data: dict) -> None:
    patches = with_sources(data, shape="patch")
    plain = canonical_spec(parse_campaign(patches), FILES)
    assert "edges" not in plain["sources"]
    assert parse_stored(plain).grids[0].edges is None
    with pytest.raises(SpecError, match=r"sources\.edges.*shape: bspline"):
        parse_campaign(with_sources(data, shape="patch", edges=CLAMPED))


@pytest.mark.parametrize(
    ("edges", "says"),
    [
        ({"top": "fre"}, r"sources\.edges\.top = fre.*did you mean free"),
        ({"left": "zero"}, r"sources\.edges\.left.*not a known key.*known here: top"),
        ("zero", r"sources\.edges = zero.*mapping"),
    ],
)
def test_odd_edges_are_refused_by_name(data: dict, edges, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        parse_campaign(with_sources(data, edges=edges))
