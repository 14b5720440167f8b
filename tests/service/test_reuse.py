"""Sources that are stored already are taken, not solved; tested with real solves."""

from __future__ import annotations

import copy
import itertools
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "workers"))

import xarray as xr
from small_campaign import SPEC, SmallCampaign

from afterslip_service.db import bulk, campaigns, jobs, sources
from afterslip_service.db.jobs import NewJob
from afterslip_service.db.session import Database
from afterslip_service.engine.states import CampaignState, JobKind
from afterslip_service.placement.inprocess import InProcess
from afterslip_service.reconcile.dispatcher import Dispatcher
from afterslip_service.settings import Settings
from afterslip_workers import entry

DAY = 86400.0
COUNT = itertools.count()


class Centre:
    """A service without HTTP, whose workers solve in this process."""

    def __init__(self, root, url, slots=1):
        self.root, self.database = root, Database(url)
        self.solved = []
        settings = Settings(database=url, store=root, tick=0.02, backend="cpu")
        entry.prepare(root)
        placement = InProcess(self.execute, slots)
        self.dispatcher = Dispatcher(self.database, placement, settings)

    def execute(self, envelope):
        receipt = entry.execute(envelope)
        if envelope["kind"] == "group":
            stats = receipt["stats"]
            self.solved.append((envelope["campaign"], stats["solves"]))
        return receipt

    def submit(self, spec, files=None):
        made = SmallCampaign(
            self.root, spec, identity=f"input{next(COUNT)}", files=files
        )
        with self.database.write() as connection:
            identity = campaigns.create(
                connection,
                name=spec["name"],
                digest="sha256:0",
                spec=made.spec,
                canonical=made.spec,
            )
            jobs.create(connection, identity, [NewJob(JobKind.MODEL, 0)])
        return identity

    def run(self, spec, turn, files=None):
        identity = self.submit(spec, files)
        turn(self.dispatcher, identity, CampaignState.COMPLETE, seconds=120)
        return identity

    def solves(self, identity):
        return sum(solves for campaign, solves in self.solved if campaign == identity)

    def store(self, identity):
        return xr.open_zarr(self.root / "campaigns" / identity / "greens.zarr")

    def rows(self, identity):
        with self.database.read() as connection:
            return sources.of_campaign(connection, identity)


def changed(**parts):
    spec = copy.deepcopy(SPEC)
    spec["sources"] |= {"along_strike": 2, "components": ["dip"]}
    for name, value in parts.items():
        part = spec.get(name)
        spec[name] = part | value if isinstance(part, dict) else value
    return spec


@pytest.fixture(scope="module")
def centre(tmp_path_factory, sqlite_template):
    root = tmp_path_factory.mktemp("centre")
    shutil.copy(sqlite_template, root / "db.sqlite")
    made = Centre(root / "store", str(root / "db.sqlite"))
    yield made
    made.dispatcher.context.placement.close()
    made.database.close()
    entry.close_children()


@pytest.fixture
def turned(centre):
    def until(dispatcher, campaign, state, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            dispatcher.tick()
            with centre.database.read() as connection:
                found = campaigns.get(connection, campaign)
            if found.state is state:
                return
            assert found.state is not CampaignState.FAILED, found.error_message
            time.sleep(0.02)
        raise AssertionError(f"still {found.state}")

    return until


@pytest.fixture(scope="module")
def first(centre):
    return {}


def run_first(centre, first, turned):
    if not first:
        first["id"] = centre.run(changed(), turned)
    return first["id"]


def test_other_stations_and_times_solve_nothing(centre, first, turned):
    one = run_first(centre, first, turned)
    assert centre.solves(one) > 0
    stations = "station,x_km,y_km\nA,10.5,3.25\nB,-40,22\n"
    # the stored error is a larger part of what a shorter curve moves
    spec = changed(
        times={"output": ["0 d", "200 d", "5 yr"], "until": "5 yr"},
        solver={"time_tolerance": 1e-5},
    )
    two = centre.run(spec, turned, {"stations.csv": stations})
    assert centre.solves(two) == 0
    with centre.store(one) as old, centre.store(two) as new:
        count = int(old["mode_count"].max())
        np.testing.assert_array_equal(
            old["response"].values[:, :count], new["response"].values[:, :count]
        )
        np.testing.assert_array_equal(old["recurrence"], new["recurrence"])
        stored = new["displacement"].values
        errors = float(old["time_error"].max()), float(new["time_error"].max())
    assert errors[0] <= 1e-6
    assert errors[0] < errors[1] <= 1e-5
    assert stored.shape == (2, 3, 2, 3)
    points = np.array([10.5e3, -40e3]), np.array([3.25e3, 22e3])
    times = [0.0, 200 * DAY, 5 * 365.25 * DAY]
    sampled = entry.sample(centre.root, one, *points, times).values
    # both are evaluated from the same modes, in another order of summation
    assert stored == pytest.approx(sampled, abs=1e-12)


def test_same_campaign_again_is_copied_bit_for_bit(centre, first, turned):
    one = run_first(centre, first, turned)
    two = centre.run(changed(name="the same under another name"), turned)
    assert centre.solves(two) == 0
    with centre.store(one) as old, centre.store(two) as new:
        for name in ("response", "displacement", "recurrence", "start_norm",
                     "mode_count", "residual", "iterations"):  # fmt: skip
            np.testing.assert_array_equal(old[name], new[name])


def test_what_is_missing_is_solved_and_stands_behind_what_was_taken(
    centre, first, turned
):
    one = run_first(centre, first, turned)
    spec = changed(sources={"components": ["strike", "dip"]})
    two = centre.run(spec, turned)
    rows = centre.rows(two)
    assert [row.origin for row in rows] == [one, one, None, None]
    assert centre.solves(two) > 0
    with centre.store(one) as old, centre.store(two) as new:
        component = new["source_component"].values
        assert component.tolist() == [1, 1, 0, 0]
        old_place = {tuple(p): k for k, p in enumerate(old["source_patch"].values)}
        for place, patch in enumerate(new["source_patch"].values[:2]):
            row = old_place[tuple(patch)]
            for name in ("response", "displacement", "source_position"):
                np.testing.assert_array_equal(
                    new[name].values[place], old[name].values[row]
                )
    # alone, the missing ones are what they are beside the taken ones
    alone = centre.run(
        changed(sources={"components": ["strike"]}, times={"until": "10.5 yr"}), turned
    )
    with centre.store(two) as new, centre.store(alone) as fresh:
        order = [
            [tuple(p) for p in fresh["source_patch"].values].index(tuple(patch))
            for patch in new["source_patch"].values[2:]
        ]
        found = new["displacement"].values[2:]
        expected = fresh["displacement"].values[order]
        # two runs of the spectral integrator, each within its time tolerance 1e-6
        assert found == pytest.approx(expected, abs=4e-6 * np.abs(expected).max())


def test_smaller_error_serves_a_larger_one_and_never_the_reverse(centre, turned):
    def solved_to(tolerance):
        solver = {"tolerance": tolerance, "time_tolerance": 1e-2}
        spec = changed(name=f"to {tolerance:g}", solver=solver,
                       sources={"along_strike": 1})  # fmt: skip
        identity = centre.run(spec, turned)
        return identity, {row.origin for row in centre.rows(identity)}

    rough, origins = solved_to(1e-3)
    assert origins == {None}
    exact, origins = solved_to(1e-8)
    assert origins == {None}
    assert centre.solves(exact) > 0
    between, origins = solved_to(1e-4)
    assert origins == {exact}
    assert centre.solves(between) == 0
    with centre.store(rough) as first, centre.store(exact) as second:
        assert float(first["residual"].max()) > 1e-8 >= float(second["residual"].max())


def test_longer_curve_is_not_taken(centre, first, turned):
    run_first(centre, first, turned)
    longer = centre.run(changed(times={"until": "12 yr"}), turned)
    assert centre.solves(longer) > 0
    assert all(row.origin is None for row in centre.rows(longer))


def test_damaged_or_deleted_campaign_is_not_needed(centre, first, turned):
    """What was taken is a copy; what cannot be taken any more is solved."""
    one = run_first(centre, first, turned)
    taker = centre.run(changed(name="taker"), turned)
    assert {row.origin for row in centre.rows(taker)} == {one}
    with centre.store(taker) as store:
        before = store["response"].values
    late = centre.submit(changed(name="late"))
    for folder in (centre.root / "campaigns").iterdir():
        if folder.name == one:
            shutil.rmtree(folder)
        else:
            for shard in (folder / "greens.zarr" / "recurrence" / "c").rglob("0"):
                if shard.is_file():
                    shard.write_bytes(b"bit rot")
    with centre.store(taker) as store:
        np.testing.assert_array_equal(store["response"].values, before)
    turned(centre.dispatcher, late, CampaignState.COMPLETE, 120)
    assert centre.solves(late) > 0
    assert all(row.origin is None for row in centre.rows(late))


def test_campaigns_submitted_together_solve_each_source_once(tmp_path, sqlite_template):
    """Two slots, so that both would solve the same groups side by side."""
    shutil.copy(sqlite_template, tmp_path / "db.sqlite")
    made = Centre(tmp_path / "store", str(tmp_path / "db.sqlite"), slots=2)
    spec = changed()
    spec["sources"] |= {"along_strike": 4, "down_dip": 2}
    try:
        both = [made.submit(spec | {"name": name}) for name in ("one", "two")]
        deadline = time.monotonic() + 200
        states = set()
        while states != {CampaignState.COMPLETE} and time.monotonic() < deadline:
            made.dispatcher.tick()
            with made.database.read() as connection:
                states = {campaigns.get(connection, c).state for c in both}
            time.sleep(0.02)
        assert states == {CampaignState.COMPLETE}
    finally:
        made.dispatcher.context.placement.close()
        made.database.close()
    origins = [[row.origin for row in made.rows(campaign)] for campaign in both]
    # each source was solved by one of the two and copied by the other
    for pair in zip(*origins, strict=True):
        assert sorted(map(bool, pair)) == [False, True]
    with made.store(both[0]) as one, made.store(both[1]) as two:
        np.testing.assert_array_equal(one["response"].values, two["response"].values)


def test_invalidated_groups_are_solved_though_a_twin_has_them(centre, turned):
    spec = changed(sources={"along_strike": 4})
    one, twin = centre.run(spec, turned), centre.run(spec, turned)
    before = centre.solves(one), centre.solves(twin)
    with centre.database.write() as connection:
        bulk.invalidate(connection, one)
        campaigns.refresh(connection, one)
    turned(centre.dispatcher, one, CampaignState.COMPLETE, 120)
    assert centre.solves(one) > before[0]
    assert centre.solves(twin) == before[1]
