"""Constraints that contradict each other are refused with path, value and hint."""

import copy
from pathlib import Path

import pytest

from afterslip.errors import SpecError
from afterslip.spec import load, parse_campaign

SPEC = load(Path(__file__).parent / "specs" / "tohoku.yaml")


def inversion(**changes):
    data = copy.deepcopy(SPEC)
    data["inversions"] = [{**data["inversions"][0], **changes}]
    return data


MISTAKES = [
    ([{"bounds": {"dip": [3, 1]}}], "bounds.dip", "must grow", "smaller one first"),
    (
        [{"sign": {"dip": "positive"}, "bounds": {"dip": [-3, 0]}}],
        "bounds.dip",
        "contradicts the sign positive",
        "leave out",
    ),
    ([{"bounds": {"dip": [-3, 0]}}], "bounds.dip", "contradicts sign.dip", "leave out"),
    ([{"fault": "nowhere", "rake": [90]}], "fault", "has no sources", "with sources"),
    ([{"rake": [90, 300]}], "rake", "must span 0 to 180", "[60, 120]"),
    ([{"rake": [60, 120]}], "rake", "contradicts sign", "leave out sign"),
    ([{"rake": [90], "sign": {"dip": "free"}}], "rake", "excludes sign", "leave those"),
    (
        [{"most": 3, "bounds": {"dip": [0, 1]}}],
        "most",
        "needs a single rake",
        "rake: [90]",
    ),
]


@pytest.mark.parametrize(
    ("constraints", "where", "says", "hint"), MISTAKES, ids=lambda part: str(part)[:24]
)
def test_contradictions_have_path_value_and_hint(constraints, where, says, hint):
    with pytest.raises(SpecError) as caught:
        parse_campaign(inversion(constraints=constraints))
    (problem,) = caught.value.problems
    assert problem.path == f"inversions[0].constraints[0].{where}"
    assert problem.value is not None
    assert says in problem.message
    assert hint in problem.hint


def test_two_constraints_of_one_fault_are_refused():
    both = [{"bounds": {"dip": [0, 3]}}, {"bounds": {"dip": [0, 4]}}]
    with pytest.raises(SpecError, match=r"constraints\[0\] already"):
        parse_campaign(inversion(constraints=both))


def test_a_moment_needs_an_error():
    with pytest.raises(SpecError, match="above 0"):
        parse_campaign(inversion(moment={"magnitude": 8, "error": 0, "rake": 90}))


def test_constraints_that_agree_are_read():
    rake = [{"rake": [60, 120]}]
    spec = parse_campaign(inversion(constraints=rake, sign={}))
    assert spec.inversions[0].constraints[0].rake == [60.0, 120.0]
