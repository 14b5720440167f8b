"""Data sets become rows: what is missing is left out, what is observed is projected."""

from typing import cast

import numpy as np
import pytest
import xarray as xr

from afterslip.archive import GreensStore
from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers.observations import read_observations
from afterslip.spec.data import gather
from afterslip_common.terms import YEAR
from afterslip_workers.inverting.predict import (
    design_matrix,
    series_times,
    station_series,
)

LAND = b"""station,x_km,y_km,east,north,up,sigma_e,sigma_n,sigma_u,type
A,0,0,1.0,2.0,,0.1,0.1,0.1,gnss
B,10,0,3.0,4.0,5.0,0.1,0.2,0.3,gnss
"""
SEA = b"""station,x_km,y_km,east,north,up,sigma_e,sigma_n,sigma_u,type,time
P,20,5,9.0,9.0,0.5,0.1,0.1,0.2,obp,
B,10,0,0.1,0.2,0.3,0.1,0.1,0.1,gnssa,2.0
"""
RADAR = b"""station,x_km,y_km,los,sigma_los,los_e,los_n,los_u,type
px1,1,1,0.25,0.01,0.6,0.0,0.8,insar
"""


def read(content, epoch=0.0):
    return read_observations(content, Frame("local"), epoch=epoch)


def rows():
    tables = {"land": read(LAND), "sea": read(SEA, 30 * 86400.0), "radar": read(RADAR)}
    return gather([table.rows(name) for name, table in tables.items()])


class FakeStore:
    """Responses that name their source, time, place and component."""

    dataset = xr.Dataset({"response": ("source", np.zeros(2))})

    def sample(self, x, y, times):
        source = np.arange(1, 3)[:, None, None, None]
        when = np.asarray(times)[None, :, None, None] / YEAR
        where = (np.asarray(x) / 1e3 + np.asarray(y) / 1e4)[None, None, :, None]
        axis = np.array([1.0, 10.0, 100.0])
        return xr.DataArray(source * (1 + when) * (1 + where) * axis)


STORE = cast("GreensStore", FakeStore())


def test_missing_components_make_no_row():
    found = rows()
    assert found.stations == ("A", "B", "P", "px1")
    assert found.component.tolist() == [0, 1, 0, 1, 2, 2, 0, 1, 2, 3]
    assert found.station.tolist() == [0, 0, 1, 1, 1, 2, 1, 1, 1, 3]
    assert found.kind.tolist()[5] == "obp"
    assert found.dataset.tolist()[-1] == "radar"


def test_epoch_of_a_line_goes_before_that_of_its_data_set():
    found = rows()
    assert found.epoch[5] == pytest.approx(30 * 86400.0)
    assert found.epoch[6] == pytest.approx(2 * YEAR)
    assert found.epoch[0] == 0.0


def test_each_row_sees_its_place_its_time_and_its_direction():
    found = rows()
    G = design_matrix(STORE, found)
    assert G[:, 1] == pytest.approx(2 * G[:, 0])
    assert G[0, 0] == pytest.approx(1.0)  # A east at 0
    assert G[3, 0] == pytest.approx(10 * 11)  # B north at 0, x = 10
    assert G[7, 0] == pytest.approx(10 * 11 * 3)  # B north after two years
    # the satellite's view of px1: 0.6 east + 0.8 up
    assert G[9, 0] == pytest.approx((0.6 * 1 + 0.8 * 100) * (1 + 1.1))


def test_station_at_two_places_is_refused():
    moved = LAND.replace(b"B,10,0", b"B,10,7")
    with pytest.raises(SpecError, match="B: is a station in two, 7000 m from where"):
        gather([read(LAND).rows("one"), read(moved).rows("two")])


def test_series_begins_with_the_elastic_response_and_ends_with_the_curve():
    times = series_times(10 * YEAR)
    assert len(times) >= 40
    assert times[0] == 0.0
    assert times[-1] == pytest.approx(10 * YEAR)
    x, y = np.zeros(600), np.zeros(600)
    series = station_series(STORE, x, y, np.array([1.0, 0.5]), times)
    assert series.shape == (len(times), 600, 3)
    assert series[0, -1] == pytest.approx([2.0, 20.0, 200.0])
    assert series[-1, 0] == pytest.approx([22.0, 220.0, 2200.0])
