"""Green's functions of two campaigns side by side, and a link to what is shown."""

from __future__ import annotations

import re

import numpy as np
import pytest
import slip_page
from axe import violations
from greens_page import choose, click
from test_page import count, has, press

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


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_sources_of_the_chosen_component_alone_are_picked_and_coloured(
    view, slip_client, pair
):
    """Those of strike slip and of dip slip stand at the same places."""
    shown = view("?source=1&place=8,-4&all=1&colours=2")
    shown.until(f"{count('.map .source[fill]')} > 0")
    labels = shown.run(
        "[...document.querySelector('.choices select').options].map((o) => o.text)"
    )
    rows = [i for i, label in enumerate(labels) if label.endswith("dip slip")]
    assert 1 in rows
    assert len(rows) == len(labels) / 2
    assert shown.run(count(".map .source[fill]")) == len(rows)
    stations = [{"name": "here", "x_km": 8, "y_km": -4}]
    found = slip_client.campaign(pair[0]).sample(stations, ["0 d", "1 yr"])
    most = np.abs(found.values[rows, :, 0, 2]).max()
    said = shown.run("document.querySelector('.ends + .sub + .sub').textContent")
    assert said.startswith("unit sources of dip slip: ")
    assert float(said.split("at most ")[1].split()[0]) == pytest.approx(most, rel=5e-3)
    # white alone is not visible on pale colours
    assert shown.run(count(".map .rim")) == len(rows)
    rim = "getComputedStyle(document.querySelector('.map .rim')).stroke"
    assert max(map(int, re.findall(r"\d+", shown.run(rim)))) < 30
    choose(shown, "A click", 1)
    for row, part in enumerate(
        shown.run(
            "(() => { const m = document.querySelector('.map svg').viewBox.baseVal;"
            "return [...document.querySelectorAll('.map .source:not(.chosen)')].map("
            "(c) => [c.getAttribute('cx') / m.width,"
            " c.getAttribute('cy') / m.height]); })()"
        )
    ):
        click(shown, *part)
        shown.until(f"document.querySelector('.choices select').value == {rows[row]}")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_key_arrow_is_as_long_as_the_map_draws_its_value(view, tmp_path):
    shown = view()
    value, pixels, drawn = shown.run(
        "import('/dashboard/elements/surface-map.js').then(({ SurfaceMap }) => {"
        "const key = document.querySelector('.ends .all');"
        "const [from, to] = key.querySelector('path').getAttribute('d')"
        ".match(/M([\\d.]+) 5H([\\d.]+)/).slice(1).map(Number);"
        "const wide = key.querySelector('svg');"
        "const scale = wide.getBoundingClientRect().width / wide.viewBox.baseVal.width;"
        "const field = { values: [1.5, 0, 0], longest: 3 };"
        "const begin = [{ column: 10, row: 9, weights: [1], nodes: [0] }];"
        "const half = SurfaceMap.prototype.arrows.call({ field, begin });"
        "return [key.textContent, scale * (to - from), half]; })"
    )
    assert re.fullmatch(r"this long: [\d.e-]+ m/m", value)
    # an arrow of half the value
    assert drawn.startswith(f"M10 9L{10 + pixels / 2:.1f} 9.0")
    saved = shown.saved("Save as SVG", tmp_path, "small thrust.svg").read_text()
    assert value in saved
    assert f"M1 5H{1 + pixels:g}" in saved


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_why_a_campaign_is_not_compared_is_said_beside_a_time_series(view, pair):
    shown = view("?place=8,-4")
    shown.until(f"{count('table')} === 1")
    shown.run(
        "const real = window.fetch; window.fetch = (path, ...rest) =>"
        f" (path.url ?? String(path)).includes('{pair[1]}/greens') ? Promise.resolve("
        'new Response(\'{"detail": "It is not there."}\', { status: 410 }))'
        " : real(path, ...rest); 0"
    )
    options = (
        "[...[...document.querySelectorAll('.choices label')].find((l) => l.textContent"
        ".startsWith('Compare')).querySelector('select').options].map((o) => o.text)"
    )
    (row,) = (i for i, text in enumerate(shown.run(options)) if pair[1] in text)
    choose(shown, "Compare with", row)
    shown.until(f"{count('.choices [role=alert]')} === 1")
    # the campaign's own motion is read and shown again
    shown.until(f"{has('Displacement in m per m of slip')} && {count('table')} === 1")
    shown.run("new Promise((done) => { setTimeout(done, 300); })")
    assert "It is not there." in shown.run(
        "document.querySelector('.choices [role=alert]').textContent"
    )
    choose(shown, "Compare with", 0)
    shown.until(f"{count('.choices [role=alert]')} === 0")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_error_of_the_mesh_is_said_to_be_shown_of_one_campaign_alone(view, pair):
    shown = view(f"?with={pair[1]}&which=3&source=1")
    shown.until(BOTH)
    visible = "document.querySelector('.colours').checkVisibility()"
    assert shown.run(visible)
    choose(shown, "Colours", 4)
    assert shown.run(has("is not shown while two campaigns are compared"))
    # no colours are beside a map without them
    assert not shown.run(visible)
    choose(shown, "Shown", 0)
    shown.until(f"{visible} && {has('estimated error')}")
    assert not shown.run(has("while two campaigns are compared"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_axis_of_a_map_has_several_numbers_at_any_scale(view):
    shown = view()
    texts = (
        "[...document.querySelectorAll('.map svg text')].filter((t) => t.textContent"
        " !== 'km east, north').map((t) => t.getAttribute('text-anchor'))"
    )
    for _ in range(6):
        anchors = shown.run(texts)
        assert 2 <= anchors.count("middle") <= 8
        assert 2 <= anchors.count(None) <= 8
        shown.run(press("Closer"))
    steps = shown.run(
        "import('/dashboard/elements/ticks.js').then(({ tickStep }) =>"
        " [3, 5.9, 6, 14.9, 15, 29.9, 0.3, 3000].map(tickStep))"
    )
    assert steps == pytest.approx([1, 1, 2, 2, 5, 5, 0.1, 1000])
