"""The report: one page on its own, with the right numbers and honest caveats."""

import csv
import json
import re

import numpy as np
import pytest
from example_result import example_result, two_solutions

from afterslip.exports import write_slip
from afterslip.report import write_report
from afterslip.report.caveats import caveats
from afterslip.report.methods import methods
from afterslip.report.page import (
    applicable,
    headline,
    model_facts,
    render,
)
from afterslip.report.tables import station_rows, write_fit
from afterslip.result import fit_by_dataset, open_result
from afterslip.units import power_of_ten


@pytest.fixture(scope="module")
def result():
    return example_result()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, result):
    folder = tmp_path_factory.mktemp("report") / "made" / "on the way"
    write_report(folder, result)
    return folder


def page(result, **attrs):
    """Render without figures, which takes no time."""
    return render(result.assign_attrs(attrs), [])


def test_the_page_needs_no_other_file(folder, result):
    html = (folder / "report.html").read_text()
    sources = re.findall(r'src="([^"]{0,30})', html)
    assert len(sources) == len(applicable(result))
    assert all(s.startswith("data:image/png;base64,") for s in sources)
    assert "http" not in re.sub(r"base64,[^\"]*", "", html)
    assert "<script" not in html


def test_every_figure_is_also_a_file(folder, result):
    for name, *_ in applicable(result):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_headline_is_what_the_result_says(result):
    html = page(result)
    attrs = result.attrs
    assert f"Mw {attrs['magnitude']:.2f}" in html
    assert "36.0 m" in html
    assert f"{100 * attrs['variance_reduction']:.1f} %" in html
    assert "2.4 ± 0.31" in html
    assert "Score of 5 folds" in html


def test_the_place_of_the_largest_slip_is_reported_in_the_frame_s_words(result):
    geographic = {n: r for n, _, r in headline(result)}["Largest slip"]
    assert re.fullmatch(r"38\.\d\d°N 143\.\d\d°E, 11 km deep", geographic)
    local = headline(example_result(geographic=False))[1][2]
    assert re.fullmatch(r"x \d+ km, y -?\d+ km, 11 km deep", local)


def test_names_cannot_smuggle_markup_into_the_page(result):
    html = page(result, campaign_name="<script>alert(1)</script>")
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_spec_given_apart_is_shown_where_the_result_has_none(result):
    bare = result.copy()
    bare.attrs = {k: v for k, v in result.attrs.items() if k != "spec"}
    assert "along_strike" not in render(bare, [])
    assert "along_strike" in render(bare, [], campaign=json.loads(result.attrs["spec"]))


def test_a_result_with_only_what_must_be_there_has_a_page(result):
    needed = ("moment", "magnitude", "peak_slip", "variance_reduction")
    bare = result.drop_vars("slip_sigma")
    bare.attrs = {k: result.attrs[k] for k in needed}
    html = render(bare, [])
    assert "Mw" in html
    assert "Score" not in html


def test_what_is_no_result_makes_no_files(tmp_path, result):
    with pytest.raises(ValueError, match="fault_slip is missing"):
        write_report(tmp_path / "r", result.drop_vars("fault_slip"))
    assert not (tmp_path / "r").exists()


def test_solver_facts_come_from_the_store_where_the_result_lacks_them(result):
    bare = result.copy()
    bare.attrs = {k: v for k, v in result.attrs.items() if k != "solver"}
    greens = result.assign(residual=("source", np.full(144, 3e-9)))
    greens.attrs = {"integrator": "stepping"}
    rows = dict(model_facts(bare, greens))
    assert rows["Largest relative residual of a solve"] == "3.00 × 10⁻⁹"
    assert rows["Integrator"] == "stepping"


def test_keys_of_the_spec_in_doubts_are_set_as_code(result):
    html = page(result, warnings=json.dumps(["`a: <b>` of an inversion helps"]))
    assert "<li><code>a: &lt;b&gt;</code> of an inversion helps</li>" in html


def test_doubts_name_what_the_data_cannot_see(result):
    blind = result.assign(resolution=("source", np.full(144, 0.1)))
    text = " ".join(caveats(blind))
    assert "100 % of the slip lies where the resolution is below 0.5" in text
    assert "The largest slip stands where the resolution is only 0.10" in text


def test_doubts_name_slip_at_the_border_and_a_choice_at_the_border(result):
    moved = result.copy()
    slip = np.zeros((result.sizes["fault_node"], 2))
    slip[result["fault_down"].values > 200e3, 1] = 4.0
    moved["fault_slip"] = (("fault_node", "slip_component"), slip)
    moved.attrs = result.attrs | {"smoothness": 1000.0}
    text = " ".join(caveats(moved))
    assert "Slip is large at the bottom edge" in text
    assert "The largest smoothness that was tried was chosen" in text


def test_doubts_name_stations_that_are_not_fitted(result):
    off = result.copy(deep=True)
    off["observed"][3] += 10.0
    name = str(result["station"].values[int(result["obs_station"][3])])
    assert any(name in s and "four standard deviations" in s for s in caveats(off))


def test_a_clean_result_has_no_doubts(result):
    clean = result.assign(
        resolution=("source", np.full(144, 0.9)), observed=result["predicted"]
    )
    clean.attrs = {k: v for k, v in result.attrs.items() if k != "warnings"}
    assert caveats(clean) == []
    assert "Nothing stands out" in render(clean, [])


def test_many_stations_are_cut_to_those_fitted_worst(result):
    rows, total = station_rows(result, most=5)
    assert (len(rows), total) == (5, 40)
    z = ((result.observed - result.predicted) / result.sigma).values
    worst = int(result["obs_station"].values[np.argmax(np.abs(z))])
    assert str(result["station"].values[worst]) in [row["name"] for row in rows]


def test_missing_components_are_blank_and_zero_has_no_sign(result):
    rows = {row["name"]: row for row in station_rows(result)[0]}
    assert rows["P09"]["observed"][:2] == ["", ""]
    values = [v for row in rows.values() for part in ("observed", "predicted", "z")
              for v in row[part]]  # fmt: skip
    assert "−0.000" not in values
    assert "−0.0" not in values


def test_the_slip_table_holds_every_node(folder, result):
    with (folder / "slip.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == result.sizes["fault_node"]
    size = [float(row["slip"]) for row in rows]
    assert max(size) == pytest.approx(result.attrs["peak_slip"], abs=1e-3)
    assert list(rows[0]) == ["lon", "lat", "depth_km", "strike", "dip", "slip"]
    assert float(rows[0]["depth_km"]) == pytest.approx(
        -result["fault_z"].values[0] / 1e3
    )


def test_the_slip_table_of_a_local_frame_is_in_km(tmp_path):
    path = write_slip(example_result(geographic=False), tmp_path / "slip.csv")
    assert path.read_text().startswith("x_km,y_km,depth_km,strike,dip,slip")


def test_the_fit_table_holds_every_datum(folder, result):
    with (folder / "data_fit.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == result.sizes["obs"]
    residual = [float(r["observed"]) - float(r["predicted"]) for r in rows]
    written = [float(row["residual"]) for row in rows]
    np.testing.assert_allclose(written, residual, atol=2e-5)


def test_tables_name_the_data_sets_of_two_solutions_of_a_station(tmp_path, result):
    both = two_solutions(result)
    rows, number = station_rows(both, most=1000)
    assert number == len(rows) == 2 * station_rows(result)[1]
    mine = [row for row in rows if row["name"] == "J000"]
    assert [row["dataset"] for row in mine] == ["first", "second"]
    assert mine[0]["observed"] != mine[1]["observed"]
    page = render(both, [])
    assert '<td class="text">second</td>' in page
    head = '<th rowspan="2" class="text">data set</th>'
    assert head in page
    single = np.full(result.sizes["obs"], "all", dtype=object)
    assert head not in render(result.assign(obs_dataset=("obs", single)), [])
    with write_fit(both, tmp_path / "fit.csv").open() as file:
        written = [row["dataset"] for row in csv.DictReader(file)]
    assert written == both["obs_dataset"].values.tolist()


def test_a_result_survives_the_file(tmp_path, result):
    result.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")
    again = open_result(tmp_path / "result.nc")
    assert caveats(again) == caveats(result)
    assert render(again, []) == render(result, [])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4.21e22, "4.21 × 10²²"),
        (8.1e-9, "8.10 × 10⁻⁹"),
        (0.0, "0"),
        (9.999e3, "1.00 × 10⁴"),
    ],
)
def test_powers_of_ten_are_written_as_in_print(value, text):
    assert power_of_ten(value) == text


def test_figures_follow_the_kinds_of_data(result):
    along = result.assign(obs_component=("obs", np.full(116, 3)))
    names = [name for name, *_ in applicable(along)]
    assert "scene_fit" in names
    assert "data_fit" not in names
    assert "Stations" not in render(along, [])
    assert "scene_fit" not in [name for name, *_ in applicable(result)]


def test_fit_is_reported_by_data_set_with_and_without_weights(result):
    n = result.sizes["obs"]
    split = result.assign(
        obs_dataset=("obs", np.where(np.arange(n) < 20, "land", "sea").astype(object))
    )
    first, second = fit_by_dataset(split)
    assert (first.name, first.count, second.count) == ("land", 20, n - 20)
    observed = result["observed"].values[:20]
    left = observed - result["predicted"].values[:20]
    sigma = result["sigma"].values[:20]
    assert first.variance_reduction_unweighted == pytest.approx(
        1 - (left**2).sum() / (observed**2).sum()
    )
    assert first.variance_reduction == pytest.approx(
        1 - ((left / sigma) ** 2).sum() / ((observed / sigma) ** 2).sum()
    )
    html = page(split, variance_reduction_unweighted=0.4321)
    assert "43.2 % without weights" in html
    assert f"{100 * first.variance_reduction_unweighted:.2f} %" in html


def test_origin_of_the_errors_and_what_was_estimated_beside_slip(result):
    fact = {
        "name": "land", "count": 9, "sigma_of_file": 4,
        "errors": {"floor": {"relative": 0.02}, "scale": 2.0, "sigma": {"los": 1}},
        "variogram": {"sigma": 0.01, "nugget": 0.002, "length": 7e3},
    }  # fmt: skip
    beside = {
        "unknown_value": ("unknown", [0.0123]),
        "unknown_name": ("unknown", np.array(["rate"], dtype=object)),
        "unknown_dataset": ("unknown", np.array(["land"], dtype=object)),
        "unknown_unit": ("unknown", np.array(["m/yr"], dtype=object)),
        "unknown_station": ("unknown", [3]),
        "unknown_component": ("unknown", [2]),
        "unknown_epoch": ("unknown", [np.nan]),
    }
    html = page(result.assign(beside), datasets=json.dumps([fact]))
    assert "4 of 9 from the file, 5 from sigma" in html
    assert "floor: relative 0.02; scale: 2" in html
    assert "length 7 km" in html
    assert "0.0123 m/yr" in html
    assert f'<td class="text">{result["station"].values[3]}</td>' in html


def test_slip_at_the_ground_is_not_at_minus_zero(result):
    flat = result.assign(fault_z=result["fault_z"] * 0.0)
    assert headline(flat)[1][2].endswith("at the surface")
    assert "-0 km" not in page(flat)


def test_times_of_the_spec_stand_as_people_write_them(result):
    spec = {"times": {"until": "157788000.0 s", "output": ["0.0 s", "2592000.0 s"]}}
    page = render(result.assign_attrs(spec=json.dumps(spec)), [])
    assert "until: 5 yr" in page
    assert "30 d" in page
    assert "157788000" not in page


def test_methods_say_the_numbers_of_the_result(result):
    spec = json.loads(result.attrs["spec"])
    spec["model"]["layers"] = [
        {"name": "crust", "bottom": 30},
        {"name": "mantle", "rheology": {"maxwell": {"viscosity": 1e19}}},
    ]
    spec["datasets"] = [{"name": "gnss", "file": "sha256:" + "1" * 64}]
    request = {"datasets": ["gnss", "seafloor"], "sign": {"dip": "positive"}}
    html = page(
        result,
        spec=json.dumps(spec),
        request=json.dumps(request),
        variance_factors=[1.5, 0.25],
        effective_draws=812.3,
        magnitude_interval=[8.7, 8.9],
        greens_digest="sha256:" + "2" * 64,
    )
    for words in (
        "144 unit sources: 12 by 6 bicubic B-splines of strike and dip slip on main",
        "16,310 elements and 68,412 unknowns in 2 layers and bodies",
        "mantle (maxwell) flow",
        "96 of gnss, 20 of seafloor",
        "factors (gnss 1.5, seafloor 0.25)",
        "1 times the squared Laplacian of slip",
        "Dip slip was positive.",
        "812 of them effective",
        "Mw 8.81 (8.70 to 8.90)",
    ):
        assert words in html.replace("&#39;", "'"), words
    for digest in ("1" * 64, "2" * 64, "0" * 64):
        assert f"sha256:{digest}" in html
    assert "datasets gnss" in html


def test_methods_leave_out_what_a_result_does_not_know(result):
    bare = result.drop_attrs(deep=False).assign_attrs(
        {k: result.attrs[k] for k in ("magnitude", "moment", "peak_slip")},
        variance_reduction=0.5,
    )
    said = methods(bare)
    assert said.startswith("Slip is a sum of 144 unit sources.")
    assert "None" not in said
    assert "nan" not in said


def test_only_the_average_of_the_largest_slip_has_limits(result):
    said = {"peak_slip_average": 30.0, "peak_slip_length": 40e3}
    drawn = result.assign_attrs(said, peak_slip_interval=[27.0, 33.0])
    value = {n: v for n, v, _ in headline(drawn)}["Largest slip"]
    assert value == "36.0 m, mean over 40 km 30.0 m (27.0 to 33.0)"
    assert "the largest slip, 36 m, has no interval" in " ".join(caveats(drawn))
    assert "Intervals are those of one earth" in " ".join(caveats(drawn))
    # and how often they hold rough slip, with what measured it
    assert "potency of 72 %" in " ".join(caveats(drawn))
    assert "examples/synthetic/study.py" in " ".join(caveats(drawn))
    request = json.loads(drawn.attrs.get("request", "{}"))
    request["model_error"] = {"campaigns": [["a", "b"], ["c"]]}
    drawn.attrs["request"] = json.dumps(request)
    assert "count the 3 other earths" in " ".join(caveats(drawn))
    assert "one earth" not in " ".join(caveats(drawn))
    # limits of the largest slip itself, as older results hold them, are left out
    older = result.assign_attrs(peak_slip_interval=[27.0, 33.0])
    assert {n: v for n, v, _ in headline(older)}["Largest slip"] == "36.0 m"
