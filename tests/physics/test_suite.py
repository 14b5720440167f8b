"""Every item of the verification suite passes at small size."""

import pytest

from afterslip_solver import verification


@pytest.mark.parametrize("name", verification.names())
def test_item_meets_its_tolerances(name):
    checks = verification.run(name, "small")
    assert checks
    for check in checks:
        assert check.name == name
        assert check.passed, f"{check.quantity}: {check.value:.2e}, {check.tolerance}"
        assert check.reference
        assert check.note


@pytest.mark.slow
@pytest.mark.parametrize("name", verification.names())
def test_item_meets_its_tolerances_at_full_size(name):
    for check in verification.run(name, "full"):
        assert check.passed, f"{check.quantity}: {check.value:.2e}, {check.tolerance}"


def test_unknown_item_is_refused_with_the_list():
    with pytest.raises(KeyError, match="manufactured"):
        verification.run("okda")
