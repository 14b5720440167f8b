"""Every process dies at every moment: nothing is lost, nothing is done twice."""

from __future__ import annotations

import contextlib

import arena
import deployed
import postgres
import psutil
import pytest

pytestmark = pytest.mark.timeout(300)

VICTIMS = ("api", "leader", "standby", "scheduler", "nanny", "worker", "child")
MOMENTS = ("before claim", "solving", "written", "accepting", "closing", "inverting")
# one of each moment, and of each kind of process, runs with every other test
SHORT = {
    ("worker", "solving"),
    ("child", "written"),
    ("leader", "accepting"),
    ("leader", "closing"),
}
TITLES = {
    "before claim": "before the claim",
    "solving": "while solving",
    "written": "after the write, before the manifest",
    "accepting": "between manifest and acceptance",
    "closing": "while the store is closed",
    "inverting": "while inverting",
}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory, postgres_server):
    folder = tmp_path_factory.mktemp("matrix")
    with postgres.database(postgres_server) as url:
        made = deployed.Deployment(folder, url)
        try:
            yield made.start()
        finally:
            made.stop()


@contextlib.contextmanager
def before_claim(here):
    """Groups wait, and may be claimed when the block ends."""
    here.hold("model")
    campaign = here.submit()
    arena.until(lambda: here.held("model"), 60, here.log)
    here.post(f"/campaigns/{campaign}/pause")
    here.release()
    arena.until(lambda: here.get(f"/campaigns/{campaign}")["n_sources"], 60, here.log)
    yield campaign, None
    here.post(f"/campaigns/{campaign}/resume")


@contextlib.contextmanager
def computing(here, point):
    """Two groups are accepted, another stands still in its computing process."""
    here.hold(point, 2 if point != "inverting" else 0)
    campaign = here.submit(inversion=point == "inverting")
    child = arena.until(lambda: here.held(point), 90, here.log)
    if point != "inverting":
        arena.until(lambda: here.accepted(campaign) == 2, 60, here.log)
    yield campaign, child
    here.release()


@contextlib.contextmanager
def writing(here, moment):
    """The dispatcher stands still in the transaction that accepts, or closes."""
    with deployed.locked(here, moment) as reached:
        campaign = here.submit()
        arena.until(reached, 90, here.log)
        yield campaign, None


def at(here, moment):
    if moment == "before claim":
        return before_claim(here)
    if moment in deployed.LOCKS:
        return writing(here, moment)
    return computing(here, moment)


def dead(process):
    """Tell whether a process is gone; whose parent does not look stays a zombie."""
    gone = not process.is_running()
    return gone or process.status() == psutil.STATUS_ZOMBIE


def cases():
    for moment in MOMENTS:
        for victim in VICTIMS:
            short = (victim, moment) in SHORT
            marks = [] if short else [pytest.mark.faults]
            yield pytest.param(victim, moment, marks=marks, id=f"{victim}-{moment}")


@pytest.mark.parametrize(("victim", "moment"), list(cases()))
def test_nothing_is_lost_or_done_twice(deployment, victim, moment, record):
    deployment.clear()
    with at(deployment, moment) as (campaign, child):
        process = deployment.victim(victim, child)
        fault = f"{victim} killed {TITLES[moment]}"
        toll = deployed.Toll(deployment, campaign, fault)
        process.kill()
        arena.until(lambda: dead(process), 20, "it dies")
    row = toll.count(record)
    assert row["groups again"] <= 2
    if victim in {"api", "standby"}:
        assert row["groups again"] == 0
