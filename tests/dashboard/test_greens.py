"""The view of Green's functions in a real browser, beside the service's own samples."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
import pytest
import zarr
from axe import violations
from greens_page import choose, click
from test_page import CONTRAST

from afterslip import Client
from afterslip.units import YEAR
from afterslip_common.curve import spectral_weights

SPEC = """
name: small thrust
model:
  domain: {x: [-150, 150], y: [-150, 150], depth: 120}
  layers:
    - {name: crust, bottom: 30, vp: 6.0, vs: 3.5, rho: 2700}
    - {name: mantle, bottom: 120, vp: 8.0, vs: 4.5, rho: 3300,
       rheology: {maxwell: {viscosity: 1.0e18}}}
  faults:
    - name: main
      plane: {x: 0, y: 0, top: 3, strike: 20, dip: 30, length: 50, width: 30}
  mesh: {size: {fault: 15, far: 60}}
sources: {fault: main, along_strike: 2, down_dip: 1}
times: {until: 2 yr, output: [0 d, 100 d, 1 yr, 2 yr]}
solver: {integrator: INTEGRATOR}
"""
INTEGRATORS = {"spectral": "spectral", "stepping": "stepping, step: 30 d"}
PLACES = [(8.125, -4.5), (-61.0, 90.25), (149.0, -149.0)]
TIMES = ["0 d", "100 d", "1 yr", "2 yr"]
SHOWN = "document.querySelector('.map .arrows')?.getAttribute('d')?.length > 10"


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("greens")


@pytest.fixture(scope="module")
def client(directory):
    # a test takes files away for a moment, which the scrubber would compute again
    with Client.embedded(directory, workers=1, scrub_rate=0) as client:
        yield client


@pytest.fixture(scope="module")
def campaigns(client, tmp_path_factory):
    folder = tmp_path_factory.mktemp("spec")
    submitted = {}
    for integrator, words in INTEGRATORS.items():
        path = folder / f"{integrator}.yaml"
        path.write_text(SPEC.replace("INTEGRATOR", words))
        submitted[integrator] = client.submit(path)
    return {name: one.wait(timeout=500) for name, one in submitted.items()}


@pytest.fixture
def view(opening, client, campaigns):
    """Open the view; it may not complain."""

    def open_view(integrator="spectral", **options):
        where = f"#/campaigns/{campaigns[integrator].id}/greens"
        return opening(f"{client.url}/{where}", SHOWN, **options)

    return open_view


def table(shown):
    """(time, component) numbers of the time series, as they are computed."""
    values = shown.until(
        "(() => { const v = [...document.querySelectorAll('td[data-value]')]"
        ".map((cell) => Number(cell.dataset.value)); return v.length ? v : null; })()"
    )
    return np.array(values).reshape(-1, 3)


def sampled(client, campaign, places, name="data"):
    """(source, time, station, component), by the service."""
    stations = [
        {"name": str(number), "x_km": x, "y_km": y}
        for number, (x, y) in enumerate(places)
    ]
    answer = httpx.post(
        f"{client.url}/v1/campaigns/{campaign.id}/sample",
        json={"stations": stations, "times": TIMES},
    ).raise_for_status()
    return np.array(answer.json()[name])


def errors(shown):
    """(time,) estimated errors of the mesh beside the time series."""
    values = shown.until(
        "(() => { const v = [...document.querySelectorAll('td[data-error]')]"
        ".map((cell) => Number(cell.dataset.error)); return v.length ? v : null; })()"
    )
    return np.array(values)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("integrator", ["spectral", "stepping"])
def test_series_are_those_that_the_service_samples(view, client, campaigns, integrator):
    """Both sum the same numbers of single precision in double, in another order."""
    expected = sampled(client, campaigns[integrator], PLACES)
    largest = np.abs(expected).max()
    wrong = sampled(client, campaigns[integrator], PLACES, "space_error")
    assert (wrong[:, -1] > wrong[:, 0]).any()
    # relaxation is there to be compared, not only the elastic response
    assert np.abs(expected[:, -1] - expected[:, 0]).max() > 0.01 * largest
    shown = view(integrator)
    for source in (0, len(expected) - 1):
        choose(shown, "Unit source", source)
        for number, (x, y) in enumerate(PLACES):
            choose(shown, "km east", x)
            choose(shown, "km north", y)
            wanted = expected[source, :, number]
            shown.until(
                "Math.abs(document.querySelector('td[data-value]')?.dataset.value"
                f" - {float(wanted[0, 0])!r}) < {1e-9 * float(largest)!r}"
            )
            # the errors are read after the motion that is shown at once
            cells = "document.querySelectorAll('td[data-error]').length"
            shown.until(f"{cells} === {len(wanted)}")
            found = table(shown)
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11 * largest)
            np.testing.assert_allclose(errors(shown), wrong[source, :, number], 1e-9)
    choose(shown, "Displacement", 1)
    change = wanted - wanted[0]
    np.testing.assert_allclose(table(shown), change, rtol=0, atol=1e-9 * largest)
    grown = wrong[source, :, number] - wrong[source, 0, number]
    np.testing.assert_allclose(errors(shown), grown, rtol=1e-9, atol=1e-18)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_modes_that_were_not_read_add_less_than_is_said(
    view, client, campaigns, directory
):
    campaign = campaigns["spectral"]
    (path,) = directory.rglob(f"campaigns/{campaign.id}/greens.zarr")
    store: Any = zarr.open_group(path, mode="r")
    count = int(store["mode_count"][0])
    assert count >= 4
    said = view().run(
        "(async () => { const { Greens } = await import("
        "'/dashboard/physics/viscoelastic/greens.js');"
        f"const all = await Greens.open('/v1/campaigns/{campaign.id}/greens.zarr');"
        "const curve = await all.curve(0); return Array.from("
        "{ length: curve.count }, (_, known) => curve.missing(known)); })()"
    )
    weights = spectral_weights(
        store["recurrence"][0, :count],
        float(store["start_norm"][0]),
        float(store["shift"][0]),
        np.linspace(0.0, 2.0, 50) * YEAR,
    )
    modes = store["response"][0, :count]
    for known in range(2, count):
        left = np.einsum("tm,mni->tni", weights[:, known:], modes[known:])
        most = np.linalg.norm(left, axis=2).max()
        # nor is it said to be far more than it is
        assert most < said[known] < 30 * most


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_error_of_the_mesh_can_be_coloured(view):
    shown = view()
    choose(shown, "Colours", 4)
    legend = "document.querySelector('.ends').textContent"
    shown.until(f"{legend}.includes('estimated error')")
    most = float(shown.run(legend).split("error")[1].split()[0])
    choose(shown, "Colours", 3)
    length = float(shown.run(legend).split("length")[1].split()[0])
    # a few elements across the fault
    assert 0.005 * length < most < length


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_colours_and_slider_show_the_sampled_motion(view, client, campaigns):
    shown = view()
    choose(shown, "Colours", 2)
    click(shown, 0.6, 0.45)
    table(shown)
    where = [
        shown.run(f"Number(document.querySelector('[aria-label=\"km {name}\"]').value)")
        for name in ("east", "north")
    ]
    up = sampled(client, campaigns["spectral"], [where])[0, :, 0, 2]
    most = shown.run("document.querySelector('.ends span:nth-child(3)').textContent")
    most = float(most.split()[0])
    for step, value in enumerate(up):
        shown.run(
            "(() => { const t = document.querySelector('#time');"
            f"t.value = {step}; t.dispatchEvent(new Event('input')); }})()"
        )
        assert shown.run("document.querySelectorAll('tr[aria-current]').length") == 1
        colour = shown.run(
            "(() => { const c = document.querySelector('.map canvas');"
            "const p = c.getContext('2d').getImageData(Math.floor(c.width * 0.6),"
            " Math.floor(c.height * 0.45), 1, 1).data; return [...p].slice(0, 3); })()"
        )
        scale = shown.run(
            "[...document.querySelectorAll('.colours rect')]"
            ".map((r) => r.getAttribute('fill').match(/\\d+/g).map(Number))"
        )
        distance = np.abs(np.array(scale) - colour).sum(axis=1)
        wanted = 255 * (value / most + 1) / 2
        # the pixel's centre is up to half of one away, and the end has three digits
        assert abs(int(distance.argmin()) - wanted) <= 3


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_click_picks_the_unit_source_where_that_is_asked_for(view):
    shown = view()
    choose(shown, "A click", 1)
    places = shown.run(
        "(() => { const m = document.querySelector('.map svg').viewBox.baseVal;"
        "return [...document.querySelectorAll('.map circle.source:not(.chosen)')].map("
        "(c) => [c.getAttribute('cx') / m.width,"
        " c.getAttribute('cy') / m.height]); })()"
    )
    click(shown, *places[-1])
    chosen = "document.querySelector('.choices select').selectedOptions[0].textContent"
    number = int(shown.until(chosen).split()[0])
    # each place has a source of strike slip and one of dip slip
    assert places[number // 2] == pytest.approx(places[-1])
    assert number % 2 == 0 != number


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [375, 1280])
def test_it_is_readable_on_any_screen(view, dark, width):
    shown = view(width=width, dark=dark)
    choose(shown, "km east", 5)
    choose(shown, "km north", 5)
    table(shown)
    assert shown.run("document.documentElement.scrollWidth - innerWidth") <= 0
    assert shown.run(CONTRAST) == []
    names = shown.run(
        "[...document.querySelectorAll('main input, main select, main button')]"
        ".filter((e) => !e.labels?.length && !e.textContent).length"
    )
    assert names == 0, "a control has no name"
    assert violations(shown) == []
    shown.run("document.querySelector('#time').focus()")
    for kind in ("keyDown", "keyUp"):
        shown.call(
            "Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight",
            windowsVirtualKeyCode=39,
        )  # fmt: skip
    shown.until("document.querySelector('output').value.startsWith('0.27')")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("array", ["response", "node_x", "recurrence"])
def test_a_lost_file_is_an_error_and_no_number(
    browser, client, campaigns, directory, array
):
    campaign = campaigns["spectral"]
    (store,) = directory.rglob(f"campaigns/{campaign.id}/greens.zarr")
    lost, aside = store / array / "c", store / array / "aside"
    lost.rename(aside)
    try:
        shown = browser.page(f"{client.url}/#/workers")
        # what other tests have read is still right
        shown.call("Network.enable")
        shown.call("Network.setCacheDisabled", cacheDisabled=True)
        shown.run(f"location.hash = '#/campaigns/{campaign.id}/greens'")
        shown.until("document.querySelectorAll('main [role=alert]').length > 0")
        assert "fsck" in shown.text() or array in shown.text()
        assert shown.run("document.querySelectorAll('td[data-value]').length") == 0
        shown.close()
    finally:
        aside.rename(lost)


def scrubbed(shown, frames=20):
    """Return the median ms of this page's own code for one frame of the slider."""
    return shown.run(
        "(() => { const t = document.querySelector('#time'), took = [];"
        f"for (let i = 0; i < {frames}; i += 1) {{ t.value = i % 4;"
        "const from = performance.now(); t.dispatchEvent(new Event('input'));"
        "took.push(performance.now() - from); }"
        f"return took.sort((a, b) => a - b)[{frames // 2}]; }})()"
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_frame_draws_only_what_moves(view):
    """The slider moves one line of the series; sources and coast stay as drawn."""
    shown = view()
    choose(shown, "km east", 5)
    choose(shown, "km north", 5)
    table(shown)
    shown.run(
        "window.before = [document.querySelector('.map .source'),"
        " document.querySelector('.series path')]; 0"
    )
    # generous: a loaded machine without a graphics processor
    assert scrubbed(shown) < 150
    same = (
        "before[0] === document.querySelector('.map .source') &&"
        " before[1] === document.querySelector('.series path')"
    )
    assert shown.run(same)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_source_is_coloured_by_what_it_does_at_a_place(view, client, campaigns):
    shown = view()
    choose(shown, "Colours", 2)
    choose(shown, "km east", PLACES[0][0])
    choose(shown, "km north", PLACES[0][1])
    shown.run("document.querySelector('input[type=checkbox]').click()")
    shown.until("document.querySelector('.map .source[fill]') !== null")
    up = sampled(client, campaigns["spectral"], PLACES[:1])[::2, :, 0, 2]
    at_once = up[:, 0] / np.abs(up).max()
    fills = shown.run(
        "[...document.querySelectorAll('.map .source[fill]')]"
        ".map((c) => c.getAttribute('fill').match(/\\d+/g).map(Number))"
    )
    scale = shown.run(
        "[...document.querySelectorAll('.colours rect')]"
        ".map((r) => r.getAttribute('fill').match(/\\d+/g).map(Number))"
    )
    assert len(fills) == len(up)
    for colour, share in zip(fills, at_once, strict=True):
        found = np.abs(np.array(scale) - colour).sum(axis=1).argmin()
        assert abs(int(found) - 255 * (share + 1) / 2) <= 1
    most = f"{np.abs(up).max():.2e}".split("e", maxsplit=1)[0]
    text = shown.run("document.querySelector('.ends + .sub + .sub').textContent")
    assert most[:3] in text or f"{np.abs(up).max():.3g}" in text


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_campaigns_are_compared_as_the_service_samples_them(
    view, client, campaigns
):
    both = [sampled(client, campaigns[name], PLACES) for name in INTEGRATORS]
    largest = np.abs(both[0]).max()
    shown = view("spectral")
    choose(shown, "km east", PLACES[0][0])
    choose(shown, "km north", PLACES[0][1])
    choose(shown, "Compare with", 1)
    shown.until("!document.querySelector('.choices label:last-child').hidden")
    for which, wanted in ((0, both[0]), (1, both[1]), (2, both[0] - both[1])):
        choose(shown, "Shown", which)
        want = wanted[0, :, 0]
        close = (
            "Math.abs([...document.querySelectorAll('td[data-value]')].at(-1)"
            f"?.dataset.value - {float(want[-1, -1])!r}) < {1e-9 * float(largest)!r}"
        )
        shown.until(close)
        np.testing.assert_allclose(table(shown), want, rtol=0, atol=1e-9 * largest)
