"""Green's functions of two campaigns side by side, and a link to what is shown."""

from __future__ import annotations

import numpy as np
import pytest
import slip_page
from axe import violations
from test_page import count

ARROWS = "document.querySelector('.map .arrows')?.getAttribute('d')?.length > 10"
BOTH = "document.querySelectorAll('.twins .map').length === 2"
DRAWN = """[...document.querySelectorAll('.twins .map')].map((map) =>
  [map.querySelector('.arrows').getAttribute('d'), map.querySelector('canvas')
    .toDataURL(), map.querySelector('.fixed, g').innerHTML])"""


@pytest.fixture(scope="module")
def pair(slip_client, slip_results, tmp_path_factory):
    """Return the ids of two campaigns that differ in their rock alone."""
    assert slip_results
    (first,) = (c for c in slip_client.campaigns() if c.name == "small thrust")
    spec = slip_page.SPEC.partition("datasets:")[0].replace("vs: 3.5", "vs: 2.8")
    path = tmp_path_factory.mktemp("soft") / "campaign.yaml"
    path.write_text(spec.replace("small thrust", "softer"))
    second = slip_client.submit(path)
    second.wait(timeout=500)
    return first.id, second.id


@pytest.fixture
def view(opening, slip_client, pair):
    """Open the view; it may not complain."""

    def open_view(query="", **options):
        where = f"#/campaigns/{pair[0]}/greens{query}"
        return opening(f"{slip_client.url}/{where}", ARROWS, **options)

    return open_view


def place(shown):
    """Return the last row of the table of each campaign."""
    shown.until(f"{count('table')} === 2")
    return np.array(
        shown.run(
            "[...document.querySelectorAll('tbody tr:last-child')].map((row) =>"
            " [...row.querySelectorAll('[data-value]')].map((c) =>"
            " Number(c.dataset.value)))"
        )
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("width", "dark"), [(375, True), (1280, False), (2560, True)])
def test_two_campaigns_stand_side_by_side_on_one_scale(
    view, slip_client, pair, width, dark
):
    shown = view(f"?with={pair[1]}&which=3&place=8,-4&source=1", width=width, dark=dark)
    shown.until(BOTH)
    stations = [{"name": "here", "x_km": 8, "y_km": -4}]
    for row, one in zip(place(shown), pair, strict=True):
        found = slip_client.campaign(one).sample(stations, ["0 d", "1 yr"])
        np.testing.assert_allclose(row, found.values[1, -1, 0], rtol=0, atol=1e-9)
    names = shown.run(
        "[...document.querySelectorAll('.twins figcaption')].map((f) => f.textContent)"
    )
    assert names == ["small thrust", "softer"]
    lefts, tops = np.array(
        shown.run(
            "[...document.querySelectorAll('.twins .map')].map((m) =>"
            "{ const b = m.getBoundingClientRect(); return [b.left, b.top]; })"
        )
    ).T
    assert (tops[0] == tops[1]) == (width > 375)
    assert (lefts[0] == lefts[1]) == (width == 375)
    assert shown.run("document.documentElement.scrollWidth") <= width
    assert violations(shown) == []
    # no number of an axis begins outside its chart, and no chart is a poster
    assert shown.run(
        "[...document.querySelectorAll('.series')].every((chart) =>"
        " chart.clientWidth < 600 && [...chart.querySelectorAll('text')].every((t) =>"
        " t.getBBox().x >= 0))"
    )
    before = shown.run(DRAWN)
    shown.run(
        "[...document.querySelectorAll('button')]"
        ".find((b) => b.textContent === 'Closer').click()"
    )
    after = shown.run(DRAWN)
    assert after[0][2] == after[1][2] != before[0][2]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_link_shows_the_same_green_functions(view, pair):
    shown = view(f"?with={pair[1]}&which=3&place=8,-4&source=1&time=1&colours=2")
    shown.until(BOTH)
    place(shown)
    shown.run(
        "[...document.querySelectorAll('button')]"
        ".find((b) => b.textContent === 'Closer').click()"
    )
    link = shown.run("location.hash")
    again = view("?" + link.partition("?")[2])
    again.until(BOTH)
    place(again)
    assert again.run("location.hash") == link
    assert again.run(DRAWN) == shown.run(DRAWN)
    assert again.run("document.querySelector('.choices select').value") == "1"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_link_with_nonsense_shows_what_there_is(view):
    shown = view("?source=99&time=x&colours=7&with=none&at=1,2&place=a,b")
    assert shown.run("document.querySelector('.choices select').value") == "0"
    assert shown.run(count(".twins .map")) == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_difference_that_is_read_late_is_not_shown_under_another_choice(view, pair):
    shown = view(f"?with={pair[1]}&which=0&source=1")
    choose = (
        "(() => {{ const [field] = [...document.querySelectorAll('.choices label')]"
        ".filter((l) => l.textContent.startsWith('Shown'))"
        ".map((l) => l.querySelector('select'));"
        " field.value = '{}'; field.dispatchEvent(new Event('change')); }})()"
    )
    shown.until("document.querySelector('.choices').innerText.includes('the other')")
    alone = shown.run(DRAWN)
    shown.run(
        "window.held = 0; window.begun = new Promise((go) => { window.release = go; });"
        " (() => { const real = window.fetch; window.fetch = async (path, ...rest) => {"
        f" if ((path.url ?? String(path)).includes('{pair[1]}'))"
        " { held += 1; await begun; }"
        " return real(path, ...rest); }; })()"
    )
    shown.run(choose.format(2))
    shown.until("held > 0")
    shown.run(choose.format(0))
    wait = "new Promise((done) => {{ setTimeout(done, {}); }})"
    shown.run(wait.format(300))
    shown.run("release()")
    shown.run(wait.format(1500))
    assert shown.run(DRAWN) == alone
