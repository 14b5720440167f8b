"""The view of waves in a real browser."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from axe import violations
from test_page import CONTRAST
from wave_page import (
    DRAWN,
    GROUND,
    STATIONS,
    choose,
    distances,
    lines,
    path_pixels,
    row_of,
)

pytestmark = pytest.mark.slow


def test_a_station_shows_its_three_components_and_its_offset(wave_view, waves):
    shown = wave_view("?motion=displacement")
    choose(shown, "Station", "C")
    row, station = row_of(waves, (0, 0), 0), list(STATIONS).index("C")
    shown.until("document.querySelectorAll('.chart.station').length === 1")
    cells = shown.run(
        "['peak', 'offset'].map((name) => [...document.querySelectorAll("
        "`tr.${name} td`)].map((td) => Number(td.dataset.value)))"
    )
    series = waves["displacement"].values[row, station]
    np.testing.assert_array_equal(cells[0], np.abs(series).max(axis=-1))
    np.testing.assert_array_equal(cells[1], waves["offset"].values[row, station])
    drawn = shown.run(
        "[...document.querySelectorAll('.chart.station .trace')]"
        ".map((path) => path.getAttribute('d'))"
    )
    for component, path in enumerate(drawn):
        y = [corner[1] for corner in path_pixels(path)]
        line = np.polyfit(series[component].astype(float), y, 1)
        assert np.abs(np.polyval(line, series[component]) - y).max() < 0.08


def test_without_the_ground_it_is_said_how_to_ask_for_it(wave_view):
    shown = wave_view(row=1)
    assert "waves: {surface: {spacing" in shown.text()
    assert "waves: {surface: {spacing" not in wave_view().text()


def test_a_link_shows_exactly_the_same(wave_view):
    shown = wave_view()
    for label, value in {
        "Motion": "displacement", "Component": "all three", "Slip": "along dip",
        "Scale of the lines": "each its own", "Stations": "evenly",
        "Lines larger by": "0.7", "Colours stronger by": "3", "From, s": "1",
        "To, s": "12", "Station": "B",
    }.items():  # fmt: skip
        choose(shown, label, value)
    # at once: a drawing between the two would put the slider back
    shown.run(
        "(() => { const time = document.querySelector('.time input'); time.value = 10;"
        "time.dispatchEvent(new Event('input')); })()"
    )
    shown.until("location.hash.includes('time=4&')")
    shown.until(GROUND)
    link = shown.run("location.hash")
    again = wave_view(link[link.index("?") :])
    state = (
        "[location.hash, document.querySelector('.time output').value, "
        "document.querySelector('.record svg').outerHTML, "
        "document.querySelector('.station-detail').innerHTML]"
    )
    # the record section has the width that the scrollbar leaves it
    assert again.run(state) == shown.run(state)


def key(shown, name):
    code = {"Tab": 9, "ArrowUp": 38, "ArrowRight": 39}[name]
    for kind in ("keyDown", "keyUp"):
        shown.call(
            "Input.dispatchKeyEvent",
            type=kind, key=name, code=name, windowsVirtualKeyCode=code,
        )  # fmt: skip


def test_stations_and_times_are_chosen_by_keys_alone(wave_view, waves):
    shown = wave_view("?time=2")
    stops = 0
    while not shown.run("document.activeElement.matches('.record')"):
        key(shown, "Tab")
        stops += 1
        assert stops < 40, "Tab never comes to the record section"
    key(shown, "ArrowUp")
    far = distances(waves, [row_of(waves, (0, 0), 0)])
    names = [list(STATIONS)[i] for i in np.argsort(far)]
    shown.until(f"location.hash.includes('station={names[0]}')")
    key(shown, "ArrowUp")
    shown.until(f"location.hash.includes('station={names[1]}')")
    key(shown, "ArrowRight")
    shown.until("location.hash.includes('time=2.4&')")
    assert shown.run("document.activeElement.matches('.record')")


def test_a_click_on_a_line_chooses_its_station_and_time(wave_view):
    shown = wave_view("?component=up")
    box = shown.run(
        "(() => { const e = document.querySelector('.record svg'); e.scrollIntoView();"
        "const b = e.getBoundingClientRect(); return [b.x, b.y]; })()"
    )
    x, y = lines(shown)[-1][12] + box
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        shown.call(
            "Input.dispatchMouseEvent",
            type=kind, x=x, y=y, button="left", clickCount=1,
        )  # fmt: skip
    shown.until("location.hash.includes('time=4.8&')")
    name = shown.run("document.querySelector('.record text.chosen').textContent")
    assert f"station={name}" in shown.run("location.hash")
    assert f"{name}, " in shown.run("document.querySelector('.hover').textContent")


def test_play_goes_on_to_the_end_and_stops(wave_view):
    shown = wave_view("?time=15.2")
    shown.run(
        "[...document.querySelectorAll('button')]"
        ".find((b) => b.textContent === 'Play').click()"
    )
    shown.until("location.hash.includes('time=16&')")
    assert shown.run("document.querySelector('.time button').textContent") == "Play"


@pytest.mark.parametrize(("width", "dark"), [(375, True), (1440, False), (2560, False)])
def test_everybody_can_read_it(wave_view, width, dark):
    shown = wave_view("?station=A&component=all", width=width, dark=dark)
    assert violations(shown) == []
    assert shown.run(CONTRAST) == []
    assert shown.run("document.documentElement.scrollWidth - innerWidth") <= 0


def test_drawings_are_saved_as_svg_and_as_pdf(wave_view, tmp_path):
    shown = wave_view("?station=A")
    section = shown.saved("Save as SVG", tmp_path, "ground-section.svg")
    tree = ET.parse(section).getroot()
    paths = [e for e in tree.iter() if e.tag.endswith("path")]
    assert sum(e.get("stroke", "none") != "none" for e in paths) >= len(STATIONS)
    pdf = shown.saved("Save as PDF", tmp_path, "ground-waves.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 3


def test_its_campaign_leads_to_it(browser, wave_client, wave_campaigns):
    shown = browser.page(f"{wave_client.url}/#/campaigns/{wave_campaigns[0].id}")
    shown.until("document.body.innerText.includes('Look at the waves')")
    shown.run(
        "[...document.querySelectorAll('a')]"
        ".find((a) => a.textContent === 'Look at the waves').click()"
    )
    shown.until(DRAWN)
    shown.until(GROUND)
    assert shown.complaints() == []
    shown.close()
