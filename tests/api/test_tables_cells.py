"""Names in CSV files: no formulas for spreadsheets, and the same names read back."""

import csv

import numpy as np
import pytest
from example_result import example_result
from hypothesis import given
from hypothesis import strategies as st

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers.cells import guarded, restored
from afterslip.readers.observations import read_observations
from afterslip.readers.places import read_stations
from afterslip.readers.series import coseismic_offset, read_neu, write_offsets
from afterslip.report.tables import write_fit

LOCAL = Frame("local")
FORMULAS = ["=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(A1)", "'=1", "''", "＝1", "#N"]
NEU = "".join(f"{2011.10 + d / 365.25:.6f} 0 0 0 .001 .001 .001\n" for d in range(60))


@pytest.mark.parametrize("text", [*FORMULAS, "\t=1", "\r=1", "  =1"])
def test_what_begins_a_formula_stands_after_an_apostrophe(text):
    assert guarded(text) == f"'{text}"
    assert restored(guarded(text)) == text


@pytest.mark.parametrize("text", ["J550", "A-1", "St. John's", "", "3=4", "'quoted'"])
def test_other_names_are_read_as_they_stand(text):
    assert restored(text) == text


@given(st.text(max_size=12))
def test_every_text_comes_back(text):
    assert restored(guarded(text)) == text
    assert guarded(text).lstrip()[:1] not in set("=+-@")


@pytest.mark.parametrize("name", FORMULAS)
def test_offsets_of_a_station_come_back_under_its_name(tmp_path, name):
    series = read_neu(NEU.encode(), name, 141.5, 38.3)
    found = coseismic_offset(series, 2011.18, "10 d", "10 d")
    path = write_offsets([found], tmp_path / "offsets.csv")
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["station"] == f"'{name}"
    # numbers stay numbers, also those below zero
    assert float(row["lon"]) == pytest.approx(141.5)
    frame = Frame("geographic", 141.0, 38.0)
    assert read_observations(path.read_bytes(), frame).name == (name,)


def test_fit_of_stations_has_no_formulas(tmp_path):
    result = example_result()
    names = np.array(result["station"].values, dtype=object)
    names[: len(FORMULAS)] = FORMULAS
    path = write_fit(result.assign_coords(station=names), tmp_path / "fit.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    written = {row["station"] for row in rows}
    assert {f"'{name}" for name in FORMULAS} <= written
    assert not any(name[:1] in "=+-@" for name in written)
    assert any(row["residual"].startswith("-") for row in rows)


@pytest.mark.parametrize("name", ["A\x1bB", "A\x00B", "A\u202eB", "A" * 101])
def test_names_with_control_characters_are_refused(name):
    text = f"station,x_km,y_km\n{name},1,2\n".encode()
    with pytest.raises(SpecError):
        read_stations(text, LOCAL)
    with pytest.raises(SpecError, match="is no name of a station"):
        read_neu(NEU.encode(), name, 141.5, 38.3)
