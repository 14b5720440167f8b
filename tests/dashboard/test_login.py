"""Signing in on the page, in a real browser."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import httpx
import pytest
import tiny_worker

from afterslip_service import clock
from afterslip_service.db import tokens
from afterslip_service.db.session import Database
from afterslip_service.engine.access import Role
from afterslip_service.main import create_app
from afterslip_service.placement.inprocess import InProcess
from afterslip_service.server import Server
from afterslip_service.settings import Settings

pytestmark = pytest.mark.slow


@pytest.fixture
def guarded(tmp_path, worker):
    """Serve a service that asks for tokens."""
    settings = Settings(
        database=str(tmp_path / "db.sqlite"), store=tmp_path / "s", auth=True, tick=0.02
    )
    app = create_app(settings, lambda _: InProcess(worker, 2))
    server: Any = Server(app, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_here)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    server.url = f"http://127.0.0.1:{server.port}"
    yield server
    worker.gate.set()
    server.should_exit = True
    thread.join(15)


def has(text):
    return f"document.body.innerText.includes({text!r})"


def sign_in(shown, secret):
    shown.until("document.querySelector('#token') !== null")
    shown.run(f"document.querySelector('#token').value = {secret!r}")
    shown.run("document.querySelector('.login button').click()")


def test_page_asks_for_a_token_and_acts_with_its_cookie(
    browser, guarded, tmp_path, worker
):
    database = Database(str(tmp_path / "db.sqlite"))
    with database.write() as connection:
        _, secret = tokens.create(
            connection,
            name="t",
            user="ada",
            role=Role.SUBMITTER,
            expires_at=clock.now() + timedelta(days=1),
        )
    database.close()
    headers = {"Authorization": f"Bearer {secret}"}
    worker.gate.clear()
    made = httpx.post(
        f"{guarded.url}/v1/campaigns", json=tiny_worker.spec("mine"), headers=headers
    ).json()
    shown = browser.page(f"{guarded.url}/#/campaigns/{made['id']}")
    shown.until(has("This service asks for a token"))
    assert not shown.run(has("mine"))
    sign_in(shown, "afs_wrong")
    shown.until(has("the token is not valid"))
    sign_in(shown, secret)
    # back where the address leads, and events flow without a header
    shown.until(has("mine"))
    shown.until(has("ada"))
    assert shown.run("document.cookie") == ""
    shown.run(
        "[...document.querySelectorAll('button')]"
        ".find((b) => b.textContent === 'Pause').click()"
    )
    shown.until(has("Resume"))
    # the cookie alone, as a foreign page would have it sent, changes nothing
    status = "fetch({!r}, {{method: 'POST'}}).then((a) => a.status)".format(
        made["links"]["self"] + "/resume"
    )
    assert shown.run(status) == 403
    shown.run("document.querySelector('who-am-i button').click()")
    shown.until(has("This service asks for a token"))
    read = f"fetch('{made['links']['self']}').then((a) => a.status)"
    assert shown.run(read) == 401
    shown.close()


def test_page_of_a_service_without_authentication_asks_nobody(page):
    shown = page()
    shown.until(has("No campaigns yet"))
    assert not shown.run(has("Sign out"))
    assert shown.run("document.querySelector('#token')") is None


def test_reference_page_loads_nothing_from_elsewhere(page):
    shown = page("docs")
    shown.until(has("/v1/campaigns/{campaign}"))
    loaded = shown.run(
        "performance.getEntriesByType('resource').map((r) => new URL(r.name).host)"
    )
    assert set(loaded) == {shown.run("location.host")}


def test_a_link_shows_its_campaign_and_keeps_no_secret_in_the_address(
    browser, guarded, tmp_path
):
    database = Database(str(tmp_path / "db.sqlite"))
    end = clock.now() + timedelta(days=1)

    def make(role, campaign=None):
        with database.write() as connection:
            return tokens.create(
                connection, name="t", user="ada", role=role, expires_at=end,
                campaign=campaign,
            )[1]  # fmt: skip

    headers = {"Authorization": f"Bearer {make(Role.SUBMITTER)}"}
    made = httpx.post(
        f"{guarded.url}/v1/campaigns", json=tiny_worker.spec("shared"), headers=headers
    ).json()
    secret = make(Role.VIEWER, made["id"])
    database.close()
    shown = browser.page(f"{guarded.url}/#/shared/{made['id']}/{secret}")
    shown.until(has("shared"))
    shown.until("document.querySelector('h1 .badge.complete') !== null")
    assert shown.run("location.hash") == f"#/campaigns/{made['id']}"
    assert shown.run("document.querySelector('.top nav').hidden")
    assert shown.run("document.querySelectorAll('.head button').length") == 0
    assert shown.complaints() == []
    shown.close()


def test_who_is_not_signed_in_is_shown_no_links(browser, guarded):
    shown = browser.page(f"{guarded.url}/#/")
    shown.until("document.querySelector('#token') !== null")
    nav = "getComputedStyle(document.querySelector('.top nav')).visibility"
    assert shown.run(nav) == "hidden"
    shown.close()


def token_of(tmp_path, role, campaign=None, user="ada"):
    database = Database(str(tmp_path / "db.sqlite"))
    with database.write() as connection:
        _, secret = tokens.create(
            connection, name="t", user=user, role=role, campaign=campaign,
            expires_at=clock.now() + timedelta(days=1),
        )  # fmt: skip
    database.close()
    return secret


def submit(guarded, tmp_path, name="shared"):
    headers = {"Authorization": f"Bearer {token_of(tmp_path, Role.SUBMITTER)}"}
    spec = tiny_worker.spec(name)
    answer = httpx.post(f"{guarded.url}/v1/campaigns", json=spec, headers=headers)
    return answer.json()["id"]


def press(text):
    return (
        "[...document.querySelectorAll('button')]"
        f".find((b) => b.textContent === {text!r}).click()"
    )


def test_an_administrator_makes_a_link_on_the_page_and_it_opens(
    browser, guarded, tmp_path
):
    identity = submit(guarded, tmp_path)
    shown = browser.page(f"{guarded.url}/#/campaigns/{identity}")
    sign_in(shown, token_of(tmp_path, Role.ADMIN))
    shown.until(has("Share"))
    shown.run("window.prompt = () => 'referee'")
    shown.run(press("Share"))
    link = shown.until("document.querySelector('input[readonly]')?.value")
    assert shown.run(has("afterslip token revoke"))
    shown.run("document.querySelector('who-am-i button').click()")
    shown.until("document.querySelector('#token') !== null")
    shown.close()
    shown = browser.page(link)
    shown.until("document.querySelector('h1 .badge') !== null")
    assert "referee" in shown.text()
    assert "afs_" not in shown.run("location.href")
    assert shown.complaints() == []
    shown.close()


def test_only_an_administrator_is_offered_to_share(browser, guarded, tmp_path):
    identity = submit(guarded, tmp_path)
    shown = browser.page(f"{guarded.url}/#/campaigns/{identity}")
    sign_in(shown, token_of(tmp_path, Role.SUBMITTER))
    shown.until(has("Rename"))
    assert "Share" not in shown.text()
    shown.close()


def test_who_may_only_read_is_offered_nothing_that_is_refused(
    browser, guarded, tmp_path
):
    identity = submit(guarded, tmp_path)
    shown = browser.page(f"{guarded.url}/#/campaigns/{identity}")
    sign_in(shown, token_of(tmp_path, Role.VIEWER))
    shown.until("document.querySelector('h1 .badge') !== null")
    for words in ("Rename", "Tags", "Pause", "Cancel", "New inversion"):
        assert words not in shown.text()
    shown.close()


def test_a_list_offers_nothing_to_who_may_only_read_it(browser, guarded, tmp_path):
    identity = submit(guarded, tmp_path)
    shown = browser.page(f"{guarded.url}/#/")
    sign_in(shown, token_of(tmp_path, Role.VIEWER))
    shown.until("document.querySelectorAll('.row').length === 1")
    assert (
        shown.run("document.querySelectorAll('main button:not([hidden])').length") == 0
    )
    assert shown.run("document.querySelectorAll('main [type=checkbox]').length") == 0
    assert "New campaign" not in shown.text()
    # nor by an address that somebody has sent
    for path in ("new", f"new?from={identity}", f"campaigns/{identity}/invert"):
        shown.run(f"location.hash = '#/{path}'")
        shown.until(has("This token may only read"))
        assert shown.run("document.querySelectorAll('main button').length") == 0
        shown.run("document.querySelector('main a').click()")
        shown.until("document.querySelectorAll('.row').length === 1")
    shown.run("location.hash = '#/webhooks'")
    shown.until(has("No webhooks yet"))
    assert shown.run("document.querySelectorAll('main form').length") == 0
    # nothing was asked for that the service refuses
    assert shown.complaints() == []
    shown.close()


def test_campaigns_of_others_are_not_offered_to_be_changed(browser, guarded, tmp_path):
    others, own = submit(guarded, tmp_path), "mine"
    secret = token_of(tmp_path, Role.SUBMITTER, user="bob")
    headers = {"Authorization": f"Bearer {secret}"}
    httpx.post(
        f"{guarded.url}/v1/campaigns", json=tiny_worker.spec(own), headers=headers
    ).raise_for_status()
    shown = browser.page(f"{guarded.url}/#/")
    sign_in(shown, secret)
    shown.until("document.querySelectorAll('.row').length === 2")
    free = (
        "[...document.querySelectorAll('main [type=checkbox]')]"
        ".filter((box) => !box.disabled).map((box) => box.ariaLabel)"
    )
    assert shown.run(free) == [f"Choose {own}"]
    shown.run(press("Choose it"))
    shown.until(has("1 chosen"))
    shown.run(f"location.hash = '#/campaigns/{others}'")
    shown.until("document.querySelector('h1 .badge.complete') !== null")
    shown.until(has("Start from this"))
    assert shown.run("document.querySelectorAll('.head button').length") == 0
    assert "New inversion" not in shown.text()
    assert shown.complaints() == []
    shown.close()


def test_a_link_leads_back_to_its_campaign_from_everywhere_else(
    browser, guarded, tmp_path
):
    identity, other = submit(guarded, tmp_path), submit(guarded, tmp_path, "other")
    secret = token_of(tmp_path, Role.VIEWER, identity)
    shown = browser.page(f"{guarded.url}/#/shared/{identity}/{secret}")
    there = "document.querySelector('h1 .badge') !== null"
    shown.until(there)
    closed = ["workers", "webhooks", "new", f"new?from={identity}",
              f"campaigns/{identity}/invert", f"campaigns/{other}"]  # fmt: skip
    for path in closed:
        shown.run(f"location.hash = '#/{path}'")
        shown.until(has("This link shows one campaign and nothing else"))
        shown.run("document.querySelector('main a').click()")
        shown.until(there)
        assert shown.run("location.hash") == f"#/campaigns/{identity}"
    # the name of the service leads to the list, which a link may not read
    shown.run("document.querySelector('.brand').click()")
    shown.until(f"location.hash === '#/campaigns/{identity}'")
    # nothing was asked for that the service refuses
    assert shown.complaints() == []
    shown.close()


def test_a_link_that_opens_nothing_says_so_and_shows_no_way_in(browser, guarded):
    shown = browser.page(f"{guarded.url}/#/shared/none/afs_wrong")
    shown.until(has("This link opens nothing"))
    assert shown.run("document.querySelector('.top nav').hidden")
    shown.run("document.querySelector('main a').click()")
    shown.until("document.querySelector('#token') !== null")
    shown.close()
