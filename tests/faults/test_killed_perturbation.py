"""The service dies while one request makes several campaigns, and while they run.

The inversion of that request asks for its campaign in two other earths, which come
with it, and waits until both are solved.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress

import arena
import httpx
import psycopg
import pytest
import sqlalchemy as sa
import submitting
import verdict
from holding import Holding

from afterslip_service.db.session import Database
from afterslip_workers import entry

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

PERTURB = {
    "layers.mantle.rheology.maxwell.viscosity": ["x3"],
    "layers.crust.rigidity": ["x1.2"],
}
# numbers of `submitting`: of these three only the first has an inversion
MAIN = 0
NAMES = ["campaign 0", *(f"campaign 0 {path} {v[0]}" for path, v in PERTURB.items())]
JOBS = len(NAMES) * (1 + submitting.N_GROUPS) + 1
KEY = {"Idempotency-Key": "perturbed"}
# the last write of the request never ends
HOLD_POSTGRES = """
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$;
CREATE TRIGGER hold BEFORE INSERT ON inversions FOR EACH ROW EXECUTE FUNCTION hold();
"""
ASLEEP = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND wait_event = 'PgSleep'
"""
FREE_POSTGRES = "DROP TRIGGER hold ON inversions; DROP FUNCTION hold"
HOLD_SQLITE = """
CREATE VIEW endless AS
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;
CREATE TRIGGER hold BEFORE INSERT ON inversions
BEGIN SELECT count(*) FROM endless; END;
"""
FREE_SQLITE = "DROP TRIGGER hold; DROP VIEW endless"
STATES = "SELECT state, count(*) FROM jobs GROUP BY state"
INVERSIONS = "SELECT state FROM jobs WHERE kind = 'inversion'"


class Perturbed:
    """A service and the request that makes three campaigns, as `verdict` sees it."""

    def __init__(self, service):
        self.service, self.store = service, service.store
        self.known = Database(service.database)
        self.body = None

    @property
    def backend(self):
        return entry.open_store(self.store)

    def start(self):
        """Start the service, and upload the data the first time."""
        self.service.start()
        if self.body is None:
            csv = submitting.CSV.encode()
            answer = arena.http.post(f"{self.service.url}/v1/files", content=csv)
            self.body = submitting.spec(MAIN, answer.json()["ref"])
            self.body["inversions"][0]["model_error"] = {"perturb": PERTURB}
        return self

    def submit(self):
        """Send the request, always with the same key, and return the answer."""
        url = f"{self.service.url}/v1/campaigns"
        return arena.http.post(url, json=self.body, headers=KEY, timeout=120)

    def submit_aside(self):
        """Send the request and never hear of it."""

        def send():
            with suppress(httpx.TransportError):
                self.submit()

        threading.Thread(target=send, daemon=True).start()

    def rows(self, query):
        """Return the rows of a query on the service's database."""
        with self.known.read() as connection:
            return connection.execute(sa.text(query)).all()

    def identities(self):
        """Return the ids of the campaigns by number; each is there once."""
        found = self.service.get("/campaigns")["items"]
        assert sorted(one["name"] for one in found) == sorted(NAMES)
        return {NAMES.index(one["name"]): one["id"] for one in found}

    def standing(self):
        """Return of each accepted group its attempt, and stamps of its files."""
        return {
            (campaign, group): (token, submitting.stamps_of(self, campaign, group))
            for campaign, group, token in self.rows(submitting.ACCEPTED)
        }

    def settled(self):
        """Wait until everything is accepted, and account for it."""

        def done():
            bad = self.rows(submitting.ENDED_BADLY)
            assert not bad, bad
            (left,) = self.rows(submitting.OPEN)
            return not left[0] and dict(map(tuple, self.rows(STATES))) == {
                "accepted": JOBS
            }

        arena.until(done, 300, self.service.log, 0.2)
        return verdict.Account(self, self.identities())


@pytest.fixture
def perturbed(new_service, database_url):
    here = Perturbed(new_service(database_url))
    yield here.start()
    here.known.engine.dispose()


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Digests of everything where nothing dies, by number of the campaign."""
    folder = tmp_path_factory.mktemp("reference")
    service = arena.Service(folder, str(folder / "db.sqlite"))
    try:
        here = Perturbed(service).start()
        assert here.submit().status_code == 201
        account = here.settled()
        assert len(account.attempts) == JOBS
        found = {number: account.values(number) for number in account.identities}
    finally:
        service.stop()
    alike = [found[0][name] == found[1][name] for name in found[1] if "array" in name]
    assert not all(alike), "another earth has other Green's functions"
    assert any("inversion" in name for name in found[MAIN])
    return found


@contextmanager
def never_written(database):
    """Let no request write its inversion; yield what tells that one is about to."""
    if database.startswith("postgresql"):
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(HOLD_POSTGRES)
            yield lambda: connection.execute(ASLEEP).fetchone()
            for (process,) in connection.execute(ASLEEP).fetchall():
                connection.execute("SELECT pg_terminate_backend(%s)", [process])
            connection.execute(FREE_POSTGRES)
        return
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        connection.executescript(HOLD_SQLITE)
        yield lambda: all(_locked(database) for _ in range(20))
        connection.executescript(FREE_SQLITE)


def _locked(database):
    """Tell whether somebody else writes; looked at often, whether that lasts."""
    time.sleep(arena.POLL_S)
    with closing(sqlite3.connect(database, timeout=0)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.rollback()
        return False


def concluded(here, reference, record, fault, before, began):
    """Compare everything with what was undisturbed, and write the figures down."""
    account = here.settled()
    took = time.monotonic() - began
    wrong = list(verdict.deviations(account, reference))
    after = here.standing()
    wrong += [("lost", f"{k}") for k, was in before.items() if after.get(k) != was]
    kinds = Counter(what for what, _ in wrong)
    groups = [
        group
        for one in account.identities.values()
        for group in here.service.groups(one)
    ]
    row = {
        "fault": fault,
        "seconds": round(took, 1),
        "groups again": sum(len(group["attempts"]) - 1 for group in groups),
        "solves again": sum(arena.in_vain(group) for group in groups),
        "lost": kinds["lost"],
        "twice": kinds["duplicate"],
        "result": "differs" if wrong else "bitwise",
    }
    record(row)
    assert not wrong, "\n".join(sentence for _, sentence in wrong)
    return row


def test_killed_among_the_writes_of_a_submit(perturbed, reference, record):
    """Nothing of it is there afterwards; the same request makes all of it."""
    service = perturbed.service
    with never_written(service.database) as about_to:
        perturbed.submit_aside()
        arena.until(about_to, 60, service.log)
        began = time.monotonic()
        service.kill()
    perturbed.start()
    assert service.get("/campaigns")["items"] == []
    answer = perturbed.submit()
    assert answer.status_code == 201, answer.text
    assert "Idempotent-Replayed" not in answer.headers
    fault = "service killed among the writes that perturb a campaign"
    row = concluded(perturbed, reference, record, fault, {}, began)
    assert row["groups again"] == 0


def test_killed_as_soon_as_a_submit_is_written(perturbed, reference, record):
    """The client does not know; the same request makes nothing more."""
    service = perturbed.service
    perturbed.submit_aside()
    arena.until(lambda: perturbed.rows(INVERSIONS), 60, service.log, 0.001)
    began = time.monotonic()
    service.kill()
    perturbed.start()
    before = perturbed.identities()
    answer = perturbed.submit()
    assert answer.status_code == 201, answer.text
    assert answer.headers["Idempotent-Replayed"] == "true"
    assert answer.json()["id"] == before[MAIN]
    fault = "service killed as soon as a perturbed campaign is written"
    row = concluded(perturbed, reference, record, fault, {}, began)
    assert row["groups again"] <= service.workers
    assert perturbed.identities() == before


@pytest.mark.parametrize(("moment", "n_free"), [("first", 6), ("last", 12)])
def test_killed_while_its_campaigns_run(perturbed, reference, record, moment, n_free):
    service = perturbed.service
    assert perturbed.submit().status_code == 201
    identities = perturbed.identities()
    holding = Holding(service, n_free)
    arena.until(holding.all_held, 300, service.log, 0.02)
    before = arena.until(perturbed.standing, 60, service.log)
    assert [state for (state,) in perturbed.rows(INVERSIONS)] == ["waiting"]
    leader, began = service.process.pid, time.monotonic()
    service.kill()
    arena.until(lambda: not arena.session(leader), 20, "its workers die with it")
    perturbed.start()
    fault = f"service killed in the {moment} groups of a perturbed campaign"
    row = concluded(perturbed, reference, record, fault, before, began)
    assert row["groups again"] <= service.workers
    assert perturbed.identities() == identities
