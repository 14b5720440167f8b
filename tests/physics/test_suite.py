"""Every item of the verification suite passes; the quick ones at each commit."""

import math

import pytest

from afterslip_solver import verification
from afterslip_solver.verification.check import at_least, at_most, not_run

# many seconds each at small size
SLOW = ("plates", "strata", "scec", "robustness", "curved", "halfspace")
# the quickest of a slow item's parts
QUICK = (("halfspace", "surface-breaking thrust"), ("halfspace", "box"))


def tasks():
    every = [
        (name, p) for name in verification.names() for p in verification.parts(name)
    ]
    return [
        task
        if task[0] not in SLOW or task in QUICK
        else pytest.param(*task, marks=pytest.mark.slow)
        for task in every
    ]


@pytest.mark.parametrize(("name", "part"), tasks())
def test_item_meets_its_tolerances(name, part):
    checks = verification.run(name, "small", part=part)
    assert checks
    for check in checks:
        assert check.name == name
        assert check.passed, f"{check.quantity}: {check.value:.2e}, {check.tolerance}"
        assert check.level != "missed"
        assert check.reference
        assert check.note


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", verification.names())
def test_item_meets_its_tolerances_at_full_size(name):
    for check in verification.run(name, "full"):
        assert check.passed, f"{check.quantity}: {check.value:.2e}, {check.tolerance}"


def test_unknown_item_is_refused_with_the_list():
    with pytest.raises(KeyError, match="manufactured"):
        verification.run("okda")


@pytest.mark.parametrize(
    ("value", "level"),
    [
        (5e-4, "excellent"),
        (2e-3, "good"),
        (9e-3, "acceptable"),
        (2e-2, "missed"),
        (math.nan, "missed"),
    ],
)
def test_errors_are_graded_between_the_limit_and_the_excellent(value, level):
    assert at_most("a", "q", value, 1e-2, "r", "n", 1e-3).level == level


def test_orders_are_graded_the_other_way_round():
    levels = [at_least("a", "q", v, 1.0, "r", "n", 2.0).level for v in (0.9, 1.2, 1.7)]
    assert levels == ["missed", "acceptable", "good"]


def test_what_was_not_run_says_so_and_fails_nothing():
    check = not_run("a", "q", "r", "no device")
    assert check.passed
    assert check.level == "not run"
    assert check.record()["error"] is None


@pytest.mark.slow
def test_items_that_share_the_cores_find_what_each_finds_alone():
    names = ["patch", "conservation", "correspondence"]
    together = [check for checks in verification.run_all(names) for check in checks]
    alone = [check for name in names for check in verification.run(name)]
    assert [c.record() for c in together] == [c.record() for c in alone]


def test_an_item_is_the_sum_of_its_parts():
    assert verification.parts("patch") == [""]
    several = verification.parts("relaxation")
    assert len(several) > 1
    parts = [c for p in several for c in verification.run("relaxation", part=p)]
    whole = [c.record() for c in verification.run("relaxation")]
    assert [c.record() for c in parts] == whole
