"""Campaigns in other earths, made from one and checked against it."""

import copy
import hashlib
import json
from pathlib import Path

import httpx
import pytest

from afterslip.cli import main as command
from afterslip.client import Client
from afterslip.earths import earth_problems, named_list, perturbed
from afterslip.errors import SpecError
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.validation import validate

EXAMPLE = Path(__file__).parents[2] / "examples/synthetic/inversion.yaml"


@pytest.fixture
def spec():
    return Campaign.from_yaml(EXAMPLE)


def test_factors_and_values_are_alternatives_of_one_change(spec):
    weak, stiff = perturbed(spec, "layers.mantle.rheology.maxwell.viscosity=/2,x3")
    found = [one.model.layers[1].rheology for one in (weak, stiff)]
    values = [one.maxwell.viscosity for one in found if one and one.maxwell]
    assert values == pytest.approx([5e18, 3e19])
    (shallow,) = perturbed(spec, "layers[0].bottom=20")
    assert shallow.model.layers[0].bottom == 20.0
    assert shallow.base == spec.base
    assert len({weak.name, stiff.name, shallow.name, spec.name}) == 4


def test_a_rigidity_keeps_poissons_ratio(spec):
    (hard,) = perturbed(spec, "layers.crust.rigidity=x1.21")
    old, new = spec.model.layers[0], hard.model.layers[0]
    assert (new.vs, new.vp) == pytest.approx((1.1 * old.vs, 1.1 * old.vp))
    assert new.rho == old.rho


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("layers.core.bottom=20", "has no core in the model (there is: crust, mantle)"),
        ("layers[7].bottom=20", "has no 7"),
        ("layers.crust.name=x2", "is not a number of the model"),
        ("layers.crust.bottom", "write PATH=VALUE"),
        ("layers.crust.bottom=x0", "bottom"),
        ("layers.crust.bottom=/0", "is no value"),
        ("layers.crust.bottom=deep", "write a number, x3 or /3"),
    ],
)
def test_what_is_no_change_is_refused(spec, change, said):
    with pytest.raises(SpecError) as caught:
        perturbed(spec, change)
    assert said in str(caught.value)


def test_other_sources_and_times_are_refused_where_they_are_named(spec):
    data = copy.deepcopy(spec.to_dict())
    data["sources"]["along_strike"] = 7
    data["times"]["until"] = "0.5 yr"
    data["times"]["output"] = ["0 d", "0.5 yr"]
    other = Campaign.from_dict(data, spec.base)
    (stiff,) = perturbed(spec, "layers.crust.rigidity=x1.2")
    request = validate(
        Inversion,
        {"name": "i", "datasets": ["d"],
         "model_error": {"campaigns": ["same", ["stiff", "other"]]}},
    )  # fmt: skip
    known = {"same": spec, "stiff": stiff, "other": other}
    found = [str(one) for one in earth_problems(spec, request, known)]
    assert len(found) == 3
    assert "campaigns[0][0] = same: is the same campaign" in found[0]
    assert "campaigns[1][1] = other: has other sources" in found[1]
    assert "ends at 0.5 yr" in found[2]


def test_a_campaign_counts_once_and_goes_without_sparsity():
    asked = {"name": "i", "datasets": ["d"], "sparsity": 0.1,
             "model_error": {"campaigns": ["a", ["b", "a"]]}}  # fmt: skip
    with pytest.raises(SpecError) as caught:
        validate(Inversion, asked)
    assert "must be named only once" in str(caught.value)
    asked["model_error"] = {"campaigns": ["a"]}
    with pytest.raises(SpecError, match="cannot be used with model_error"):
        validate(Inversion, asked)


def test_ids_are_printed_as_a_spec_takes_them():
    assert named_list([["a"], ["b", "c"]]) == "model_error: {campaigns: [a, [b, c]]}"


def test_the_command_run_again_after_it_died_sends_no_campaign_twice(monkeypatch):
    made: dict[str, dict] = {}
    requests = []
    dies_at = [3]

    def answer(request):
        if request.url.path == "/v1/files":
            digest = hashlib.sha256(request.content).hexdigest()
            return httpx.Response(201, json={"ref": f"sha256:{digest}"})
        requests.append(json.loads(request.content)["name"])
        if len(requests) == dies_at[0]:
            raise KeyboardInterrupt
        key = request.headers["Idempotency-Key"]
        body = {"id": f"c{len(made)}", "name": requests[-1], "state": "waiting"}
        return httpx.Response(201, json=made.setdefault(key, body))

    def connect(url, token):
        return Client(url, token, transport=httpx.MockTransport(answer), tries=1)

    monkeypatch.setattr("afterslip.cli.perturb.connect", connect)
    changes = ["--change", "layers.crust.rigidity=x1.2,x0.8",
               "--change", "layers.crust.bottom=20"]  # fmt: skip
    with pytest.raises(SystemExit):
        command.main(["perturb", str(EXAMPLE), *changes])
    assert len(made) == 2
    with pytest.raises(SystemExit) as ended:
        command.main(["perturb", str(EXAMPLE), *changes])
    assert not ended.value.code
    assert len(requests) == 6
    assert len(made) == 3
    assert len({one["name"] for one in made.values()}) == 3
