"""What the view of waves draws are the numbers that Python reads of the store."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar
from wave_page import choose, distances, drawn_values, row_of

pytestmark = pytest.mark.slow

OPENED = (
    "const { Waves } = await import('/dashboard/physics/waves/waves.js');"
    "const waves = await Waves.open('/v1/campaigns/ID/greens.zarr');"
)
RAMP = ["2166ac", "67a9cf", "d1e5f0", "f7f7f7", "fddbc7", "ef8a62", "b2182b"]


def test_python_reads_a_store_as_its_page_says(wave_client, wave_campaigns, waves):
    page = (Path(__file__).parents[2] / "docs" / "waves.md").read_text()
    code = re.findall(r"```python\n(.*?)```", page, re.S)[0]
    url = f"{wave_client.url}/v1/campaigns/{wave_campaigns[0].id}/greens.zarr"
    names: dict[str, Any] = {}
    exec(code.replace("waves/greens.zarr", url).replace("S04", "C"), names)
    np.testing.assert_array_equal(names["velocity"], waves["seismogram"][3, 2, 2])
    kinds = waves["source_component"].values
    whole = sum(waves["displacement"].values[row] for row in np.flatnonzero(kinds == 1))
    np.testing.assert_allclose(names["later"], whole[..., 25], rtol=1e-6)


def test_lines_are_the_series_that_python_reads(wave_view, waves):
    shown = wave_view()
    row = row_of(waves, (0, 0), 0)
    far = distances(waves, [row])
    pixels = drawn_values(shown, waves["seismogram"].values[row][:, 2], far)
    # samples are evenly along time
    assert np.ptp(np.diff(pixels[0, :, 0])) < 0.21
    choose(shown, "Motion", "displacement")
    choose(shown, "Component", "east")
    choose(shown, "Unit source: along strike, down dip", "1, 0")
    choose(shown, "Slip", "along dip")
    shown.until("location.hash.includes('slip=dip&motion=displacement')")
    row = row_of(waves, (1, 0), 1)
    shown.until(f"location.hash.includes('source={row}')")
    far = distances(waves, [row])
    drawn_values(shown, waves["displacement"].values[row][:, 0], far)


def test_a_whole_fault_is_the_sum_of_its_unit_sources(wave_view, waves):
    shown = wave_view("?source=-1&slip=dip&motion=displacement&component=north")
    rows = np.flatnonzero(waves["source_component"].values == 1)
    series = waves["displacement"].values[rows].sum(axis=0)
    drawn_values(shown, series[:, 1], distances(waves, rows))
    assert shown.run("document.querySelectorAll('.record path.guide').length") == 0


def test_what_the_page_reads_are_the_numbers_of_python(
    wave_view, wave_campaigns, waves
):
    shown = wave_view()
    read = shown.run(
        f"(async () => {{ {OPENED.replace('ID', wave_campaigns[0].id)}"
        "const slip = waves.slips('dip')[1], of = (v) => Array.from(v);"
        "const ground = await waves.ground(slip, () => true);"
        "return { row: slip.rows[0],"
        "velocity: of(await waves.series(slip, 'velocity')),"
        "displacement: of(await waves.series(slip, 'displacement')),"
        "offset: of(await waves.offsets(slip)),"
        "up: of(waves.component(ground, 2, 'displacement')),"
        "rate: of(waves.component(ground, 0, 'velocity')), times: waves.times }; })()"
    )
    row = read["row"]
    assert row == row_of(waves, (1, 0), 1)
    for name, stored in [("velocity", "seismogram"), ("displacement",) * 2]:
        np.testing.assert_array_equal(read[name], waves[stored].values[row].ravel())
    np.testing.assert_array_equal(read["offset"], waves["offset"].values[row].ravel())
    field = waves["wavefield"].values[row].astype(float)
    np.testing.assert_array_equal(read["up"], field[:, :, 2].ravel())
    # as `SeriesReader.motion` finds velocities
    rate = CubicSpline(waves["sample"].values, field[:, :, 0], axis=-1)
    exact = rate(waves["sample"].values, 1)
    np.testing.assert_allclose(read["rate"], exact.ravel(), atol=2e-6 * exact.max())


def test_slopes_are_those_of_scipys_spline(wave_view):
    shown = wave_view()
    values = np.random.default_rng(3).normal(size=(3, 9))
    values[2] = np.arange(9.0) ** 3
    found = shown.run(
        "import('/dashboard/physics/waves/spline.js').then(({ slopes }) =>"
        f"Array.from(slopes({values.ravel().tolist()}, 9, 0.4)))"
    )
    exact = CubicSpline(0.4 * np.arange(9), values, axis=-1)(0.4 * np.arange(9), 1)
    np.testing.assert_allclose(found, exact.ravel(), rtol=1e-6, atol=1e-6)


def fastest(layers, depth, far):
    """s, by Fermat: where each leg of a ray crosses is varied until it is fastest."""
    tops = np.array([0.0, *(bottom for bottom, _ in layers[:-1])])
    speeds = np.array([speed for _, speed in layers])

    def one_way(p_speeds, thick, x):
        """The fastest way through slabs to x, from the angle in the fastest one."""
        most = p_speeds.max()

        def miss(angle):
            sines = np.sin(angle) / most * p_speeds
            return abs((thick * sines / np.sqrt(1 - sines**2)).sum() - x)

        grid = np.linspace(0.0, np.pi / 2 - 1e-7, 20001)
        start = grid[np.argmin([miss(a) for a in grid])]
        room = grid[1]
        best = minimize_scalar(
            miss, bounds=(max(0, start - room), min(grid[-1], start + room)),
            method="bounded", options={"xatol": 1e-13},
        )  # fmt: skip
        sines = np.sin(best.x) / most * p_speeds
        return (thick / np.sqrt(1 - sines**2) / p_speeds).sum()

    above = tops < depth
    ends = np.append(tops[1:], np.inf)
    thick = (np.minimum(ends, depth) - tops)[above]
    times = [one_way(speeds[above], thick, far)]
    for j in np.flatnonzero(tops > depth):
        # down to an interface, along it at its speed, and up: where it is met is varied
        down = (np.minimum(ends, tops[j]) - np.maximum(tops, depth)).clip(0)[:j]
        up = np.diff(tops)[:j]
        if speeds[j] <= speeds[:j].max():
            continue
        sines = speeds[:j] / speeds[j]
        there = (down * sines / np.sqrt(1 - sines**2)).sum()
        back = (up * sines / np.sqrt(1 - sines**2)).sum()
        if there + back > far:
            continue
        legs = ((down + up) / np.sqrt(1 - sines**2) / speeds[:j]).sum()
        times.append(legs + (far - there - back) / speeds[j])
    return min(times)


@pytest.mark.parametrize(
    ("layers", "depth"),
    [
        ([(40.0, 6.0)], 7.0),
        ([(2.0, 3.0), (12.0, 6.0)], 5.0),
        ([(2.0, 3.0), (12.0, 6.0)], 1.0),
        ([(3.0, 4.0), (8.0, 3.5), (20.0, 6.5), (40.0, 8.0)], 6.0),
    ],
)
def test_arrivals_are_those_of_the_fastest_way(wave_view, layers, depth):
    shown = wave_view()
    far = [0.5, 6.0, 25.0, 120.0]
    given = [{"bottom": bottom, "speed": speed} for bottom, speed in layers]
    found = shown.run(
        "import('/dashboard/physics/waves/arrivals.js').then(({ arrival }) =>"
        f"{far}.map((km) => arrival({json.dumps(given)}, {depth}, km)))"
    )
    exact = [fastest(layers, depth, x) for x in far]
    np.testing.assert_allclose(found, exact, rtol=2e-5)
    if len(layers) == 1:
        np.testing.assert_allclose(found, np.hypot(far, depth) / 6.0, rtol=1e-12)


def test_the_map_has_the_colours_of_the_ground(wave_view, waves):
    shown = wave_view("?motion=displacement&component=up&time=4&at=0,0,10&contrast=4")
    found: dict[str, Any] = shown.run(
        "(() => { const c = document.querySelector('.map canvas');"
        "const x = Math.round(0.4 * c.width), y = Math.round(0.55 * c.height);"
        "return { size: [c.width, c.height], at: [x, y], end: Number(document"
        ".querySelector('.ends span:last-child').textContent),"
        "rgb: [...c.getContext('2d').getImageData(x, y, 1, 1).data] }; })()"
    )
    (width, height), (x, y) = found["size"], found["at"]
    km = 10.0 / min(width, height)
    east, north = (x + 0.5 - width / 2) * km * 1e3, (height / 2 - y - 0.5) * km * 1e3
    field = waves["wavefield"].isel(source=row_of(waves, (0, 0), 0), component=2)
    value = float(field.sel(sample=4.0).interp(column=east, row=north))
    share = np.clip(0.5 * (1 + value / found["end"]), 0, 1)
    colours = np.array([[int(c[i : i + 2], 16) for i in (0, 2, 4)] for c in RAMP])
    wanted = [np.interp(6 * share, np.arange(7), colours[:, i]) for i in range(3)]
    assert abs(value) > 0.05 * found["end"]
    np.testing.assert_allclose(found["rgb"][:3], wanted, atol=3)
