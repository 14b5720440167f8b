"""Tables of the Tohoku-oki example's far field, on sites made here."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "tohoku2011"))
from far_field import spec_of, write_offsets
from far_field_figure import Fit, bands, draw, table

from afterslip.spec import parse_campaign

HEAD = "station,lon,lat,east,north,up,sigma_e,sigma_n,sigma_u,type\n"


def test_every_site_is_written_and_far_ones_have_smaller_errors(tmp_path):
    land = (
        "NEAR,141.5,38.3,5.0,-1.0,,,,,gnss\nGUAM,144.87,13.59,0.002,0.001,0,,,,gnss\n"
    )
    (tmp_path / "coseismic_gnss_zhang.csv").write_text(HEAD + land)
    sea = "MYGI,142.917,38.081,22.0,-10.0,3.1,,,,gnssa\n"
    (tmp_path / "coseismic_seafloor_sato2011.csv").write_text(HEAD + sea)
    assert write_offsets(tmp_path, tmp_path / "out.csv") == {"land": 2, "sea": 1}
    with (tmp_path / "out.csv").open() as stream:
        rows = {row["station"]: row for row in csv.DictReader(stream)}
    assert rows["NEAR"]["up"] == ""
    # 2 cm and 2 % of 5.1 m
    assert float(rows["NEAR"]["sigma_e"]) == pytest.approx(0.104, abs=1e-3)
    assert float(rows["GUAM"]["sigma_e"]) == pytest.approx(0.004, abs=1e-4)
    assert float(rows["MYGI"]["sigma_u"]) == pytest.approx(0.698, abs=1e-3)
    assert rows["MYGI"]["type"] == "gnssa"


@pytest.mark.parametrize("shape", ["sphere", "flat"])
def test_specs_of_both_earths_are_valid_and_differ_in_their_shape_alone(shape):
    spec = spec_of(shape)
    parsed = parse_campaign(spec)
    assert parsed.model.frame.shape == shape
    assert not any("rheology" in layer for layer in spec["model"]["layers"])
    other = spec_of("flat")
    spec["model"]["frame"].pop("shape")
    other["model"]["frame"].pop("shape")
    assert spec["model"] == other["model"]


def fit(predicted, on_flat):
    """Two sites at 200 km, two at 1,200 km, one at sea; a millimetre of error."""
    far = np.array([200.0, 200.0, 1200.0, 1200.0, 150.0])
    motion = np.repeat([[1.0, 0, 0], [0.02, 0, 0], [9.0, 0, 0]], [2, 2, 1], axis=0)
    return Fit(
        magnitude=9.0,
        interval=(8.9, 9.1),
        peak=40.0,
        n_unknowns=1000,
        distance=far,
        observed=motion,
        predicted=predicted * motion,
        on_flat=on_flat * motion,
        sigma=np.full((5, 3), 1e-3),
        land=far != 150.0,
    )


def test_bands_say_what_is_left_and_what_curvature_changes():
    near, far = bands(fit(0.9, 0.72))
    assert (near.name, near.count) == ("0-300", 2)
    assert (far.name, far.count) == ("1000-1500", 2)
    assert near.size == pytest.approx(1.0)
    assert near.rms == pytest.approx(0.1)
    # of two components one is fitted
    assert near.chi == pytest.approx(100.0 / 2**0.5)
    assert far.rms == pytest.approx(0.002)
    assert far.curvature == pytest.approx(0.2)
    found = {"sphere": fit(0.9, 0.72), "flat": fit(0.8, 0.8)}
    assert "| 1000-1500 | 2 | 20.0 | 2.0 | 4.0 | 1.41 | 2.83 | 20% |" in table(found)


def test_figure_has_both_earths():
    figure = draw(fit(0.9, 0.72), fit(0.8, 0.8))
    for axes in figure.axes:
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert len(labels) == 3
