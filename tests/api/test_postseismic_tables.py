"""Tables of the Tohoku-oki example that come from outside, on tables made here."""

import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "tohoku2011"))
from postseismic_data import SETS, MissingDataError, folder_of, series, thinned, totals

ORIGIN = (142.4, 38.3)
EVENT = date(2011, 3, 11)


def test_missing_tables_are_named_with_where_to_get_them(tmp_path):
    with pytest.raises(MissingDataError) as caught:
        folder_of(None)
    for name, where in SETS.items():
        assert f"{name}: {where}" in str(caught.value)
    (tmp_path / "tohoku_gnss").mkdir()
    for name in SETS:
        (tmp_path / "tohoku_gnss" / name).touch()
    assert folder_of(str(tmp_path)) == tmp_path / "tohoku_gnss"
    (tmp_path / "tohoku_gnss" / "daily_gnss_18.csv").unlink()
    with pytest.raises(MissingDataError, match=r"daily_gnss_18\.csv") as caught:
        folder_of(str(tmp_path))
    assert "watanabe" not in str(caught.value)


def test_one_site_of_a_square_is_taken_and_none_out_of_reach():
    near = {"station": "near", "lon": "141.0", "lat": "38.3"}
    beside = {"station": "beside", "lon": "141.01", "lat": "38.3"}
    other = {"station": "other", "lon": "140.0", "lat": "39.5"}
    far = {"station": "far", "lon": "130.6", "lat": "31.8"}
    left = thinned([near, beside, other, far], ORIGIN)
    assert len(left) == 2
    assert "other" in left
    assert "far" not in left


def test_series_lose_the_rate_before_the_event_and_begin_at_zero(tmp_path):
    """A rate of 36.525 mm/yr for ever, a step, and 2 mm a day for 20 days after it."""
    lines = ["station,date,east,north,up"]
    for day in range(-700, 400):
        after = 3.0 + 0.002 * min(max(day, 0), 20) if day > 0 else 0.0
        lines.append(f"A,{EVENT + timedelta(day)},{1e-4 * day + after:.6f},0,0")
    (tmp_path / "daily_gnss_18.csv").write_text("\n".join(lines))
    place = "station,lon,lat\nA,141.5,38.3\n"
    (tmp_path / "daily_gnss_18_stations.csv").write_text(place)
    oshika = "station,lon,lat,mjd,east,north,up\n"
    (tmp_path / "daily_J550_oshika_ngl.csv").write_text(oshika)
    rows = [line.split(",") for line in series(tmp_path, ORIGIN)]
    east = [float(row[3]) for row in rows]
    # means of the days 1 to 5, 14 to 24 (its median is of day 19), and later
    assert east == pytest.approx([0.0, 0.032, 0.034, 0.034, 0.034], abs=1e-4)
    years = [float(row[-1]) for row in rows]
    assert years == sorted(years)
    assert years[0] == pytest.approx(3.26 / 365.25, abs=1e-5)


def test_totals_are_relative_to_just_after_the_event(tmp_path):
    head = "station,lon,lat,east,north,up,sigma_e,sigma_n,sigma_u,type\n"
    line = "A,141.5,38.3,0.85,-0.3,0.3,,,,gnss_geonet\n"
    (tmp_path / "postseismic_gnss_1344d_zhang.csv").write_text(head + line)
    rows = [text.split(",") for text in totals(tmp_path, ["A"])]
    assert [[float(v) for v in row[3:6]] for row in rows] == [
        [0.0, 0.0, 0.0],
        [0.85, -0.3, 0.3],
    ]
    assert float(rows[1][-1]) == pytest.approx(1344 / 365.25, abs=1e-6)
