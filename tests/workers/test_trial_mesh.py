"""A trial mesh is made where it can be ended."""

from __future__ import annotations

import pytest

from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_workers.engines.viscoelastic import trial

SPEC = {
    "name": "trial",
    "model": {
        "domain": {"x": [-100, 100], "y": [-100, 100], "depth": 60},
        "layers": [{"name": "rock", "bottom": 60, "vp": 6, "vs": 3.5, "rho": 2700}],
        "faults": [
            {
                "name": "main",
                "plane": {"x": 0, "y": 0, "top": 2, "strike": 0, "dip": 30,
                          "length": 40, "width": 20},
            }
        ],
        "mesh": {"size": {"fault": 10, "far": 50}},
    },
    "sources": {"fault": "main", "along_strike": 2, "down_dip": 1},
    "times": {"until": "0 d", "output": ["0 d"]},
}  # fmt: skip


@pytest.fixture
def campaign(tmp_path):
    spec = parse_campaign(SPEC)
    return spec.model, resolve(spec, LocalFiles(tmp_path))


def test_its_facts_come_back(campaign):
    found = trial.make(*campaign)
    assert found["n_elements"] > 100
    assert found["quality"]["aspect_max"] > 1


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        # the processor's time and the wall's are both over before it has begun
        ("CPU_S", 0.1, "within|processor time"),
        ("MEMORY", 300 << 20, "memory allowed"),
    ],
)
def test_what_takes_too_much_is_ended(monkeypatch, campaign, name, value, words):
    monkeypatch.setattr(trial, name, value)
    found = trial.make(*campaign)
    assert set(found) == {"failed"}
    assert any(word in found["failed"] for word in words.split("|"))
