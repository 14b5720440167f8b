"""The dashboard with campaigns of a physics that nothing here was written for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import httpx
import pytest

from afterslip.physics import registry
from afterslip_service import embedded
from afterslip_service.placement.inprocess import InProcess
from afterslip_workers import entry
from afterslip_workers.engines import registry as engines

pytestmark = pytest.mark.slow

TOY = Path(__file__).parents[1] / "toy_physics"
SPEC = {
    "name": "waves in a box",
    "physics": "boxwaves",
    "model": {
        "frame": {"kind": "local"},
        "domain": {"x": [-48, 48], "y": [-48, 48], "depth": 48},
        "layers": [{"name": "rock", "bottom": 48, "vp": 6.1, "vs": 3.5, "rho": 2700}],
        "faults": [
            {
                "name": "main",
                "plane": {
                    "x": 0,
                    "y": 0,
                    "top": 10,
                    "strike": 0,
                    "dip": 90,
                    "length": 40,
                    "width": 20,
                },
            }
        ],
        "mesh": {"size": {"fault": 10, "far": 20}},
    },
    "sources": {
        "fault": "main",
        "along_strike": 2,
        "down_dip": 2,
        "components": ["strike"],
    },
    "waves": {"cells": 16, "width": 10, "duration": "8 s", "sampling": "1 s"},
}


def text(shown):
    return shown.run("document.body.innerText")


@pytest.fixture
def toy(monkeypatch):
    paths = [str(TOY / part) for part in ("client", "engine")]
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*paths, before]))
    for path in paths:
        monkeypatch.syspath_prepend(path)
    registry.find.cache_clear()
    engines.find.cache_clear()
    entry.close_children()
    yield
    entry.close_children()
    registry.find.cache_clear()
    engines.find.cache_clear()
    for name in ("boxwaves", "boxwaves_engine"):
        sys.modules.pop(name, None)


def test_its_campaign_is_shown_without_words_of_another(toy, browser, tmp_path):
    def placement(_):
        return InProcess(entry.execute, 1)

    with embedded.start(tmp_path / "d", placement=placement) as service:
        answer = httpx.post(service.url + "/v1/campaigns", json=SPEC)
        assert answer.status_code == 201, answer.text
        shown = browser.page(f"{service.url}/#/campaigns/{answer.json()['id']}")
        done = "document.querySelectorAll('.grid button.accepted').length === 2"
        shown.until(done, seconds=120)
        shown.until("document.querySelectorAll('h1 .badge.complete').length > 0")
        page = text(shown)
        for word in ("waves in a box", "boxwaves", "Green's functions", "rock"):
            assert word in page
        for word in ("aspect ratio", "Mean quality", "Until"):
            assert word not in page, "it has none"
        shown.run("document.querySelector('.grid button.accepted').click()")
        shown.until("document.body.innerText.includes('unit sources')")
        for word in ("undefined", "NaN", "null", "[object", "Invalid"):
            assert word not in page, page
            assert word not in text(shown), text(shown)
        assert shown.complaints() == []
        shown.close()
