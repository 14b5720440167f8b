"""Stations of an inversion: pointed at, in a table, on small and large screens."""

from __future__ import annotations

import numpy as np
import pytest
from axe import violations
from slip_page import numbers
from test_page import count


@pytest.fixture
def view(slip_view):
    return slip_view


@pytest.fixture
def results(slip_results):
    return slip_results


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_station_that_is_pointed_at_says_its_residuals_on_the_map(view, results):
    shown = view()
    result = results["smooth"][1]
    shown.run("""(() => { const dot = [...document.querySelectorAll('.map .place')]
      .find((c) => c.textContent === 'B'), at = dot.getBoundingClientRect();
      dot.dispatchEvent(new PointerEvent('pointermove', {bubbles: true,
        clientX: at.x + 2, clientY: at.y + 2})); })()""")
    rows = np.flatnonzero(result["obs_station"].values == 1)
    left = (result["observed"] - result["predicted"]).values[rows]
    wanted = [
        f"{name}: residual {1e3 * v:.1f} mm"
        for name, v in zip(("east", "north", "up"), left, strict=True)
    ]
    said = shown.run(
        "[...document.querySelectorAll('.map.km text')].map((t) => t.textContent)"
    )
    assert {"B", *wanted} <= set(said)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_map_has_the_height_of_a_large_window(view):
    shown = view(width=2560, height=1300)
    height = "document.querySelector('.map.km').clientHeight"
    assert shown.run(height) > 950
    card = "document.querySelector('[aria-label=Maps]').getBoundingClientRect().height"
    assert shown.run(card) < 1300


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_table_of_a_station_has_no_hidden_column(view):
    shown = view("station=B", width=375)
    numbers(shown)
    assert (
        shown.run(
            "(() => { const e = document.querySelector('[aria-label=Table]');"
            "return e.scrollWidth - e.clientWidth; })()"
        )
        <= 0
    )
    assert "residual / sigma" in shown.run(
        "getComputedStyle(document.querySelector('td:last-child'), '::before').content"
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_left_has_no_sign(view):
    shown = view()
    said = shown.run(
        "import('/dashboard/format.js').then(({ fixed }) =>"
        " [fixed(-0.004), fixed(-0.04, 1), fixed(-0.06, 1), fixed(-0.4, 0)])"
    )
    assert said == ["0.00", "0.0", "-0.1", "0"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("width", "dark"), [(375, True), (2560, False)])
def test_axe_finds_nothing_on_the_card_with_slip(
    browser, slip_client, slip_results, width, dark
):
    assert slip_results
    (campaign,) = (c for c in slip_client.campaigns() if c.name == "small thrust")
    where = f"{slip_client.url}/#/campaigns/{campaign.id}"
    shown = browser.page(where, width=width, dark=dark)
    shown.until(f"{count('.inversion')} > 2")
    # slip is drawn once its card is in sight
    shown.run("document.querySelectorAll('.slip')[0].scrollIntoView(); 0")
    shown.until(f"{count('.slip .shade')} > 3")
    found = violations(shown)
    assert found == [], found
    assert shown.run("document.documentElement.scrollWidth") == width
    assert shown.complaints() == []
    shown.close()
