"""Places at which Green's functions are asked for through the client."""

from math import inf, nan
from types import SimpleNamespace
from typing import Any

import pytest

from afterslip.client.sampling import sample
from afterslip.errors import SpecError

# a request would need more of both
CAMPAIGN: Any = SimpleNamespace(id="c0", data={}, spec={"model": {}})
TRANSPORT: Any = None


@pytest.mark.parametrize(
    ("stations", "says"),
    [
        (
            {"A": (142.0, 38.0), "B": (1, nan)},
            "stations.B = [1.0, nan]: must be finite",
        ),
        (
            [{"name": "B", "x_km": inf, "y_km": 1}],
            "stations[0].B = [inf, 1.0]: must be finite numbers (x_km, y_km)",
        ),
    ],
)
def test_a_station_without_a_finite_position_is_named(stations, says):
    with pytest.raises(SpecError) as caught:
        sample(CAMPAIGN, TRANSPORT, stations, ["0 d"], 1000)
    assert str(caught.value).startswith(says)
    assert "leave the station out" in caught.value.problems[0].hint


def test_a_station_of_a_file_without_a_finite_position_is_named(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("station,lon,lat\nA,142,38\nB,nan,38\n")
    with pytest.raises(SpecError) as caught:
        sample(CAMPAIGN, TRANSPORT, path, ["0 d"], 1000)
    assert str(caught.value) == "new.csv line 3 = B,nan,38: is not a position"
