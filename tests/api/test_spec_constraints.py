"""Constraints that contradict each other are refused with path, value and hint."""

import copy
from pathlib import Path

import numpy as np
import pytest

from afterslip.errors import SpecError
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.validation import validate
from afterslip.spec import load, parse_campaign
from afterslip.spec.reach import moment_problems

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


PLANE = copy.deepcopy(SPEC)
PLANE["model"]["faults"] = [
    {
        "name": PLANE["model"]["faults"][0]["name"],
        "plane": {"x": 0, "y": 0, "top": 5, "strike": 200, "dip": 15, "length": 100,
                  "width": 50},
    }
]  # fmt: skip


def unreachable(**request):
    """Problems of a moment of Mw 8.5 with an error of 0.05 on 100 km by 50 km."""
    spec = parse_campaign(PLANE)
    moment = {"magnitude": 8.5, "error": 0.05, "rake": 90}
    asked = {"name": "i", "datasets": ["a"], "moment": moment, **request}
    return list(moment_problems(spec, validate(Inversion, asked)))


def test_a_moment_that_no_slip_has_is_refused_before_anything_is_solved():
    (problem,) = unreachable(sign={"dip": "negative"})
    assert problem.path == "moment"
    assert "no slip along it is allowed" in problem.message
    (problem,) = unreachable(constraints=[{"bounds": {"dip": [0, 1]}}])
    # 2.3 * 5e9 m2 * 1 m by the largest rigidity
    materials = [*PLANE["model"]["layers"], *PLANE["model"].get("bodies", [])]
    rigidity = max(1e6 * m["rho"] * m["vs"] ** 2 for m in materials)
    most = 2 / 3 * (np.log10(2.3 * 5e9 * rigidity) - 9.1)
    assert f"at most Mw {most:.2f} is allowed" in problem.message
    (problem,) = unreachable(constraints=[{"rake": [180, 270]}])
    assert "no slip along it is allowed" in problem.message


def test_a_moment_that_slip_may_have_is_read():
    assert unreachable() == []
    assert unreachable(sign={"dip": "positive"}) == []
    assert unreachable(constraints=[{"bounds": {"dip": [0, 30]}}]) == []
    assert unreachable(constraints=[{"rake": [60, 120]}]) == []
