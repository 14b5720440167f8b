from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "service"))

import tiny_worker
from browser import Browser, find

from afterslip_service import embedded
from afterslip_service.placement.inprocess import InProcess


@pytest.fixture(scope="session")
def browser():
    path = find()
    if path is None:
        pytest.skip("no chromium here")
    with Browser(path) as browser:
        yield browser


@pytest.fixture
def worker():
    return tiny_worker.TinyWorker()


@pytest.fixture
def service(tmp_path, worker):
    def placement(_):
        return InProcess(worker, 2)

    with embedded.start(tmp_path / "d", placement=placement, tick=0.02) as service:
        yield service
        worker.gate.set()


@pytest.fixture
def page(browser, service):
    """Open pages of the service; no page may complain."""
    opened = []

    def open_page(path="#/", **options):
        shown = browser.page(f"{service.url}/{path}", **options)
        opened.append(shown)
        return shown

    yield open_page
    for shown in opened:
        complaints = shown.complaints()
        shown.close()
        assert complaints == []
