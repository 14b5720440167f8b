"""Hints lead to what a spec takes, not to the word that is spelt most alike."""

import copy
from pathlib import Path
from typing import Any

import pytest

from afterslip.errors import Problem, SpecError
from afterslip.spec import load, parse

SPECS = Path(__file__).parent / "specs"
RAKE = "strike = slip cos(rake), dip = slip sin(rake)"


def only_problem(name: str, *keys: str | int, value: object) -> Problem:
    data = copy.deepcopy(load(SPECS / name))
    here: Any = data
    for key in keys[:-1]:
        here = here[key]
    here[keys[-1]] = value
    with pytest.raises(SpecError) as caught:
        parse(data)
    (problem,) = caught.value.problems
    return problem


def test_a_rake_of_slip_is_shown_as_its_components() -> None:
    problem = only_problem("forward.yaml", "slip", 0, "rake", value=90)
    assert (problem.path, problem.message) == ("slip[0].rake", "is not a known key")
    assert RAKE in problem.hint


def test_a_rake_among_components_is_shown_as_them() -> None:
    problem = only_problem("tohoku.yaml", "sources", "components", value=["rake"])
    assert problem.path == "sources.components[0]"
    assert problem.message == "must be one of strike, dip"
    assert RAKE in problem.hint


@pytest.mark.parametrize(("key", "hint"), [("rake", RAKE), ("dpi", "did you mean dip")])
def test_a_wrong_key_of_a_mapping_is_named_by_its_own_path(key: str, hint: str) -> None:
    sign = {key: "free"}
    problem = only_problem("tohoku.yaml", "inversions", 0, "sign", value=sign)
    assert problem.path == f"inversions[0].sign.{key}"
    assert problem.message == "must be one of strike, dip"
    assert hint in problem.hint


def test_unknown_keys_elsewhere_have_the_nearest_key() -> None:
    keys = ("model", "layers", 0, "vpp")
    assert "did you mean vp?" in only_problem("tohoku.yaml", *keys, value=1).hint
