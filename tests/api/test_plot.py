"""Figures: what they show, that nothing collides, that no window is touched."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from example_result import example_result
from matplotlib.collections import EllipseCollection, TriMesh

from afterslip import plot
from afterslip.plot import choice, fit, maps, section, series, slip, style
from afterslip.plot.record_section import apart
from afterslip.plot.resolution import on_nodes

HERE = Path(__file__).parent
FIGURES = [
    plot.slip_map, plot.data_fit, plot.misfit, plot.time_series, plot.resolution,
    plot.cv_curve,
]  # fmt: skip


@pytest.fixture(scope="module")
def result():
    return example_result()


def with_data(result, kind, rows):
    """Keep only some rows of the data."""
    return result.isel(obs=rows).assign(obs_type=("obs", np.array(kind)[rows]))


def steep(result):
    """Turn the fault upright, slipping along strike."""
    sideways = np.stack([result["fault_slip"][:, 1], 0 * result["fault_slip"][:, 0]], 1)
    updip = np.tile([-0.08, 0.0, 0.997], (result.sizes["fault_node"], 1))
    return result.assign(
        fault_slip=(("fault_node", "slip_component"), sideways),
        fault_updip=(("fault_node", "component"), updip),
    )


def one_family(result):
    return result.isel(cv_point=result["cv_sparsity"].values == 0.0).assign_attrs(
        sparsity=0.0
    )


def unchosen(result):
    return result.isel(cv_point=[3]).assign(cv_score=("cv_point", [np.nan]))


def land_only(result):
    keep = result["obs_type"].values == "gnss"
    return with_data(result, result["obs_type"].values, keep)


def no_slip(result):
    return result.assign(fault_slip=0.0 * result["fault_slip"])


def one_component(result):
    return result.isel(source=result["source_component"].values == 1)


def mesh_errors(result):
    """Give the mesh errors of a tenth of the largest displacement."""
    found = np.full(result.sizes["obs"], 0.1 * float(abs(result["observed"]).max()))
    shares = json.dumps({"space_error": {"elastic": 0.074, "change": 0.147}})
    return result.assign(model_sigma=("obs", found)).assign_attrs(solver=shares)


def two_epochs(result):
    later = result.copy()
    later["obs_epoch"] = later["obs_epoch"] + 1.0
    return xr.concat(
        [result, later], "obs", data_vars="minimal", coords="minimal", compat="override"
    )


def scene(result):
    """Replace the data by an interferogram of 60 by 40 pixels."""
    base = result.drop_dims(["station", "obs"])
    lon, lat = (g.ravel() for g in np.meshgrid(np.linspace(139.5, 142, 60),
                                               np.linspace(36, 41, 40)))  # fmt: skip
    base = base.assign_coords(station=[f"p{i}" for i in range(2400)])
    for name, value in (("lon", lon), ("lat", lat), ("x", lon), ("y", lat)):
        base[f"station_{name}"] = ("station", value)
    wave = 1.4 * np.exp(-((142.5 - lon) ** 2) - (lat - 38.3) ** 2)
    noise = 0.03 * np.random.default_rng(0).standard_normal(2400)
    base["observed"] = ("obs", wave + noise)
    base["predicted"] = ("obs", wave)
    base["sigma"] = ("obs", np.full(2400, 0.03))
    base["obs_station"] = ("obs", np.arange(2400))
    base["obs_component"] = ("obs", np.full(2400, 3))
    base["obs_type"] = ("obs", np.full(2400, "insar"))
    base["obs_dataset"] = ("obs", np.full(2400, "track 401 down"))
    base["obs_epoch"] = ("obs", np.zeros(2400))
    return base


CASES = {
    "scene": scene,
    "as it is": lambda r: r,
    "local": lambda _: example_result(geographic=False),
    "steep": steep,
    "one family": one_family,
    "unchosen": unchosen,
    "land only": land_only,
    "no slip": no_slip,
    "one component": one_component,
    "two epochs": two_epochs,
    "mesh errors": mesh_errors,
}


def shown_texts(figure):
    """Visible texts with their boxes on the paper, in pixels."""
    from matplotlib.text import Text

    renderer = figure.canvas.get_renderer()
    hidden = set()
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-6 * (high - low)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            if not low - slack <= tick.get_loc() <= high + slack:
                hidden |= {tick.label1, tick.label2}
    texts = [
        t
        for t in figure.findobj(Text)
        if t.get_visible() and t.get_text().strip() and t not in hidden
    ]
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in texts]
    return [(t, b) for t, b in boxes if b.width > 1]


def clashes(figure):
    """Pairs of texts that lie on each other."""
    found = shown_texts(figure)
    pairs = []
    for i, (a, first) in enumerate(found):
        for b, second in found[i + 1 :]:
            wide = min(first.x1, second.x1) - max(first.x0, second.x0)
            high = min(first.y1, second.y1) - max(first.y0, second.y0)
            if wide > 2 and high > 2:
                pairs.append((a, b))
    return pairs


PAIRS = [
    *((draw, "as it is") for draw in FIGURES),
    *((plot.slip_map, case) for case in ("local", "steep", "no slip")),
    *((plot.data_fit, case) for case in ("local", "land only", "two epochs")),
    (plot.misfit, "land only"),
    (plot.scene_fit, "scene"),
    (plot.slip_map, "scene"),
    *((plot.resolution, case) for case in ("steep", "one component")),
    *((plot.cv_curve, case) for case in ("one family", "unchosen")),
]


@pytest.mark.parametrize(("draw", "case"), PAIRS)
def test_no_text_lies_on_another_or_is_cut_off(result, draw, case):
    figure = draw(CASES[case](result))
    figure.canvas.draw()
    assert clashes(figure) == []
    page = figure.bbox
    cut = [
        text
        for text, box in shown_texts(figure)
        if box.x0 < -1 or box.y0 < -1 or box.x1 > page.x1 + 1 or box.y1 > page.y1 + 1
    ]
    assert cut == []
    width, height = figure.get_size_inches()
    assert width <= style.WIDTH + 0.01
    assert height < 11.5


def test_drawing_touches_neither_pyplot_nor_the_settings():
    code = (
        "import matplotlib as m, sys; before = m.rcParams.copy()\n"
        "from afterslip import plot\n"
        "from example_result import example_result\n"
        "plot.misfit(example_result())\n"
        "assert dict.__eq__(m.rcParams, before)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=HERE)


def test_arrows_show_the_motion_of_the_hanging_wall(result):
    # pure reverse slip on a fault that dips west: the hanging wall moves east
    pure = result.copy()
    pure["fault_slip"] = (("fault_node", "slip_component"), [[0.0, 1.0]] * 1568)
    east, north = slip.horizontal_slip(pure).T
    dip = np.arcsin(pure["fault_updip"].values[:, 2])
    np.testing.assert_allclose(np.hypot(east, north), np.cos(dip), rtol=1e-12)
    assert (east > 0.8).all()


def test_the_colour_scale_holds_the_peak_and_ends_at_a_round_value(result):
    figure = plot.slip_map(result)
    (mesh,) = [c for c in figure.axes[0].collections if isinstance(c, TriMesh)]
    assert mesh.get_clim() == (0.0, 40.0)
    drawn = mesh.get_array()
    assert drawn is not None
    assert drawn.max() == pytest.approx(result.attrs["peak_slip"])


def test_the_map_is_true_to_scale(result):
    frame = maps.map_frame(result)
    assert frame.stretch == pytest.approx(1 / np.cos(np.radians(38.5)), rel=0.01)
    figure = plot.slip_map(result)
    figure.canvas.draw()
    ax = figure.axes[0]
    west, east, south, north = frame.extent
    box = ax.get_window_extent()
    km_across = (east - west) * 111.2 / frame.stretch
    km_up = (north - south) * 111.2
    assert box.width / km_across == pytest.approx(box.height / km_up, rel=0.01)


@pytest.mark.parametrize("case", ["as it is", "local", "steep"])
def test_colour_bar_stands_beside_the_map_and_labels_beside_symbols(result, case):
    figure = plot.slip_map(CASES[case](result))
    figure.canvas.draw()
    *axes, bar = figure.axes
    boxes = [ax.get_window_extent() for ax in axes]
    gap = bar.get_window_extent().x0 - max(box.x1 for box in boxes)
    assert 0 < gap < 0.045 * figure.bbox.width
    assert np.ptp([box.x0 for box in boxes]) < 0.01 * figure.bbox.width
    written = [(ax, t) for ax in axes for t in ax.texts if t.get_text().isdigit()]
    assert len(written) >= 3
    for ax, text in written:
        box = text.get_window_extent().padded(2)
        for line in ax.lines:  # stations, the peak and the borders
            x, y = ax.transData.transform(line.get_xydata()).T
            on = (box.x0 < x) & (x < box.x1) & (box.y0 < y) & (y < box.y1)
            assert not on.any(), (text.get_text(), line.get_label())


def test_maps_show_the_error_of_the_mesh_where_it_was_estimated(result):
    def rings(figure):
        """Diameters of the ellipses on the first map, m in the arrows' scale."""
        found = [c for c in figure.axes[0].collections
                 if isinstance(c, EllipseCollection)]  # fmt: skip
        return [float(np.max(c.get_widths())) for c in found]

    without = result.drop_vars("model_sigma", errors="ignore")
    with_errors = mesh_errors(result)
    texts = [t for t, _ in shown_texts(plot.slip_map(with_errors))]
    assert any("mesh error of displacements: elastic 7.4%" in t for t in texts)
    legend = [t for t, _ in shown_texts(plot.data_fit(with_errors))]
    assert "95 % error of the mesh" in legend
    ours, theirs = rings(plot.data_fit(with_errors)), rings(plot.data_fit(without))
    assert max(ours) > 2.0 * max(theirs)
    assert "95 % error of the mesh" not in [
        t for t, _ in shown_texts(plot.data_fit(without))
    ]


def test_a_far_station_does_not_shrink_the_map(result):
    far = result.copy(deep=True)
    far["station_lon"][0], far["station_lat"][0] = 13.4, 52.5
    frame = maps.map_frame(far)
    assert frame.shown().sum() == result.sizes["station"] - 1
    assert frame.extent == pytest.approx(maps.map_frame(result).extent, abs=0.3)


def test_steep_faults_are_also_drawn_in_their_plane(result):
    assert section.steep_faults(result) == []
    assert section.steep_faults(steep(result)) == [0]
    titles = [ax.get_title(loc="left") for ax in plot.slip_map(steep(result)).axes]
    assert "In the plane of fault 1" in titles


def test_crowded_stations_are_thinned_evenly_and_the_rest_counted():
    base = example_result()
    rng = np.random.default_rng(1)
    n = 600
    crowd = base.drop_dims(["station", "obs"]).assign_coords(
        station=[f"S{i}" for i in range(n)]
    )
    lon, lat = rng.uniform(139, 142, n), rng.uniform(35, 41, n)
    for name, value in (("lon", lon), ("lat", lat), ("x", lon), ("y", lat)):
        crowd[f"station_{name}"] = ("station", value)
    for name in ("observed", "predicted", "sigma"):
        crowd[name] = ("obs", rng.uniform(0.5, 1.0, n))
    crowd["obs_station"] = ("obs", np.arange(n))
    crowd["obs_component"] = ("obs", np.full(n, 2))
    crowd["obs_type"] = ("obs", np.full(n, "gnss"))
    crowd["obs_epoch"] = ("obs", np.zeros(n))
    figure = plot.data_fit(crowd)
    (legend,) = figure.legends
    drawn, of = legend.get_title().get_text().split(" of ")
    assert of == "600 stations are drawn"
    assert fit.MOST_ARROWS / 2 < int(drawn) <= fit.MOST_ARROWS


def test_land_and_sea_get_scales_of_their_own_only_where_needed():
    kind = np.array(["gnss"] * 5 + ["gnssa"] * 3)
    size = np.array([1.0] * 5 + [20.0] * 3)
    assert [p.sum() for p in fit._families(size, kind)] == [5, 3]
    assert [p.sum() for p in fit._families(np.ones(8), kind)] == [8]


def test_chosen_stations_hold_every_type_and_the_largest_motion(result):
    chosen = series.choose_stations(result)
    assert len(chosen) == len(set(chosen)) == 5
    size = np.linalg.norm(result["series"].values[[0, -1]], axis=2).sum(axis=0)
    assert result["station"].values[np.argmax(size)] in chosen
    kinds = dict(zip(result["station"].values, maps.station_kinds(result), strict=True))
    assert {kinds[name] for name in chosen} == {"gnss", "gnssa", "obp"}


def test_an_unknown_station_is_named(result):
    with pytest.raises(ValueError, match="no such station: NOWHERE"):
        plot.time_series(result, ["NOWHERE"])


def test_zero_smoothness_has_a_place_left_of_all_others():
    at = choice._positions(np.array([0.0, 0.01, 1.0, 100.0]))
    np.testing.assert_allclose(at, [-4.0, -2.0, 0.0, 2.0])


def test_the_choice_is_marked_where_the_score_is_least(result):
    ax = plot.cv_curve(result).axes[0]
    (star,) = [line for line in ax.lines if line.get_marker() == "*"]
    assert np.asarray(star.get_ydata())[0] == result["cv_score"].values.min()


def test_values_of_sources_spread_over_the_fault_exactly_where_linear(result):
    linear = result["source_position"].values @ [1e-6, 2e-6, 0.0] + 3.0
    flat = result.assign(resolution=("source", 0 * linear + 0.7))
    np.testing.assert_allclose(np.asarray(on_nodes(flat, "resolution", 1)), 0.7)
    assert on_nodes(result.isel(source=slice(0, None, 2)), "resolution", 1) is None


@pytest.mark.parametrize(
    ("largest", "step"), [(36.0, 5.0), (1.99, 0.5), (0.03, 0.005), (0.0, 1.0)]
)
def test_steps_are_round(largest, step):
    assert style.nice_step(largest) == pytest.approx(step)


def test_line_of_sight_data_have_a_figure_of_their_own(result):
    with pytest.raises(ValueError, match="no line-of-sight data"):
        plot.scene_fit(result)


def test_a_value_of_sources_is_right_at_their_centres_and_flat_beyond(result):
    i, j = result["source_patch"].values[::2].T
    along = result.assign(resolution=("source", np.repeat(i.astype(float), 2)))
    cell = 440e3 / 12
    expected = np.clip(result["fault_along"].values / cell - 0.5, 0.0, 11.0)
    np.testing.assert_allclose(
        np.asarray(on_nodes(along, "resolution", 0)), expected, atol=1e-9
    )
    one_row = along.isel(source=np.repeat(j == 0, 2))
    np.testing.assert_allclose(
        np.asarray(on_nodes(one_row, "resolution", 0)), expected, atol=1e-9
    )


def test_the_border_of_a_fault_is_its_rectangle_not_the_mesh(result):
    smaller = result.assign(fault_length=("fault", [220e3]))
    for fault, length in ((result, 440.0), (smaller, 220.0)):
        (line,) = maps.map_frame(fault.drop_vars(["fault_lon"])).borders.values()
        top = line[: len(line) // 4]
        assert np.hypot(*np.diff(top, axis=0).T).sum() == pytest.approx(
            length, rel=0.02
        )


def test_labels_of_a_record_section_are_apart_and_near_their_traces():
    places = np.array([1.0, 5.0, 5.1, 5.15, 9.0, 9.4])
    moved = apart(places, 0.5)
    assert (np.diff(moved) >= 0.5 - 1e-12).all()
    assert moved[0] == 1.0
    np.testing.assert_allclose(moved[1:4].mean(), places[1:4].mean())
    np.testing.assert_allclose(apart(places, 0.01), places)
