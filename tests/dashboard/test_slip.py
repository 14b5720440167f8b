"""The view of an inversion's slip in a real browser, beside its NetCDF file."""

from __future__ import annotations

import re

import httpx
import numpy as np
import pytest
from axe import violations
from scipy.spatial import ConvexHull
from slip_page import numbers
from test_page import CONTRAST, count, has


@pytest.fixture
def client(slip_client):
    return slip_client


@pytest.fixture
def results(slip_results):
    return slip_results


@pytest.fixture
def view(slip_view):
    return slip_view


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_stations_show_the_numbers_of_the_result(view, results):
    shown = view("station=B")
    result = results["smooth"][1]
    rows = np.flatnonzero(result["obs_station"].values == 1)
    wanted = np.column_stack(
        [result[name].values[rows] for name in ("observed", "predicted")]
    )
    found = numbers(shown)
    np.testing.assert_allclose(found[:, :2], wanted, rtol=1e-12)
    np.testing.assert_allclose(found[:, 2], wanted[:, 0] - wanted[:, 1], atol=1e-15)
    peak = np.hypot(*result["fault_slip"].values.T).max()
    text = shown.text()
    assert f"{float(f'{peak:.3g}'):g} m" in text
    attrs = result.attrs
    low, high = attrs["magnitude_interval"]
    assert f"Mw {attrs['magnitude']:.2f} ({low:.2f} to {high:.2f})" in text
    low, high = attrs["peak_slip_interval"]
    mean = f"{attrs['peak_slip_average']:.2f} m ({low:.2f} to {high:.2f})"
    assert f"mean over {attrs['peak_slip_length'] / 1e3:.1f} km about it {mean}" in text


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_colours_end_at_the_edges_of_the_fault(view, results):
    result = results["smooth"][1]
    # the mesh goes on beyond the plane of 50 by 30 km, where slip falls to zero
    assert result["fault_along"].max() > 51e3
    shown = view()
    points = np.array(
        shown.run(
            "[...document.querySelectorAll('.map .shade')].map((path) =>"
            " path.getAttribute('d')).join(' ').match(/[-\\d.]+/g).map(Number)"
        )
    ).reshape(-1, 2)
    area = ConvexHull(points).volume
    # a rectangle fills its hull: the triangles' area is that of the hull
    triangles = points.reshape(-1, 3, 2)
    a, b = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    drawn = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum() / 2
    assert drawn == pytest.approx(area, rel=0.01)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_link_leads_to_exactly_this_view(view, results):
    shown = view(
        f"with={results['rough'][0]}&shade=interval&arrows=up&rake=0&station=C"
    )
    shown.until(f"{count('.panels .map')} === 2")
    shown.run(
        "[...document.querySelectorAll('button')]"
        ".find((b) => b.textContent === 'Closer').click()"
    )
    shown.run(
        "document.querySelector('.solid').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'ArrowLeft'}))"
    )
    link = shown.run("location.hash")
    assert "turn=20" in link
    # both are turned, not the one under the hand alone
    both = "[...document.querySelectorAll('.solid .ground')].map((p) => p.outerHTML)"
    assert len(set(shown.run(both))) == 1
    again = view(link.partition("?")[2])
    again.until(f"{count('.panels .map')} === 2")
    drawings = (
        "[...document.querySelectorAll('.panels svg')].map((s) => s.innerHTML).join()"
    )
    assert again.run("location.hash") == link
    assert again.run(drawings) == shown.run(drawings)
    assert shown.run(count(".panels path.rake")) == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_contours_lie_on_their_level(view):
    shown = view()
    pieces = shown.run(
        "import('/dashboard/slip/contours.js').then(({ contour, step }) => {"
        "const nodes = [[0, 0], [4, 0], [0, 4], [4, 4]];"
        "const values = nodes.map(([x, y]) => 2 * x + y);"
        "return [contour(nodes, [[0, 1, 2], [1, 3, 2]], values, 5),"
        " step(0.747), step(6), step(0)]; })"
    )
    lines, *steps = pieces
    points = np.array(lines).reshape(-1, 2)
    assert len(lines) == 2
    np.testing.assert_allclose(2 * points[:, 0] + points[:, 1], 5)
    assert steps == [0.2, 1, 0]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_who_may_only_read_is_not_offered_to_invert(view):
    shown = view(name="tried")
    points = count(".scores circle")
    shown.until(f"{count('.scores circle[role=button]')} > 3")
    shown.run(
        "(() => { const real = window.fetch; window.fetch = (path, ...more) =>"
        " path === '/v1/session' ? Promise.resolve(new Response(JSON.stringify("
        "{auth: true, user: 'ada', role: 'viewer', csrf: null, campaign: null})))"
        " : real(path, ...more);"
        "import('/dashboard/api.js').then(({ whoAmI }) => whoAmI()); })()"
    )
    shown.until(f"{points} > 3 && {count('.scores circle[role=button]')} === 0")
    assert "Click a point" not in shown.text()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("width", "dark"), [(375, False), (1280, True), (2560, False)])
def test_it_is_readable_on_any_screen(view, width, dark):
    shown = view("station=B", name="tried", width=width, dark=dark)
    shown.until(has("residual"))
    shown.until(f"{count('.scores circle')} > 3")
    assert shown.run("document.documentElement.scrollWidth - innerWidth") <= 0
    assert shown.run(CONTRAST) == []
    assert violations(shown) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_score_leads_to_the_slip_of_its_weights(view, client):
    shown = view(name="tried")
    shown.until(f"{count('.scores circle[role=button]')} > 3")
    assert shown.run(count(".scores circle[tabindex='0']")) == 1
    label = "document.querySelector('.scores circle').getAttribute('aria-label')"
    smoothness = float(shown.run(label).split("smoothness ")[1].split(",")[0])
    shown.run(
        "document.querySelector('.scores circle').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))"
    )
    shown.until(f"{count('.panels .map')} === 2", 300)
    items = httpx.get(client.url + "/v1/inversions").json()["items"]
    near = pytest.approx(smoothness, rel=0.06)
    (made,) = (one for one in items if one["name"].startswith("tried-")
               if one["request"]["smoothness"] == near)  # fmt: skip
    assert made["name"] in shown.text()
    # the same point again is the same inversion
    shown.run("document.querySelector('.scores circle').dispatchEvent("
              "new MouseEvent('click'))")  # fmt: skip
    shown.until(has("Beside it"))
    assert len(httpx.get(client.url + "/v1/inversions").json()["items"]) == len(items)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_fault_is_drawn_in_space_as_the_result_has_it(view, results):
    shown = view()
    result = results["smooth"][1]
    # straight down it is the map, from the side it is a section
    script = (
        "import('/dashboard/slip/fault-view.js').then(({ FaultView }) => {"
        "const points = [[0, 0, -3], [8, 0, -7], [0, 6, -3]];"
        "const result = {points, triangles: [[0, 1, 2]], field: () => [0, 1, 2],"
        "inversion: {name: 'made up'}};"
        "const look = {shade: 'slip', most: 2, turn: 0, tilt: 0};"
        "const made = new FaultView(result, look);"
        "const all = () => points.map((p) => made.project(p));"
        "made.look.turn = 0; made.look.tilt = 90; const above = all();"
        "made.look.tilt = 0; const side = all();"
        "return [made.scale, above, side]; })"
    )
    scale, above, side = shown.run(script)
    above, side = (np.array(p) / [scale, scale, 1] for p in (above, side))
    np.testing.assert_allclose(above[1] - above[0], [8, 0, -4], atol=1e-9)
    np.testing.assert_allclose(above[2] - above[0], [0, -6, 0], atol=1e-9)
    np.testing.assert_allclose(side[1] - side[0], [8, 4, 0], atol=1e-9)
    np.testing.assert_allclose(side[2] - side[0], [0, 0, -6], atol=1e-9)
    drawn = shown.run("document.querySelectorAll('.solid .shade').length")
    assert 1 < drawn <= result.sizes["fault_triangle"]
    before = shown.run("document.querySelector('.solid svg').innerHTML")
    shown.run(
        "document.querySelector('.solid').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'ArrowLeft'}))"
    )
    assert shown.run("document.querySelector('.solid svg').innerHTML") != before


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_scores_are_those_that_were_tried_and_the_line_is_the_choice(view, results):
    shown = view()
    # the smoothness of these was given
    shown.until(has("nothing was tried"))
    found = shown.run(
        "import('/dashboard/slip/scores.js').then(({ scores }) => {"
        "const element = scores({scores: () => ({smoothness: [0.1, 1, 10],"
        "sparsity: [0, 0, 0], score: [2, 1, 4], error: [0.5, 0.1, 1],"
        "chosen: {smoothness: 1, sparsity: 0}})});"
        "const at = (c) => ['cx', 'cy'].map((k) => Number(c.getAttribute(k)));"
        "const line = element.querySelector('.chosen').getAttribute('d');"
        "return [[...element.querySelectorAll('circle')].map(at),"
        " Number(line.slice(1).split(' ')[0]), element.textContent]; })"
    )
    points, line, text = np.array(found[0]), found[1], found[2]
    gaps = np.diff(points[:, 0])
    assert gaps[0] == pytest.approx(gaps[1], abs=0.2)
    assert line == points[1, 0]
    # a smaller score is lower on the chart: twice as good is half of four times
    assert points[0, 1] - points[1, 1] == pytest.approx(
        (points[2, 1] - points[1, 1]) / 2, abs=0.2
    )
    assert "least 1.00" in text


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_coast_lies_where_the_frame_puts_it(view):
    pyproj = pytest.importorskip("pyproj")
    shown = view()
    places = [[141.0, 38.3], [142.4, 40.0], [135.0, 34.0]]
    script = (
        "import('/dashboard/elements/coast.js').then(async (m) => {"
        "const place = m.projection(142.4, 38.3);"
        "const coast = await m.coast({kind: 'geographic', lon0: 142.4, lat0: 38.3});"
        f"return [{places}.map(([lon, lat]) => place(lon, lat)),"
        " coast.lines.flat().filter(([x, y]) => Math.hypot(x, y) < 400),"
        " await m.coast({kind: 'local'})]; })"
    )
    found, line, local = shown.run(script)
    crs = "+proj=aeqd +lon_0=142.4 +lat_0=38.3 +ellps=WGS84"
    to_frame = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    expected = np.array([to_frame.transform(*p) for p in places]) / 1e3
    # the coast itself is generalised by kilometres
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=0.5)
    # Kinkasan and the Oshika peninsula, 38.3 N, 141.5 E: 78 km to the west
    line = np.array(line)
    assert np.hypot(line[:, 0] + 78, line[:, 1]).min() < 15
    assert line[:, 0].max() < 100  # the ocean is to the east
    assert local is None


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("width", "beside"), [(2560, True), (1280, False)])
def test_a_station_stands_beside_the_map_where_there_is_room(view, width, beside):
    shown = view("station=B", width=width)
    box = "document.querySelector('{}').getBoundingClientRect()"
    at = {
        name: shown.run(f"(({{ left, top }}) => [left, top])({box.format(name)})")
        for name in (".panels .map", ".station-choice")
    }
    (left, top), (next_left, next_top) = at.values()
    assert (next_left > left + 600) == beside
    assert (next_top < top + 200) == beside
    assert shown.run("document.documentElement.scrollWidth") == width


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("dark", [False, True])
def test_the_card_of_an_inversion_draws_its_slip_in_the_colours_of_the_page(
    browser, client, results, dark
):
    (one,) = [
        found
        for found in httpx.get(client.url + "/v1/inversions").json()["items"]
        if found["name"] == "smooth"
    ]
    shown = browser.page(f"{client.url}/#/campaigns/{one['campaign']}", dark=dark)
    card = (
        "[...document.querySelectorAll('.inversion')].find((one) =>"
        " one.querySelector('h3').textContent === 'smooth')"
    )
    shown.until(f"{card} !== undefined")
    shown.run(f"{card}.scrollIntoView()")
    shown.until(f"{card}.querySelectorAll('.map .shade').length > 3")
    peak = float(np.hypot(*results["smooth"][1]["fault_slip"].values.T).max())
    ends = f"[...{card}.querySelectorAll('.ends span')].map((end) => end.textContent)"
    assert shown.run(ends) == ["0", "slip", f"{peak:.3g} m"]
    ground = shown.run(
        f"getComputedStyle({card}.querySelector('.map')).backgroundColor"
    )
    red = int(re.findall(r"\d+", ground)[0])
    assert red < 60 if dark else red > 200
    assert shown.complaints() == []
    shown.close()


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
