from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from collections.abc import Callable

import postgres
import tiny_worker
from fastapi import FastAPI
from receiver import HERE, receiving

from afterslip import Client
from afterslip_service import clock, logs
from afterslip_service.db import campaigns, jobs, migrate, tokens
from afterslip_service.db.jobs import NewJob
from afterslip_service.db.session import Database
from afterslip_service.engine.access import Role
from afterslip_service.engine.states import JobKind
from afterslip_service.main import create_app
from afterslip_service.placement.inprocess import InProcess
from afterslip_service.reconcile import sender
from afterslip_service.reconcile.dispatcher import Dispatcher
from afterslip_service.server import Server
from afterslip_service.settings import Settings
from afterslip_workers import entry

logs.configure(level=logging.ERROR)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "db.sqlite"
    database = Database(str(path))
    migrate.upgrade(database)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return path


@pytest.fixture(scope="session")
def postgres_server():
    with postgres.server() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_template(postgres_server):
    with postgres.database(postgres_server) as url:
        database = Database(url)
        migrate.upgrade(database)
        database.close()
        yield url.partition("?")[0].rpartition("/")[2]


@pytest.fixture(scope="session")
def postgres_databases(postgres_server, postgres_template):
    databases = postgres.Emptied(postgres_server, postgres_template)
    yield databases
    databases.close()


def pytest_generate_tests(metafunc):
    """Run every test that needs a database on both, or on those it is marked with."""
    if "database_url" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("databases")
        names = mark.args if mark else ("sqlite", "postgresql")
        metafunc.parametrize("database_url", names, indirect=True)


@pytest.fixture
def database_url(request, tmp_path):
    """A fresh, migrated database."""
    if request.param == "sqlite":
        path = tmp_path / "db.sqlite"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        yield str(path)
        return
    with request.getfixturevalue("postgres_databases").one() as url:
        yield url


@pytest.fixture
def database(database_url):
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def settings(database_url, tmp_path):
    store = tmp_path / "store"
    entry.prepare(store)
    return Settings(database=database_url, store=store, tick=0.02, lost_after=30)


@pytest.fixture
def worker():
    return tiny_worker.TinyWorker()


def add_campaign(database, name="tiny"):
    with database.write() as connection:
        campaign = campaigns.create(
            connection, name=name, digest="sha256:0", spec={}, canonical={"name": name}
        )
        jobs.create(connection, campaign, [NewJob(JobKind.MODEL, 0)])
    return campaign


@pytest.fixture
def new_campaign(database):
    return lambda name="tiny": add_campaign(database, name)


@pytest.fixture
def new_token(database):
    def make(user="ada", role=Role.SUBMITTER, days=1):
        end = clock.now() + timedelta(days=days)
        with database.write() as connection:
            return tokens.create(
                connection, name="test", user=user, role=role, expires_at=end
            )

    return make


@pytest.fixture
def new_dispatcher(database, settings, worker):
    """Make dispatchers that are turned by hand, tick by tick."""
    made = []

    def make(execute=None, slots=2, **changes):
        placement = InProcess(execute or worker, slots)
        chosen = settings.model_copy(update=changes)
        dispatcher = Dispatcher(database, placement, chosen)
        made.append(dispatcher)
        return dispatcher

    yield make
    worker.gate.set()
    for dispatcher in made:
        dispatcher.context.placement.close()


@pytest.fixture
def turn(database):
    """Tick a dispatcher until a campaign is in a state."""

    def until(dispatcher, campaign, *states, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            dispatcher.tick()
            with database.read() as connection:
                found = campaigns.get(connection, campaign, deleted=True)
            if found.state in states:
                return found
            time.sleep(0.01)
        raise AssertionError(f"still {found.state}, not {states}: {found}")

    return until


class ServerInThread(Server):
    """A server with what its tests need."""

    url: str
    stop: Callable[[], None]
    app: FastAPI


class ServedClient(httpx.Client):
    """A client that knows its server."""

    server: ServerInThread


@pytest.fixture
def serve(settings, worker):
    """Start services on a real socket, with the tiny worker."""
    started = []

    def start(**changes):
        chosen = settings.model_copy(update=changes)
        app = create_app(chosen, lambda _: InProcess(worker, 2))
        server = ServerInThread(app, "127.0.0.1", 0)
        thread = threading.Thread(target=server.serve_here)
        thread.start()
        deadline = time.monotonic() + 20
        while not server.started and thread.is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.01)

        def stop():
            server.should_exit = True
            thread.join(15)
            assert not thread.is_alive()

        started.append(stop)
        server.url = f"http://127.0.0.1:{server.port}"
        server.stop = stop
        server.app = app
        return server

    yield start
    worker.gate.set()
    for stop in started:
        stop()


@pytest.fixture
def client(serve):
    server = serve()
    with ServedClient(base_url=server.url, timeout=20) as client:
        client.server = server
        yield client


@pytest.fixture
def wait_for(client):
    """Wait until a campaign is in one of some states."""

    def wait(campaign, *states, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            shown = client.get(f"/v1/campaigns/{campaign}").json()
            if shown["state"] in states:
                return shown
            time.sleep(0.02)
        raise AssertionError(f"still {shown['state']}, not {states}")

    return wait


@pytest.fixture
def receiver():
    with receiving() as found:
        yield found


@pytest.fixture
def quick_sender(monkeypatch):
    monkeypatch.setattr(sender, "LOOK_S", 0.02)


@pytest.fixture
def hooked(serve, receiver, quick_sender):
    """A client of a service that may send to the receiver."""
    server = serve(webhook_networks=HERE, webhook_retry=0.05)
    with Client(server.url) as client:
        yield client
