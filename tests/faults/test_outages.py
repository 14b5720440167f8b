"""What lies between the processes goes away, or changes under them."""

from __future__ import annotations

import contextlib
import time
from urllib.parse import urlsplit

import arena
import deployed
import postgres
import psycopg
import pytest
from proxy import Proxy

from afterslip_service.db import migrate
from afterslip_service.db.session import Database

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]

FIRST = "0001"
SIDES = ("workers", "dispatchers")


class Between(deployed.Deployment):
    """A deployment with a network that can be cut."""

    def __init__(self, folder, database):
        parts = urlsplit(database)
        self.to_database = Proxy(parts.port or 5432)
        user = parts.netloc.rpartition("@")[0]
        where = f"{user}@127.0.0.1:{self.to_database.port}"
        super().__init__(folder, database, parts._replace(netloc=where).geturl())
        self.to_scheduler = {who: Proxy(self.scheduler) for who in SIDES}
        self.via = self.to_scheduler["dispatchers"].port
        self.workers_via = self.to_scheduler["workers"].port


@pytest.fixture(scope="module")
def deployment(tmp_path_factory, postgres_server):
    if "host=" in postgres_server:
        pytest.skip("the network of a socket cannot be cut")
    folder = tmp_path_factory.mktemp("outages")
    with postgres.database(postgres_server) as url:
        made = Between(folder, url)
        try:
            yield made.start()
        finally:
            made.stop()
            for way in (*made.to_scheduler.values(), made.to_database):
                way.close()


@pytest.fixture
def solving(deployment):
    """Two groups are accepted, and the others are being solved."""
    for way in (*deployment.to_scheduler.values(), deployment.to_database):
        way.restore()
    deployment.clear()
    deployment.hold("solving", 2)
    campaign = deployment.submit()
    arena.until(lambda: deployment.held("solving"), 90, deployment.log)
    arena.until(lambda: deployment.accepted(campaign) == 2, 60, deployment.log)
    yield campaign
    deployment.release()


@contextlib.contextmanager
def without_database(server, url):
    """Nobody may connect, and who was connected is thrown out, as at a restart."""
    name = urlsplit(url).path[1:]
    out = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            connection.execute(out, [name])
            yield
        finally:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


@pytest.mark.parametrize("seconds", [5, 60])
def test_database_stopped(deployment, solving, postgres_server, record, seconds):
    fault = f"PostgreSQL stopped for {seconds} s, deployment"
    toll = deployed.Toll(deployment, solving, fault)
    with without_database(postgres_server, deployment.database):
        deployment.release()
        time.sleep(seconds)
    row = toll.count(record)
    assert row["groups again"] == 0


@pytest.mark.parametrize(
    ("sides", "seconds"),
    [(SIDES, 5), (SIDES, 30), (SIDES[:1], 30), (SIDES[1:], 30)],
)
def test_network_cut_to_the_scheduler(deployment, solving, record, sides, seconds):
    who = " and ".join(sides)
    fault = f"network of {who} to the scheduler cut for {seconds} s"
    toll = deployed.Toll(deployment, solving, fault)
    for side in sides:
        deployment.to_scheduler[side].cut()
    deployment.release()
    time.sleep(seconds)
    for side in sides:
        deployment.to_scheduler[side].restore()
    row = toll.count(record)
    assert row["groups again"] <= 2


def test_network_cut_to_the_database(deployment, solving, record):
    fault = "network of API and dispatchers to the database cut for 10 s"
    toll = deployed.Toll(deployment, solving, fault)
    deployment.to_database.cut()
    deployment.release()
    time.sleep(10)
    deployment.to_database.restore()
    row = toll.count(record)
    assert row["groups again"] == 0


@pytest.mark.parametrize("hours", [24, -24])
def test_clock_jumps(deployment, solving, record, hours):
    fault = f"the service's clock jumps by {hours:+d} h while solving"
    toll = deployed.Toll(deployment, solving, fault)
    deployment.clock.write_text(str(3600 * hours))
    try:
        time.sleep(2)
        deployment.release()
        row = toll.count(record)
    finally:
        deployment.clock.write_text("0")
    assert row["groups again"] == 0


def test_upgrade_while_tasks_run(deployment, solving, record):
    """What the first schema holds is taken up by this release, with its tasks."""
    fault = "API and dispatchers upgraded from the first schema while solving"
    toll = deployed.Toll(deployment, solving, fault)
    for role in ("api", "dispatcher-1", "dispatcher-2"):
        deployment.end(role)
    database = Database(deployment.database)
    try:
        deployment.sql(deployed.NO_TRIGGERS)
        migrate.downgrade(database, FIRST)
        assert migrate.current(database) == FIRST
        deployment.release()
        time.sleep(1)
        for role in ("api", "dispatcher-1", "dispatcher-2"):
            deployment.launch(role)
        row = toll.count(record)
        assert migrate.current(database) == migrate.newest(database)
    finally:
        database.close()
    assert row["groups again"] == 0
