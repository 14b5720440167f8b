"""MiniSEED and SAC as a table of ground motion: times, places, what is refused."""

import numpy as np
import pytest

from afterslip import SpecError
from afterslip.frame import Frame
from afterslip.readers.motion import read_motion
from afterslip.readers.seismograms import motion_table, places_of
from afterslip.schemas.earth import Frame as FrameSpec
from afterslip.schemas.observation import Series, Sigma

obspy = pytest.importorskip("obspy")
BEGIN = "2011-03-11T05:46:24"
PLACES = {"ABC": {"lon": 142.0, "lat": 38.0}, "DEF": {"lon": 141.0, "lat": 38.5}}


def trace(station, axis, before=5.0, delta=0.5, n=41, **sac):
    """A trace that counts seconds after the event, upon a constant of 7."""
    start = obspy.UTCDateTime(BEGIN) - before
    time = delta * np.arange(n) - before
    data = 7.0 + np.where(time > 0, time, 0.0)
    header = {"station": station, "channel": f"BX{axis}", "starttime": start}
    return obspy.Trace(
        data, {**header, "delta": delta, **({"sac": sac} if sac else {})}
    )


def write(path, *traces, kind="MSEED"):
    obspy.Stream(traces).write(str(path), format=kind)
    return path


def test_a_table_counts_from_the_event_and_from_what_came_before(tmp_path):
    file = write(tmp_path / "a.mseed", *(trace("ABC", axis) for axis in "ENZ"))
    other = write(tmp_path / "b.mseed", trace("DEF", "Z", before=4.75))
    text = motion_table([file, other], BEGIN, PLACES, end=10.0)
    frame = Frame.of(FrameSpec(kind="geographic", lon0=142, lat0=38))
    alone = "".join(
        line for line in text.splitlines(keepends=True) if "DEF" not in line
    )
    found = read_motion(
        alone.encode(), frame, Series(), Sigma(horizontal=1, vertical=1)
    )
    assert found.time.tolist() == [0.5 * k for k in range(21)]
    for axis in range(3):
        np.testing.assert_allclose(found.displacement[:, axis], found.time)
    line = next(line for line in text.splitlines() if "DEF" in line)
    assert line == "DEF,141.0,38.5,0.25,,,0.25"


def test_sac_says_where_its_station_is(tmp_path):
    file = write(
        tmp_path / "a.sac", trace("ABC", "N", stla=38.25, stlo=142.5), kind="SAC"
    )
    first = motion_table([file], BEGIN).splitlines()[1].split(",")
    assert [float(value) for value in first[1:3]] == [142.5, 38.25]


@pytest.mark.parametrize(
    ("traces", "words"),
    [
        ([("ABC", "1", {})], "is not east, north or up"),
        ([("ABC", "E", {}), ("ABC", "E", {})], "is there twice"),
        ([("ABC", "E", {}), ("ABC", "N", {"n": 30})], "has other samples than"),
        ([("XYZ", "E", {})], "has no known place"),
        ([("ABC", "E", {"before": 100.0})], "has no samples after the event"),
    ],
)
def test_traces_that_make_no_table_are_refused(tmp_path, traces, words):
    files = [
        write(tmp_path / f"{k}.mseed", trace(name, axis, **more))
        for k, (name, axis, more) in enumerate(traces)
    ]
    with pytest.raises(SpecError, match=words):
        motion_table(files, BEGIN, PLACES)


def test_other_files_and_times_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("station\n")
    with pytest.raises(SpecError, match="is neither MiniSEED nor SAC"):
        motion_table([tmp_path / "a.txt"], BEGIN)
    with pytest.raises(SpecError, match="is no time"):
        motion_table([], "yesterday")
    with pytest.raises(SpecError, match="is no table of stations"):
        places_of("name,lon\nA,1\n", "stations.csv")
    assert places_of("station,x_km,y_km\nA,1,2\n", "s") == {
        "A": {"x_km": 1.0, "y_km": 2.0}
    }
