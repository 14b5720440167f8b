"""Webhooks on the page, with a real receiver."""

from __future__ import annotations

import pytest
from receiver import HERE, receiving
from test_page import count, has, press

from afterslip_service import embedded
from afterslip_service.placement.inprocess import InProcess

pytestmark = pytest.mark.slow


@pytest.fixture
def service(tmp_path, worker):
    def placement(_):
        return InProcess(worker, 2)

    options = {"placement": placement, "tick": 0.02, "webhook_networks": HERE}
    with embedded.start(tmp_path / "d", **options) as service:
        yield service


def test_a_webhook_is_added_tested_and_deleted(page):
    with receiving() as receiver:
        shown = page("#/webhooks")
        shown.until(has("No webhooks yet"))
        shown.run(f"document.querySelector('input[type=url]').value = {receiver.url!r}")
        shown.run("document.querySelector('form button').click()")
        shown.until(has("not shown again"))
        secret = shown.run("document.querySelector('.note code').textContent")
        assert secret.startswith("whsec_")
        shown.until(f"{count('.webhook')} === 1")
        shown.run(press("Send a test"))
        ((_, headers, body),) = receiver.wait(1)
        assert b"test" in body
        shown.until(f"{count('tbody tr')} === 1")
        shown.until("document.querySelector('tbody tr').innerText.includes('20')")
        assert headers["webhook-id"]
        shown.run("window.confirm = () => true")
        shown.run(press("Delete"))
        shown.until(has("No webhooks yet"))


def test_what_the_service_refuses_is_said(browser, service):
    # the browser notes the refused request, too
    shown = browser.page(f"{service.url}/#/webhooks")
    shown.until(has("No webhooks yet"))
    shown.run(
        "document.querySelector('input[type=url]').value = 'https://example.org';"
        "[...document.querySelectorAll('fieldset input')]"
        ".forEach((box) => { box.checked = false; });"
        "document.querySelector('form button').click()"
    )
    shown.until(f"{count('[role=alert]')} === 1")
    assert "events" in shown.run("document.querySelector('[role=alert]').innerText")
    shown.close()
