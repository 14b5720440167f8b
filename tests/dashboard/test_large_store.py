"""The view of Green's functions of many modes: what it reads, and says of that."""

from __future__ import annotations

import base64
import io
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pypdf import PdfReader

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import page as measured
import page_inputs

SIDE = 12
SVG = "{http://www.w3.org/2000/svg}"
PICTURE = (
    "(() => { const c = document.querySelector('.map canvas'); return [...c"
    ".getContext('2d').getImageData(0, 0, c.width, c.height).data]; })()"
)
LEFT = "(document.querySelector('.twins ~ p.sub')?.textContent ?? '')"


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Return the URL of a service and its campaign of 25 modes."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "store").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_inputs, "SIDE", SIDE)
        patch.setattr(page_inputs, "CAMPAIGNS", 3)
        patch.setattr(page_inputs, "GROUPS", 3)
        patch.setattr(page_inputs, "SOURCES", 8)
        _, campaign = page_inputs.fill(folder / "page.sqlite", folder / "store")
        store = folder / "store/campaigns" / campaign / "greens.zarr"
        page_inputs.write_store(store, campaign)
    with measured.served(folder) as url:
        yield url, campaign


@pytest.fixture
def view(browser, large):
    """Open the view and the list of requests for modes that it makes."""
    url, campaign = large
    shown = browser.page(f"{url}/healthz")
    shown.call("Network.enable")
    shown.call("Network.setCacheDisabled", cacheDisabled=True)
    begin = len(browser.events)

    def modes():
        # the first is for where the modes lie
        return -1 + sum(
            event["method"] == "Network.requestWillBeSent"
            and "/response/c/" in event["params"]["request"]["url"]
            for event in browser.events[begin:]
        )

    shown.call("Page.navigate", url=f"{url}/#/campaigns/{campaign}/greens")
    yield shown, modes
    # this service has no dispatcher, and this store was never closed
    known = ("/readyz", "/checksums/zarr.json")
    complaints = [c for c in shown.complaints() if not any(k in str(c) for k in known)]
    shown.close()
    assert complaints == [], str(complaints)


def choose(shown, label, value):
    shown.run(
        "(() => { const field = [...document.querySelectorAll('label')]"
        f".find((l) => l.textContent.startsWith({label!r})).querySelector('select');"
        f"field.value = {value}; field.dispatchEvent(new Event('change')); }})()"
    )


def place(shown):
    for name in ("east", "north"):
        shown.run(
            f"(() => {{ const f = document.querySelector('[aria-label=\"km {name}\"]');"
            "f.value = 3; f.dispatchEvent(new Event('change')); })()"
        )
    shown.until("document.querySelectorAll('td[data-value]').length > 0")


def settled(shown):
    """Wait until what is left out does not show; return how many modes are read."""
    end = "document.querySelector('.ends span:nth-child(3)')?.textContent"
    return int(
        shown.until(
            f"(() => {{ const [, read, left] = {LEFT}.match(/From (\\d+) of 25 modes"
            f".*about (\\S+) m/) ?? []; return left && left <= 1.1 * parseFloat({end})"
            " / 512 ? read : null; })()"
        )
    )


def last_time(shown):
    shown.run(
        "(() => { const t = document.querySelector('#time'); t.value = t.max;"
        "t.dispatchEvent(new Event('input')); })()"
    )


def test_a_picture_needs_few_of_the_modes_and_looks_like_that_of_all(view):
    shown, modes = view
    read = settled(shown)
    assert 5 <= read == modes() < 15
    last_time(shown)
    few = np.array(shown.run(PICTURE)).reshape(-1, 4)
    place(shown)
    assert modes() == 25
    assert shown.run(LEFT) == ""
    all_of_them = np.array(shown.run(PICTURE)).reshape(-1, 4)
    # a step of viridis changes no channel by more than 4 of 255
    assert np.abs(few - all_of_them).max() <= 4
    assert np.ptp(few[:, 1]) > 50


def test_of_the_change_alone_as_much_is_read_as_its_own_colours_show(view):
    shown, modes = view
    before = settled(shown)
    choose(shown, "Displacement", 1)
    assert before < settled(shown) == modes() < 25


def test_a_frame_of_the_slider_redraws_neither_scale_nor_legend(view):
    shown, _ = view
    settled(shown)
    shown.run("window.before = document.querySelector('.ends span'); 0")
    last_time(shown)
    assert shown.run("before === document.querySelector('.ends span')")


def test_figures_hold_the_field_its_scale_and_what_it_is(view, tmp_path):
    """The field is the picture on the page, in both formats, to the last pixel."""
    shown, _ = view
    settled(shown)
    last_time(shown)
    picture = np.array(shown.run(PICTURE), dtype=np.uint8).reshape(-1, 4)[:, :3]
    text = shown.saved("Save as SVG", tmp_path, "benchmark.svg").read_text()
    (image,) = (one.attrib for one in ET.fromstring(text).iter(SVG + "image"))
    inside = Image.open(io.BytesIO(base64.b64decode(image["href"].split(",")[1])))
    assert np.array_equal(np.array(inside.convert("RGB")).reshape(-1, 3), picture)
    (page,) = PdfReader(shown.saved("Save as PDF", tmp_path, "benchmark.pdf")).pages
    field: Any = page.images[0].image
    embedded = np.array(field.convert("RGB")).reshape(-1, 3)
    assert np.array_equal(embedded, picture)
    assert float(page.mediabox.width) == 0.75 * int(image["width"])
    most = shown.run("document.querySelector('.ends span:nth-child(3)').textContent")
    for words in (page.extract_text(), "".join(ET.fromstring(text).itertext())):
        assert all(word in words for word in (most, "this long", "10 yr", "length"))
