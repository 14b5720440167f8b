"""Figures that the view of slip saves."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from pypdf import PdfReader


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_drawings_are_saved_with_their_colours(slip_view, tmp_path):
    shown = slip_view()
    name = shown.run("document.querySelector('h1').textContent").split()[-1]
    saved = shown.saved("Save as SVG", tmp_path, f"{name}.svg")
    root = ET.fromstring(saved.read_text())
    space = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{space}title") == f"Slip of {name}"
    fills = {path.get("fill") for path in root.iter(f"{space}path")}
    assert len(fills) > 3
    assert not any(element.get("class") for element in root.iter())
    texts = [text.text or "" for text in root.iter(f"{space}text")]
    shows = shown.run(
        "[...document.querySelectorAll('.ends span, .key > span, .panel figcaption')]"
        ".map((part) => part.textContent)"
    )
    # the scale, what the arrows mean, and the figures of the inversion
    assert {"0", "slip"} <= set(texts)
    assert {words for words in shows if "observed" in words} <= set(texts)
    caption = next(words for words in shows if "Mw" in words)
    assert " ".join(texts).count(caption) == 1
    scale = {part.get("fill") for part in root.iter(f"{space}rect")}
    assert len(scale) > 200
    # nothing is drawn outside
    _, _, width, height = map(float, (root.get("viewBox") or "").split())
    assert (width, height) == (
        float(root.get("width") or 0),
        float(root.get("height") or 0),
    )
    assert max(float(t.get("y") or 0) for t in root.iter(f"{space}text")) < height


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_lies_beyond_the_map_is_not_drawn_on_its_legend(
    slip_view, opening, tmp_path
):
    shown = slip_view()
    name = shown.run("document.querySelector('h1').textContent").split()[-1]
    for _ in range(3):
        shown.run(
            "[...document.querySelectorAll('button')]"
            ".find((b) => b.textContent === 'Closer').click()"
        )
    # as tall as the legend below is, so that something would lie there
    below = (
        "[...document.querySelectorAll('g[clip-path] *')].filter((one) => {"
        "const b = one.getBoundingClientRect(), y = b.top + b.height / 2;"
        "return y > edge && y < innerHeight - 1 && b.width > 0; })"
    )
    saved = shown.saved("Save as SVG", tmp_path, f"{name}.svg")
    alone = opening(saved.as_uri(), height=900)
    alone.run(
        "window.edge = Number(document.querySelector('clipPath rect')"
        ".getAttribute('height'))"
    )
    assert alone.run(f"{below}.length") > 0
    hit = (
        f"{below}.filter((one) => {{ const b = one.getBoundingClientRect();"
        "return document.elementFromPoint(b.left + b.width / 2, b.top + b.height / 2)"
        "?.closest('g[clip-path]'); }).length"
    )
    assert alone.run(hit) == 0
    saved_pdf: Any = PdfReader(shown.saved("Save as PDF", tmp_path, f"{name}.pdf"))
    # the operators of PDF that clip
    assert all(
        re.search(rb"\bW\s+n\b", p.get_contents().get_data()) for p in saved_pdf.pages
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_pdf_has_a_page_for_the_map_and_one_for_the_faults(slip_view, tmp_path):
    shown = slip_view()
    name = shown.run("document.querySelector('h1').textContent").split()[-1]
    fills = shown.run(
        "['.map.km', '.solid'].map((s) => new Set([...document"
        ".querySelectorAll(s + ' .shade')].map((p) => p.getAttribute('fill'))).size)"
    )
    saved: Any = PdfReader(shown.saved("Save as PDF", tmp_path, f"{name}.pdf"))
    assert saved.metadata.title == f"Slip of {name}"
    assert len(saved.pages) == 2
    for page, colours, words in zip(
        saved.pages, fills, ("km east, north", "km deep"), strict=True
    ):
        assert words in page.extract_text()
        drawn = page.get_contents().get_data()
        used = re.findall(rb"[\d.]+ [\d.]+ [\d.]+ rg\n", drawn)
        # neighbours among them are one where they are written with two digits
        assert len(set(used)) > colours / 2 > 3
        # each triangle, beside the 256 colours of the scale
        assert len(used) > 256 + colours
        assert "slip" in page.extract_text()
