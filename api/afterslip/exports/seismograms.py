"""Series of waves as MiniSEED with StationXML, which seismological programs read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from afterslip.errors import one_problem
from afterslip.extras import require

# quantity → units of StationXML, variable of a forward run, variable of a store
QUANTITIES = {
    "velocity": ("M/S", "velocity", "seismogram"),
    "displacement": ("M", "displacement", "displacement"),
}
# code of the band of a channel by the least sampling rate, Hz, as SEED has it; the
# instrument X is one whose series are derived or computed
_BANDS = ((80.0, "H"), (10.0, "B"), (1.0, "M"), (0.2, "L"), (0.0, "V"))
_ORIENTATION = {"E": (90.0, 0.0), "N": (0.0, 0.0), "Z": (0.0, -90.0)}


@dataclass(frozen=True, slots=True)
class _Series:
    """What is written: values (n_station, 3, n_sample), sampling in s."""

    names: list[str]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    values: NDArray[np.float32]
    sampling: float
    what: str


def write_seismograms(
    waves: xr.Dataset,
    folder: str | Path,
    quantity: str = "velocity",
    source: int | None = None,
    begin: str = "1970-01-01T00:00:00",
    network: str = "XX",
) -> list[Path]:
    """Write series at stations as ``QUANTITY.mseed``, and ``stations.xml``.

    Parameters
    ----------
    waves : of a forward run, or the store of a campaign, of ``physics: waves`` with a
        geographic frame.
    quantity : velocity (m/s) or displacement (m).
    source : number of the unit source, of a store: series are per metre of slip.
    begin : time of the begin of slip, UTC, ISO 8601.
    network : code of the network, one or two letters or digits.

    Returns
    -------
    The two files.

    Raises
    ------
    SpecError
        The data set has no such series, or its stations have no longitude.
    MissingExtraError
        ObsPy is not installed.
    """
    require("MiniSEED", "seismology", "obspy")
    from obspy import Stream, UTCDateTime

    if not re.fullmatch("[A-Z0-9]{1,2}", network):
        hint = "one or two capital letters or digits, such as XX"
        raise one_problem("network", network, "is no code of a network", hint)
    try:
        start = UTCDateTime(begin)
    except (TypeError, ValueError):
        hint = "write it as 2011-03-11T05:46:24"
        raise one_problem("begin", begin, "is no time", hint) from None
    series = _series(waves, quantity, source)
    codes = _codes(series.names)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{quantity}.mseed", folder / "stations.xml"]
    stream = Stream(
        _trace(series, start, network, code, row, axis)
        for row, code in enumerate(codes)
        for axis in range(3)
    )
    stream.write(str(paths[0]), format="MSEED", encoding="FLOAT32")
    inventory = _inventory(series, codes, network, quantity)
    inventory.write(str(paths[1]), format="STATIONXML", validate=True)
    return paths


def _series(waves: xr.Dataset, quantity: str, source: int | None) -> _Series:
    if quantity not in QUANTITIES:
        hint = f"use {' or '.join(QUANTITIES)}"
        raise one_problem("quantity", quantity, "is not recorded", hint)
    _, of_run, of_store = QUANTITIES[quantity]
    if waves.attrs.get("physics") != "waves":
        hint = "give the file of a forward run or the store of a campaign of waves"
        raise one_problem("physics", waves.attrs.get("physics"), "has no series", hint)
    if "source" in waves.dims:
        if of_store not in waves:
            text = "were not recorded: the store has the ground alone"
            raise one_problem("stations", None, text)
        last = waves.sizes["source"] - 1
        if source is None or not 0 <= source <= last:
            hint = f"a number from 0 to {last}"
            raise one_problem("source", source, "is no unit source", hint)
        own = waves[of_store].isel(source=source)
        names, place, time = own["station"].values, "station_", waves["sample"]
        whole = own.transpose("station", "component", "sample")
        what = f"unit source {source}, per metre of slip"
    else:
        own, place, time = waves[of_run], "", waves["time"]
        names = waves["station"].values
        whole = own.transpose("point", "component", "time")
        what = str(waves.attrs.get("title", "forward run"))
    if f"{place}lon" not in waves.variables:
        hint = "give model.frame: {kind: geographic, lon0, lat0} and run it again"
        text = "is local, and StationXML needs longitude and latitude"
        raise one_problem("model.frame", None, text, hint)
    seconds = np.asarray(time.values, dtype=np.float64)
    return _Series(
        names=[str(name) for name in names],
        lon=np.asarray(waves[f"{place}lon"].values, dtype=np.float64),
        lat=np.asarray(waves[f"{place}lat"].values, dtype=np.float64),
        values=np.asarray(whole.values, dtype=np.float32),
        sampling=float(seconds[-1] - seconds[0]) / (len(seconds) - 1),
        what=what,
    )


def _codes(names: list[str]) -> list[str]:
    """Return codes of stations: up to five letters and digits, each once.

    A name that is a code stays; others are S0001, S0002, ..., and stand in the
    StationXML as the station's site.
    """
    good = {name for name in names if re.fullmatch("[A-Z0-9]{1,5}", name)}
    made = (code for n in count(1) if (code := f"S{n:04d}") not in good)
    return [name if name in good else next(made) for name in names]


def _channel(series: _Series, axis: int) -> str:
    rate = 1.0 / series.sampling
    band = next(code for least, code in _BANDS if rate >= least * (1 - 1e-9))
    return f"{band}X{'ENZ'[axis]}"


def _trace(
    series: _Series, start: Any, network: str, code: str, row: int, axis: int
) -> Any:
    from obspy import Trace

    header = {
        "network": network,
        "station": code,
        "channel": _channel(series, axis),
        "starttime": start,
        "delta": series.sampling,
    }
    return Trace(np.ascontiguousarray(series.values[row, axis]), header)


def _inventory(series: _Series, codes: list[str], network: str, quantity: str) -> Any:
    from obspy.core.inventory import (
        Channel,
        Inventory,
        Network,
        Site,
        Station,
    )

    unit, rate = QUANTITIES[quantity][0], 1.0 / series.sampling
    stations = []
    for row, code in enumerate(codes):
        where = {
            "latitude": float(series.lat[row]),
            # StationXML has longitudes from -180 to 180
            "longitude": float((series.lon[row] + 180.0) % 360.0 - 180.0),
            "elevation": 0.0,
        }
        channels = []
        for axis, name in enumerate("ENZ"):
            azimuth, dip = _ORIENTATION[name]
            channels.append(
                Channel(
                    code=_channel(series, axis),
                    location_code="",
                    depth=0.0,
                    azimuth=azimuth,
                    dip=dip,
                    sample_rate=rate,
                    description=f"computed {quantity}: {series.what}",
                    response=_response(unit, 0.1 * rate),
                    **where,
                )
            )
        site = Site(name=series.names[row])
        stations.append(Station(code=code, site=site, channels=channels, **where))
    about = f"computed {quantity}: {series.what}"
    known = Network(code=network, stations=stations, description=about)
    return Inventory(networks=[known], source="afterslip")


def _response(unit: str, frequency: float) -> Any:
    """Return that of numbers in the unit itself: gain 1 at all frequencies."""
    from obspy.core.inventory import InstrumentSensitivity, Response
    from obspy.core.inventory.response import PolesZerosResponseStage

    stage = PolesZerosResponseStage(
        stage_sequence_number=1,
        stage_gain=1.0,
        stage_gain_frequency=frequency,
        input_units=unit,
        output_units=unit,
        pz_transfer_function_type="LAPLACE (RADIANS/SECOND)",
        normalization_frequency=frequency,
        zeros=[],
        poles=[],
    )
    whole = InstrumentSensitivity(1.0, frequency, unit, unit)
    return Response(instrument_sensitivity=whole, response_stages=[stage])
