"""An inversion asked for on the page, of data that are uploaded there."""

from __future__ import annotations

import httpx
import pytest
from test_page import CSV, count, has, press, submit

pytestmark = pytest.mark.slow


def give(shown, label, value):
    """Fill the field of a label, as a user does."""
    shown.run(
        "(() => { const label = [...document.querySelectorAll('label')]"
        f".find((l) => l.firstChild.textContent === {label!r});"
        "const field = label.querySelector('input, select');"
        f"field.value = {value!r}; field.dispatchEvent(new Event('input'));"
        "field.dispatchEvent(new Event('change')); })()"
    )


def upload(shown, text, name):
    """Choose a file and send it, with 1 cm of error."""
    shown.run(
        "(() => { const held = new DataTransfer();"
        f"held.items.add(new File([{text!r}], {name + '.csv'!r}));"
        "const field = document.querySelector('input[type=file]');"
        "field.files = held.files; field.dispatchEvent(new Event('change')); })()"
    )
    give(shown, "horizontal", "0.01")
    give(shown, "vertical", "0.03")
    shown.run(press("Upload"))


def test_data_are_uploaded_and_inverted_with_the_options_given(page, service):
    identity = submit(service)
    shown = page(f"#/campaigns/{identity}")
    shown.until(f"{count('h1 .badge.complete')} > 0")
    shown.until(has("New inversion"))
    shown.run("location.hash = document.querySelector('a[href$=invert]').hash")
    shown.until(has("None yet: upload one"))
    # each option has its meaning and its default
    shown.until(has("weight of roughness; auto: as choice says"))
    shown.until("document.querySelector('input[placeholder=auto]') !== null")
    upload(shown, CSV, "gnss")
    shown.until(has("gnss: 2 observations"))
    assert shown.run("document.querySelector('input[value=gnss]').checked")
    give(shown, "Name", "second-look")
    give(shown, "smoothness", "2.5")
    give(shown, "choice", "cross_validation")
    give(shown, "sign", "{dip: positive}")
    shown.run(press("Invert"))
    shown.until(f"location.hash === '#/campaigns/{identity}'")
    shown.until(has("second-look"))
    (made,) = httpx.get(service.url + "/v1/inversions").json()["items"]
    assert made["name"] == "second-look"
    asked = made["request"]
    assert asked["smoothness"] == 2.5
    assert asked["choice"] == "cross_validation"
    assert asked["sign"] == {"dip": "positive"}
    assert asked["folds"] == 5


def test_a_new_inversion_begins_with_the_options_of_the_spec(page, service):
    ref = httpx.post(service.url + "/v1/files", content=CSV.encode()).json()["ref"]
    sigma = {"horizontal": 0.01, "vertical": 0.03}
    own = {"name": "own", "datasets": ["gnss"], "smoothness": 1.0,
           "sign": {"dip": "negative"}}  # fmt: skip
    identity = submit(
        service, datasets=[{"name": "gnss", "file": ref, "sigma": sigma}],
        inversions=[own],
    )  # fmt: skip
    shown = page(f"#/campaigns/{identity}/invert")
    shown.until(has("Taken from own of the spec: smoothness, sign."))
    give(shown, "Name", "again")
    shown.run(press("Invert"))
    shown.until(f"location.hash === '#/campaigns/{identity}'")
    found = httpx.get(service.url + "/v1/inversions").json()["items"]
    (made,) = [one["request"] for one in found if one["name"] == "again"]
    assert (made["smoothness"], made["sign"]) == (1.0, {"dip": "negative"})


def test_the_form_is_not_there_before_its_data_sets_are(page, service):
    ref = httpx.post(service.url + "/v1/files", content=CSV.encode()).json()["ref"]
    sigma = {"horizontal": 0.01, "vertical": 0.03}
    gnss = {"name": "gnss", "file": ref, "sigma": sigma}
    identity = submit(service, datasets=[gnss])
    shown = page()
    shown.until(has("tiny"))
    shown.run(
        "window.answered = false; window.real = window.fetch; window.fetch = async"
        " (...a) => { if (!String(a[0]).includes('/v1/datasets')) return real(...a);"
        " await new Promise((done) => { setTimeout(done, 1000); });"
        " answered = true; return real(...a); }"
    )
    shown.run(f"location.hash = '#/campaigns/{identity}/invert'")
    shown.until("document.querySelector('form') !== null")
    assert shown.run("answered")
    assert shown.run("document.querySelector('input[value=gnss]').checked")


def test_each_thing_that_is_wrong_is_named(browser, service):
    identity = submit(service)
    # the browser notes the refused request, too
    shown = browser.page(f"{service.url}/#/campaigns/{identity}/invert")
    shown.until(has("None yet: upload one"))
    give(shown, "Name", "wrong")
    give(shown, "folds", "1")
    give(shown, "smoothness", "-3")
    shown.run(press("Invert"))
    shown.until(f"{count('[role=alert] li')} >= 3")
    said = shown.run("document.querySelector('[role=alert]').innerText")
    for name in ("datasets", "folds", "smoothness"):
        assert name in said
    give(shown, "folds", "{")
    shown.run(press("Invert"))
    shown.until(has("folds: A mapping is not closed: } is missing"))
    give(shown, "folds", "many")
    shown.run(press("Invert"))
    shown.until(has("folds: many is no whole number; write e.g. 5"))
    shown.close()


def test_options_stand_in_groups_in_the_order_of_the_keyboard(page, service):
    shown = page(f"#/campaigns/{submit(service)}/invert", width=2560)
    shown.until(f"{count('fieldset.group')} === 4")
    legends = "[...document.querySelectorAll('.group legend')].map((l) => l.innerText)"
    assert shown.run(legends) == [
        "Errors of the Green's functions",
        "Prior, and how its weight is chosen",
        "Signs, bounds and moment",
        "Slip through time",
    ]
    places = shown.run(
        "[...document.querySelectorAll('.options')].map((g) => [...g.querySelectorAll"
        "('input, select')].map((f) => { const {left, top} = f.getBoundingClientRect();"
        " return [Math.round(top / 40), left]; }))"
    )
    # as one reads: along each line, then the next
    assert all(sorted(group) == group for group in places)
    assert len({top for top, _ in places[1]}) < len(places[1])


def test_every_option_of_a_request_has_a_group(page, service):
    shown = page(f"#/campaigns/{submit(service)}/invert")
    shown.until(f"{count('fieldset.group')} > 0")
    assert not shown.run("document.body.innerText.includes('\\nMore\\n')")
