"""A new campaign that begins as another one."""

from __future__ import annotations

import httpx
import pytest
from test_new import READY, WAIT, text_of, write
from test_page import CSV, press, submit

pytestmark = pytest.mark.slow


def test_a_campaign_starts_from_another_one_with_its_files_and_a_new_name(
    page, service
):
    ref = httpx.post(service.url + "/v1/files", content=CSV.encode()).json()["ref"]
    sigma = {"horizontal": 0.01, "vertical": 0.03}
    gnss = {"name": "gnss", "file": ref, "sigma": sigma}
    identity = submit(service, name="first", datasets=[gnss])
    shown = page(f"#/campaigns/{identity}")
    link = "document.querySelector('a[href*=\"new?from\"]')"
    shown.until(f"{link} !== null")
    shown.run(f"{link}.click()")
    shown.until(READY, WAIT)
    shown.run(press("Submit"))
    shown.until(
        f"/^#.campaigns/.test(location.hash) && !location.hash.includes('{identity}')"
    )
    made = httpx.get(service.url + "/v1/campaigns").json()["items"]
    assert sorted(one["name"] for one in made) == ["first", "first 2"]
    first, second = (
        httpx.get(service.url + one["links"]["self"]).json()["spec"]
        for one in sorted(made, key=lambda one: one["name"])
    )
    assert {**first, "name": ""} == {**second, "name": ""}


def test_what_is_written_is_not_replaced_by_another_campaign_unasked(page, service):
    identity = submit(service)
    shown = page("#/new")
    shown.until(READY, WAIT)
    write(shown, "name: half-written\n")
    shown.run("window.asked = []; window.confirm = (m) => { asked.push(m); return 0; }")
    shown.run(f"location.hash = '#/new?from={identity}'")
    shown.until("asked.length === 1")
    shown.until("document.querySelector('.editor')?.shadowRoot !== null")
    assert "tiny" in shown.run("asked[0]")
    shown.until("document.querySelector('.editor').shadowRoot.textContent.length > 9")
    assert text_of(shown) == "name: half-written\n"
    # what nobody has changed is replaced without a question
    shown.run("window.confirm = (m) => { asked.push(m); return 1; }")
    shown.run("location.hash = '#/'")
    shown.run(f"setTimeout(() => {{ location.hash = '#/new?from={identity}'; }}, 300)")
    shown.until("asked.length === 2")
    shown.until(READY, WAIT)
    assert text_of(shown).startswith("name: tiny 2\n")
