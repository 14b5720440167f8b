"""The client's half of a physics: found by name, and says when stored numbers serve."""

import hashlib
import json
from typing import Any

import pytest

from afterslip import Campaign, SpecError
from afterslip.identity import canonical_spec, greens_digest
from afterslip.physics import registry
from afterslip.physics.viscoelastic.spec import ViscoelasticCampaign
from afterslip.spec import parse_campaign

# of SPEC with patches, whose form has not changed, by release 0.1.0
DIGEST = "49cbbf15340e788f2b7f6e69a5864f3a14be937f70caebd1acd5d7c761054658"
GOOD = {"until": 3e8, "tolerance": 1e-8, "time_tolerance": 1e-6}
SPEC: dict[str, Any] = {
    "name": "small",
    "model": {
        "frame": {"kind": "local"},
        "domain": {"x": [-50, 50], "y": [-50, 50], "depth": 40},
        "layers": [{"name": "crust", "bottom": 40, "vp": 6.4, "vs": 3.7, "rho": 2800}],
        "faults": [
            {
                "name": "main",
                "plane": {
                    "x": 0,
                    "y": 0,
                    "top": 5,
                    "strike": 0,
                    "dip": 30,
                    "length": 20,
                    "width": 10,
                },
            }
        ],
        "mesh": {"size": {"fault": 10, "far": 20}},
    },
    "sources": {"fault": "main", "along_strike": 2, "down_dip": 3},
    "times": {"until": "10 yr", "output": ["0 d", "1 yr"]},
}


@pytest.mark.parametrize(
    ("better", "worse", "key"),
    [
        ({"until": 3.1e8}, {"until": 2.9e8}, "times.until"),
        ({"tolerance": 1e-9}, {"tolerance": 1e-3}, "solver.tolerance"),
        ({"time_tolerance": 1e-7}, {"time_tolerance": 1e-2}, "solver.time_tolerance"),
    ],
)
def test_stored_curves_serve_where_they_are_as_long_and_as_exact(better, worse, key):
    physics = registry.find("viscoelastic")
    assert physics.serves(GOOD, GOOD)
    assert physics.serves({**GOOD, **better}, GOOD)
    assert not physics.serves({**GOOD, **worse}, GOOD)
    assert physics.worse({**GOOD, **worse}, GOOD) == [key]


def test_a_campaign_says_what_its_numbers_will_be_good_for():
    campaign = parse_campaign({**SPEC, "solver": {"tolerance": 1e-5}})
    found = registry.find(campaign.physics).quality(campaign)
    assert found == {
        "until": 10 * 31_557_600.0,
        "tolerance": 1e-5,
        "time_tolerance": 1e-6,
    }


def test_a_physics_that_is_not_installed_is_one_clear_error():
    with pytest.raises(SpecError) as caught:
        parse_campaign({**SPEC, "physics": "thermal", "unknown": 1})
    (problem,) = caught.value.problems
    assert (problem.path, problem.value) == ("physics", "thermal")
    assert "viscoelastic" in problem.hint


@pytest.mark.parametrize("wrong", [3, "", ["viscoelastic"], None])
def test_a_physics_that_is_no_name_is_refused_by_its_path(wrong):
    with pytest.raises(SpecError) as caught:
        parse_campaign({**SPEC, "physics": wrong})
    assert [problem.path for problem in caught.value.problems] == ["physics"]


def test_the_default_physics_changes_no_digest_and_reaches_no_worker():
    """Workers of the release before refuse keys that they do not know."""
    held = {"sides": "roller", "bottom": "fixed"}
    spec = {
        **SPEC,
        "model": {**SPEC["model"], "boundary": held},
        "sources": {**SPEC["sources"], "shape": "patch"},
    }
    plain, named = (
        Campaign.from_dict(spec),
        Campaign.from_dict({**spec, "physics": "viscoelastic"}),
    )
    assert canonical_spec(plain) == canonical_spec(named)
    assert "physics" not in canonical_spec(named)
    facts = [greens_digest(named), canonical_spec(named)]
    text = json.dumps(facts, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() == DIGEST
    assert isinstance(named, ViscoelasticCampaign)
    assert named.end == named.times.until


def test_work_counts_unit_sources_of_all_components():
    campaign = parse_campaign(SPEC)
    assert registry.find(campaign.physics).work(campaign).sources == 2 * 3 * 2
