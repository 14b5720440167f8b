"""Green's functions by reciprocity: the same numbers, and no run for other sources."""

from typing import Any

import numpy as np
import pytest
from wave_cases import SPEC, STATIONS, prepared, solve, with_waves, write_stations

from afterslip import SpecError
from afterslip.physics.waves import physics
from afterslip.physics.waves.checks import MOST_BYTES
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_workers.engines.waves import receivers

SHORT = {"duration": "6 s", "points_per_wavelength": 7}
Q = {"qp": 60, "qs": 30}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "spec").mkdir()
    return write_stations(tmp_path / "spec")


def layered(spec, **more):
    """Half-space under a soft layer, so that mu and Q differ along the fault."""
    soft = {"name": "soft", "bottom": 3, "vp": 4.5, "vs": 2.6, "rho": 2500, **more}
    layers = [soft, {**SPEC["model"]["layers"][0], **more}]
    return {**spec, "model": {**SPEC["model"], "layers": layers}}


@pytest.mark.parametrize("attenuates", [False, True])
def test_receivers_make_the_series_of_sources_to_rounding(folder, tmp_path, attenuates):
    slow = {"kind": "smooth_step", "rise": "3 s"}
    own = {**SHORT, "precision": "fp64", "frequency": 0.4, "source_time": slow}
    more = Q if attenuates else {}
    if attenuates:
        own["attenuation"] = {"band": [0.02, 0.4]}
    found = {}
    for way in ("sources", "receivers"):
        spec = layered(with_waves(**own, solve=way), **more)
        found[way] = solve(prepared(folder, tmp_path / way, spec)).values
    ours, theirs = found["receivers"], found["sources"]
    # the offset is the last sample, of waves that still go on, in FP64
    most = np.abs(theirs["offset"]).max()
    assert most > 1e-3
    np.testing.assert_allclose(ours["offset"], theirs["offset"], atol=1e-10 * most)
    for name in ("displacement", "seismogram"):
        largest = np.abs(theirs[name]).max()
        # stored in FP32, and so is what receivers record
        np.testing.assert_allclose(ours[name], theirs[name], atol=5e-7 * largest)
    assert (ours["steps"] == theirs["steps"]).all()


def test_other_sources_on_a_fault_take_no_run(folder, tmp_path):
    spec = with_waves(**SHORT, solve="receivers")
    first = solve(prepared(folder, tmp_path, spec))
    assert "solved 3 of 3 runs" in first.stats["notes"][0]
    finer = {**spec, "sources": {**SPEC["sources"], "along_strike": 4, "down_dip": 1}}
    again = solve(prepared(folder, tmp_path, finer))
    assert "solved 0 of 3 runs" in again.stats["notes"][0]
    assert again.stats["solves"] == 0
    directly = {**finer, "waves": {**finer["waves"], "solve": "sources"}}
    exact = solve(prepared(folder, tmp_path / "b", directly)).values["displacement"]
    error = np.abs(again.values["displacement"] - exact).max()
    # both ways march in FP32
    assert error < 1e-4 * np.abs(exact).max()


def test_stopped_receivers_go_on_from_their_checkpoint_bit_for_bit(
    folder, tmp_path, monkeypatch
):
    from afterslip_workers.errors import CancelledError

    monkeypatch.setenv("AFTERSLIP_CHECKPOINT_S", "0")
    spec = with_waves(**SHORT, solve="receivers")
    parts = prepared(folder, tmp_path, spec)
    asked = iter(range(100))
    with pytest.raises(CancelledError):
        solve(parts, lambda: next(asked) > 25)
    found = solve(parts)
    assert "solved 2 of 3 runs" in found.stats["notes"][0]
    whole = solve(prepared(folder, tmp_path / "other", spec))
    for name, values in whole.values.items():
        np.testing.assert_array_equal(found.values[name], values)


def test_the_plan_counts_the_runs_of_both_ways(folder):
    def planned(spec):
        campaign: Any = parse_campaign(spec, folder)
        return physics.work(campaign, resolve(campaign, LocalFiles(folder)))

    few = planned(SPEC)
    assert (few.runs, few.way) == ({"sources": 2, "receivers": 3}, "sources")
    many = {**SPEC, "sources": {**SPEC["sources"], "along_strike": 5}}
    assert planned(many).way == "receivers"
    ground = {**many, "waves": {**many["waves"], "surface": {"spacing": 0.9}}}
    assert planned(ground).way == "sources"
    assert len(STATIONS) == 4


def test_receivers_that_would_record_too_much_are_refused_with_numbers(
    folder, tmp_path, monkeypatch
):
    asked = {"surface": {"spacing": 0.9}, "solve": "receivers"}
    with pytest.raises(SpecError, match="records stations alone, and surface is given"):
        parse_campaign(with_waves(**asked), folder)
    parts = prepared(folder, tmp_path, with_waves(**SHORT, solve="receivers"))
    monkeypatch.setattr(receivers, "MOST_BYTES", MOST_BYTES / 1e6)
    with pytest.raises(SpecError, match=r"would record 0\.0 GB a run on 4 patches"):
        solve(parts)


def test_sums_of_cells_are_recorded_where_all_of_them_are_too_many(
    folder, tmp_path, monkeypatch
):
    spec = with_waves(**SHORT, precision="fp64", solve="receivers")
    exact = solve(prepared(folder, tmp_path / "whole", spec)).values
    # 6 kB of four patches, and more of all cells
    monkeypatch.setattr(receivers, "MOST_BYTES", 7e3)
    parts = prepared(folder, tmp_path / "sums", spec)
    found = solve(parts)
    for name in ("offset", "displacement", "seismogram"):
        largest = np.abs(exact[name]).max()
        atol = 1e-10 if name == "offset" else 5e-7
        np.testing.assert_allclose(found.values[name], exact[name], atol=atol * largest)
    again = solve(parts)
    assert "solved 0 of 3 runs" in again.stats["notes"][0]
    np.testing.assert_array_equal(again.values["offset"], found.values["offset"])
    other = {**spec, "sources": {**SPEC["sources"], "along_strike": 1}}
    assert (
        "solved 3 of 3"
        in solve({**parts, **prepared(folder, tmp_path, other)}, sources=[0, 1]).stats[
            "notes"
        ][0]
    )
