"""Numbers of the view of slip: the scale of its arrows, and what is shown beside."""

from __future__ import annotations

import re
import time

import httpx
import numpy as np
import pytest
from test_page import count

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def longest(result):
    """Return the length of the longest horizontal arrow, observed or predicted."""
    vectors = np.zeros((2, result.sizes["station"], 2))
    where = result["obs_station"].values, result["obs_component"].values
    for kind, name in enumerate(("observed", "predicted")):
        for station, axis, value in zip(*where, result[name].values, strict=True):
            if axis < 2:
                vectors[kind, station, axis] = value
    return np.hypot(*np.moveaxis(vectors, -1, 0)).max()


def test_the_key_arrow_is_as_long_as_the_map_draws_its_value(slip_view, slip_results):
    result = slip_results["smooth"][1]
    wanted = longest(result)
    flat = result["obs_component"].values < 2
    # no single component is that long
    assert wanted > 1.05 * np.abs(result["observed"].values[flat]).max()
    shown = slip_view()
    said = shown.run("document.querySelector('.key').textContent")
    assert f"this long: {float(f'{wanted:.3g}'):g} m" in said
    key = shown.run(
        "[...document.querySelectorAll('.key .observed')].at(-1).getAttribute('d')"
    )
    paths = shown.run(
        "[...document.querySelectorAll('.map .observed, .map .predicted')]"
        ".map((p) => p.getAttribute('d')).join('')"
    )
    # each arrow is a shaft and then a head, which begins with another M
    lines = np.array(re.findall(r"M([\d.-]+) ([\d.-]+)L([\d.-]+) ([\d.-]+)", paths))
    shafts = lines.astype(float)
    lengths = np.hypot(*(shafts[:, 2:] - shafts[:, :2]).T)
    assert key.startswith(f"M1 5H{1 + round(lengths.max())}M")


def test_the_card_of_an_inversion_has_the_same_key_arrow(
    opening, slip_client, slip_results
):
    (campaign,) = (c for c in slip_client.campaigns() if c.name == "small thrust")
    shown = opening(f"{slip_client.url}/#/campaigns/{campaign.id}")
    card = (
        "[...document.querySelectorAll('.inversion')].find((one) =>"
        " one.querySelector('h3').textContent === 'smooth')"
    )
    shown.until(f"{card} !== undefined")
    shown.run(f"{card}.scrollIntoView()")
    said = shown.until(f"{card}.querySelector('.key')?.textContent")
    wanted = longest(slip_results["smooth"][1])
    assert f"this long: {float(f'{wanted:.3g}'):g} m" in said


def test_an_inversion_with_other_signs_is_not_that_of_a_point(
    slip_view, slip_client, slip_results
):
    """Its name may be the same: what was asked for says which one it is."""
    identity, result = slip_results["tried"]
    url = slip_client.url + "/v1/inversions"
    own = httpx.get(f"{url}/{identity}").json()
    smoothness = float(result["cv_smoothness"].values[-1])
    shown = slip_view(name="tried")
    name = shown.run(
        f"`tried-${{({smoothness!r}).toExponential(2)}}-0.0e+0`"
        ".replace(/[^\\w-]/g, '_')"
    )
    asked = {**own["request"], "campaign": own["campaign"], "name": name}
    asked |= {"smoothness": smoothness, "sign": {"dip": "positive"}}
    other = httpx.post(url, json=asked).raise_for_status().json()
    while (state := httpx.get(f"{url}/{other['id']}").json()["state"]) != "accepted":
        assert state not in ("failed", "cancelled")
        time.sleep(0.1)
    shown.reload()
    shown.until(f"{count('.scores circle[role=button]')} > 3")
    shown.run("[...document.querySelectorAll('.scores circle')].at(-1)"
              ".dispatchEvent(new MouseEvent('click'))")  # fmt: skip
    shown.until(f"{count('.panels .map')} === 2", 300)
    beside = re.findall(r"with=(\w+)", shown.run("location.hash"))[0]
    made = httpx.get(f"{url}/{beside}").json()
    assert made["name"] == name
    assert made["request"] == {**own["request"], "smoothness": smoothness, "name": name}
    # both have one name, and are listed with what differs
    options = (
        "[...[...document.querySelectorAll('label')].find((l) => l.textContent"
        ".startsWith('Beside it')).querySelectorAll('option')].map((o) => o.text)"
    )
    assert {f"{name} · {one[-6:]}" for one in (beside, other["id"])} <= set(
        shown.run(options)
    )


def test_a_long_name_stays_within_a_phone(slip_view):
    shown = slip_view(width=375)
    shown.run(
        "document.querySelectorAll('.panel figcaption').forEach((one) =>"
        " { one.textContent = 's'.repeat(60); })"
    )
    assert shown.run("document.documentElement.scrollWidth") == 375
