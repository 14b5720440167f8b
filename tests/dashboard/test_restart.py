"""A page that stays open while its service is stopped and started anew."""

from __future__ import annotations

import pytest
from test_page import has, submit

from afterslip_service import embedded
from afterslip_service.placement.inprocess import InProcess


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_open_page_goes_on_after_its_service_was_started_anew(
    browser, worker, tmp_path
):
    def start(port=0):
        def placement(_):
            return InProcess(worker, 2)

        return embedded.start(tmp_path / "d", placement=placement, tick=0.02, port=port)

    worker.n_sources, worker.delay_s = 60, 1.0
    with start() as service:
        shown = browser.page(f"{service.url}/#/campaigns/{submit(service)}")
        shown.until(has("of 15 groups"))
        shown.until("document.querySelectorAll('.grid .accepted').length > 0")
        shown.run("window.opened = 'once'")
        port = int(service.url.rpartition(":")[2])
    shown.until(has("out of reach"), 60)
    assert shown.run("document.querySelector('main').inert")
    with start(port):
        shown.until("!document.querySelector('main').inert", 60)
        shown.until(has("15 of 15 groups"), 120)
        shown.until("document.querySelectorAll('h1 .badge.complete').length > 0")
        # what is shown came by events, not by loading the page again
        assert shown.run("window.opened") == "once"
        shown.close()
