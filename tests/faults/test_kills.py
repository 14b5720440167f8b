"""Campaigns with the real solver go on while any process is killed at any moment.

AFTERSLIP_KILLS is how many processes are killed, shared between three deployments (if
unset 20, in one of them); AFTERSLIP_KILLS_SEED repeats a run.
"""

from __future__ import annotations

import faulthandler
import os
import random
import sys
import time
from dataclasses import dataclass

import arena
import postgres
import pytest
import submitting
import verdict
from killing import Killer
from objects import Objects
from real_deployment import RealDeployment

from afterslip_service.db.session import Database
from afterslip_workers import entry

DEPLOYMENTS = ["PostgreSQL, folder", "PostgreSQL, bucket", "SQLite, folder"]
if given := os.environ.get("AFTERSLIP_KILLS"):
    N = -(-int(given) // len(DEPLOYMENTS))
else:
    N, DEPLOYMENTS = 20, DEPLOYMENTS[:1]
SETTLE_S = 600.0
BUCKET = "bucket"
pytestmark = [pytest.mark.faults, pytest.mark.timeout(1200 + 6 * N)]


@dataclass
class Quiet:
    """A deployment in which nothing was killed, as far as `verdict` looks at it."""

    service: arena.Service
    known: Database

    @property
    def store(self):
        return self.service.store

    @property
    def backend(self):
        return entry.open_store(self.store)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Solve campaigns where nothing is killed; each once, however many ask for it."""
    folder = tmp_path_factory.mktemp("reference")
    service = arena.Service(folder, str(folder / "db.sqlite"))
    known: dict[int, dict[str, str]] = {}
    identities: dict[int, str] = {}

    def values(numbers):
        wanted = sorted(set(numbers) - set(known))
        if not wanted:
            return known
        service.start()
        try:
            url = f"{service.url}/v1"
            csv = submitting.CSV.encode()
            file = arena.http.post(f"{url}/files", content=csv).json()["ref"]
            for number in wanted:
                spec = submitting.spec(
                    number, file if submitting.inverts(number) else None
                )
                made = arena.http.post(f"{url}/campaigns", json=spec, timeout=60)
                identities[number] = made.json()["id"]
            database = Database(service.database)
            quiet = Quiet(service, database)
            try:
                arena.until(lambda: _all_done(quiet), SETTLE_S + 10 * len(wanted))
                account = verdict.Account(quiet, identities)
                known.update({number: account.values(number) for number in wanted})
            finally:
                database.close()
        finally:
            service.stop()
        return known

    yield values
    service.stop()


def _all_done(here):
    """Tell whether every job is accepted and every campaign closed."""
    with here.known.read() as connection:
        ask = connection.exec_driver_sql
        left = ask("SELECT count(*) FROM jobs WHERE state <> 'accepted'").scalar()
        still = "SELECT count(*) FROM campaigns WHERE state <> 'complete'"
        return not left and not ask(still).scalar()


@pytest.fixture(params=DEPLOYMENTS)
def deployment(request, tmp_path, postgres_server, monkeypatch):
    """Yield a seed, and a running deployment of each kind."""
    given = os.environ.get("AFTERSLIP_KILLS_SEED")
    seed = int(given) if given else time.time_ns() % 2**32
    delays = random.Random(seed + 1)
    kind = request.param
    if kind.startswith("SQLite"):
        url = str(tmp_path / "db.sqlite")
        here = RealDeployment(tmp_path, url, tmp_path / "store", delays)
        yield from _running(seed, here)
        return
    with postgres.database(postgres_server) as url:
        if kind.endswith("folder"):
            here = RealDeployment(tmp_path, url, tmp_path / "store", delays)
            yield from _running(seed, here)
            return
        objects = Objects(tmp_path)
        try:
            objects.start()
            for name, value in objects.environment.items():
                monkeypatch.setenv(name, value)
            to = f"{objects.environment['AWS_ENDPOINT_URL']}/{BUCKET}"
            arena.http.put(to).raise_for_status()
            # places are remembered by their address
            address = f"s3://{BUCKET}/{objects.way.port}"
            yield from _running(seed, RealDeployment(tmp_path, url, address, delays))
        finally:
            objects.close()


def _running(seed, here):
    try:
        yield seed, here.start()
    finally:
        here.stop()


def test_nothing_is_lost_when_anything_is_killed(
    deployment, reference, record_kills, request
):
    seed, here = deployment
    kind = request.node.callspec.params["deployment"]
    sys.stdout.write(f"\n{kind}: AFTERSLIP_KILLS_SEED={seed}, {N} kills\n")
    # it lasts longer than any other test may without being taken for stuck
    faulthandler.cancel_dump_traceback_later()
    users = submitting.Users(here)
    killer = Killer(here, seed, users)
    began = time.monotonic()
    users.start()
    try:
        try:
            killer.kill(N)
        finally:
            killer.resume_all()
            users.finish()
        killed_s = time.monotonic() - began
        account = settled(here, users)
        numbers = sorted(users.campaigns)
        sys.stdout.write(f"{len(numbers)} campaigns; comparing\n")
        wrong = list(verdict.deviations(account, reference(numbers)))
        wrong += verdict.touched(account, users.stamps)
        wrong += leftovers(here)
    except (AssertionError, pytest.fail.Exception) as error:
        journal = "\n".join(killer.journal)
        raise AssertionError(f"seed {seed}\n{journal}\n{error}") from error
    kinds = [what for what, _ in wrong]
    tries = len(account.attempts) - len(account.jobs)
    record_kills(
        {
            "deployment": kind,
            "seed": seed,
            "kills": _table(killer.kills),
            "pauses": _table(killer.pauses),
            "campaigns": len(numbers),
            "jobs": len(account.jobs),
            "jobs again": tries,
            "lost": kinds.count("lost"),
            "duplicates": kinds.count("duplicate"),
            "seconds": round(killed_s, 1),
            "settled in": round(time.monotonic() - began - killed_s, 1),
        }
    )
    text = "\n".join(sentence for _, sentence in wrong)
    assert not wrong, f"seed {seed}\n" + "\n".join([*killer.journal, text])
    assert len(account.jobs) > len(numbers) > 0


def settled(here, users):
    """Wait until everything that was asked for is done, and account for it."""
    here.await_ready(180)

    def done():
        assert not here.rows(submitting.ENDED_BADLY), here.rows(submitting.ENDED_BADLY)
        return _all_done(here)

    arena.until(done, SETTLE_S, here.log, 0.5)
    users.look_at_accepted()
    return verdict.Account(here, users.campaigns)


def leftovers(here):
    """Yield what should be gone: processes, spooled results, folders of attempts."""
    try:
        arena.until(lambda: not here.leftovers(), 30)
    except AssertionError:
        names = [f"{p.pid} {' '.join(p.cmdline())}" for p in here.leftovers()]
        yield "lost", f"processes of dead starts live on: {names}"
    spooled = [p for p in here.spool.glob("*/*") if p.is_dir()]
    if here.backend.remote and spooled:
        yield "lost", f"the spool holds {spooled}"
    if swept := here.sweep():
        yield "lost", f"the sweep left the attempts {swept}"
    for finding in here.fsck():
        yield "lost", f"fsck: {finding}"


def _table(counter):
    """Return counts as {victim: {moment: count}}."""
    found: dict[str, dict[str, int]] = {}
    for (victim, moment), count in sorted(counter.items()):
        found.setdefault(victim, {})[moment] = count
    return found
