from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.extend(
    str(Path(__file__).parents[1] / package)
    for package in ("faults", "service", "workers")
)

import arena
import measured
import postgres

# else the titles that Dask gives, where setproctitle is installed, are written over the
# variables by which `arena.session` finds its processes
os.environ.setdefault("SPT_NOENV", "1")


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The Green's functions of a campaign that nothing disturbed, and its store."""
    folder = tmp_path_factory.mktemp("undisturbed")
    service = arena.Service(folder, str(folder / "db.sqlite"))
    try:
        service.start()
        campaign = service.submit()

        def complete():
            shown = service.get(f"/campaigns/{campaign}")
            assert shown["state"] not in {"failed", "paused"}, shown["error"]
            return shown["state"] == "complete"

        arena.until(complete, 400, service.log)
        tries = [len(group["attempts"]) for group in service.groups(campaign)]
        assert tries == [1] * arena.N_GROUPS
    finally:
        service.stop()
    return service.greens(campaign)


@pytest.fixture(scope="session")
def postgres_server():
    with postgres.server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server):
    with postgres.database(postgres_server) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """A fresh database: every test that asks for it runs on both."""
    if request.param == "sqlite":
        return str(tmp_path / "db.sqlite")
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def new_service(tmp_path):
    """Make services whose every process is gone when the test ends."""
    made = []

    def make(database, name="service", **options):
        options.setdefault("store", tmp_path / "store")
        service = arena.Service(tmp_path / name, database, **options)
        made.append(service)
        return service

    yield make
    for service in made:
        service.stop()


@pytest.fixture
def with_models(undisturbed):
    """Give a store the model of the undisturbed campaign, to save its building."""

    def copy(store):
        shutil.copytree(undisturbed.parents[2] / "models", store / "models")

    return copy


@pytest.fixture
def service(new_service, database_url, undisturbed, with_models):
    """A running service with nothing to do."""
    made = new_service(database_url)
    with_models(made.store)
    return made.start()


@pytest.fixture
def record(record_property, request):
    """Write a row of the table of measures down."""

    def write(row):
        named = getattr(request.node, "callspec", None)
        # a deployment of several processes has one database and is not named after it
        which = named.params.get("database_url", "") if named else ""
        row["fault"] += {"sqlite": ", SQLite", "postgresql": ", PostgreSQL"}.get(
            which, ""
        )
        row["load"] = round(os.getloadavg()[0], 1)
        record_property("fault_row", json.dumps(row))

    return write


@pytest.fixture
def record_kills(record_property):
    """Write down what a deployment went through in which anything was killed."""

    def write(row):
        row["load"] = round(os.getloadavg()[0], 1)
        record_property("kills_row", json.dumps(row))

    return write


def pytest_terminal_summary(terminalreporter):
    killed = [
        json.loads(value)
        for report in terminalreporter.stats.get("passed", [])
        for name, value in getattr(report, "user_properties", [])
        if name == "kills_row" and report.when == "call"
    ]
    if (name := os.environ.get("AFTERSLIP_KILLS_JSON")) and killed:
        measured.keep_kills(Path(name), killed, measured.commit())
    passed, failed = [], []
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            if getattr(report, "when", "") != "call":
                continue
            rows = [v for n, v in report.user_properties if n == "fault_row"]
            (passed if outcome == "passed" else failed).extend(map(json.loads, rows))
    if not passed and not failed:
        return
    terminalreporter.section("what the faults cost")
    for line in measured.table([*passed, *failed]).splitlines():
        terminalreporter.write_line(line)
    if name := os.environ.get("AFTERSLIP_FAULTS_JSON"):
        measured.keep(Path(name), passed, failed, measured.commit())
