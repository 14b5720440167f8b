"""Series of waves as MiniSEED and StationXML, read back by ObsPy's own readers."""

import numpy as np
import pytest
import xarray as xr

from afterslip.cli import main as command
from afterslip.errors import SpecError
from afterslip.exports import write_seismograms

obspy = pytest.importorskip("obspy", reason="pip install 'afterslip[seismology]'")

NAMES = ["TSK", "a long name", "S0001"]
LON, LAT = [140.1, 142.0, 181.5], [36.2, 38.0, -3.0]


def series(shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.fixture
def run():
    """What a forward run writes: 0.4 s, three stations."""
    dims = ("time", "point", "component")
    names = ("displacement", "velocity")
    return xr.Dataset(
        {name: (dims, series((51, 3, 3)) + k) for k, name in enumerate(names)},
        {
            "time": ("time", 0.4 * np.arange(51)),
            "station": ("point", NAMES),
            "lon": ("point", LON),
            "lat": ("point", LAT),
        },
        {"physics": "waves", "title": "an earthquake"},
    )


@pytest.fixture
def store():
    """What a campaign stores."""
    dims = ("source", "station", "component", "sample")
    return xr.Dataset(
        {
            "seismogram": (dims, series((4, 3, 3, 51))),
            "displacement": (dims, series((4, 3, 3, 51)) + 1),
            "station_lon": ("station", LON),
            "station_lat": ("station", LAT),
        },
        {"sample": 0.4 * np.arange(51), "station": NAMES},
        {"physics": "waves"},
    )


def test_obspy_reads_the_numbers_times_and_places_of_a_forward_run(run, tmp_path):
    begin = "2011-03-11T05:46:24"
    waves, places = write_seismograms(run, tmp_path, begin=begin, network="AS")
    stream, inventory = obspy.read(waves), obspy.read_inventory(places)
    assert len(stream) == 9
    codes = ["TSK", "S0002", "S0001"]
    for row, code in enumerate(codes):
        for axis, channel in enumerate(("MXE", "MXN", "MXZ")):
            (trace,) = stream.select(station=code, channel=channel)
            np.testing.assert_array_equal(trace.data, run["velocity"][:, row, axis])
            assert trace.stats.delta == pytest.approx(0.4, rel=1e-12)
            assert trace.stats.starttime == obspy.UTCDateTime(begin)
            where = inventory.get_coordinates(trace.id)
            assert where["latitude"] == LAT[row]
            assert where["longitude"] == pytest.approx((LON[row] + 180) % 360 - 180)
            way = inventory.get_orientation(trace.id)
            expected = ((90, 0), (0, 0), (0, -90))[axis]
            assert (way["azimuth"], way["dip"]) == expected
    assert inventory[0][1].site.name == "a long name"


def test_series_are_in_the_unit_that_the_station_file_says(run, tmp_path):
    waves, places = write_seismograms(run, tmp_path, "displacement")
    stream, inventory = obspy.read(waves), obspy.read_inventory(places)
    first = stream[0].data.copy()
    assert waves.name == "displacement.mseed"
    channel = inventory[0][0][0]
    assert channel.response.instrument_sensitivity.input_units == "M"
    stream.remove_sensitivity(inventory)
    np.testing.assert_array_equal(stream[0].data, first)
    np.testing.assert_array_equal(first, run["displacement"][:, 0, 0])
    # evalresp finds the instrument to do nothing at any frequency
    at = [0.01, 0.1, 1.0]
    response = inventory[0][0][0].response
    gain = response.get_evalresp_response_for_frequencies(at, output="DISP")
    np.testing.assert_allclose(gain, 1.0, atol=1e-12)


def test_a_source_of_a_campaign_is_written_and_others_refused(store, tmp_path):
    waves, places = write_seismograms(store, tmp_path, source=2)
    (trace,) = obspy.read(waves).select(station="TSK", channel="MXZ")
    np.testing.assert_array_equal(trace.data, store["seismogram"][2, 0, 2])
    assert "source 2, per metre" in obspy.read_inventory(places)[0].description
    for wrong in (None, 4, -1):
        with pytest.raises(SpecError, match="a number from 0 to 3"):
            write_seismograms(store, tmp_path, source=wrong)


def test_what_cannot_be_written_is_refused_by_name(run, tmp_path):
    local = run.drop_vars(["lon", "lat"])
    with pytest.raises(SpecError, match=r"model\.frame.*longitude and latitude"):
        write_seismograms(local, tmp_path)
    with pytest.raises(SpecError, match="velocity or displacement"):
        write_seismograms(run, tmp_path, "acceleration")
    with pytest.raises(SpecError, match="is no time"):
        write_seismograms(run, tmp_path, begin="yesterday")
    with pytest.raises(SpecError, match="no code of a network"):
        write_seismograms(run, tmp_path, network="ABC")
    with pytest.raises(SpecError, match="has no series"):
        write_seismograms(run.assign_attrs(physics="viscoelastic"), tmp_path)


def test_the_command_writes_both_files(run, tmp_path, capsys):
    run.to_netcdf(tmp_path / "motion.nc", engine="h5netcdf")
    source, out = tmp_path / "motion.nc", tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        command.main(["export", str(source), "--format", "miniseed", "--out", str(out)])
    assert not ended.value.code
    names = ("velocity.mseed", "stations.xml")
    assert capsys.readouterr().out.split() == [str(out / name) for name in names]
