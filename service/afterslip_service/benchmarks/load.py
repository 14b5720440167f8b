"""The service under load: what it dispatches, answers and tells, beside its database.

Dispatcher and API are processes of their own, as deployed. The floor of every figure
is the same database's, in the same run.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from afterslip_common.record import Record, record
from afterslip_service import clock
from afterslip_service.benchmarks import seeding
from afterslip_service.benchmarks.simulated import Sleepers
from afterslip_service.db.session import Database
from afterslip_service.db.tables import attempts, campaigns, events
from afterslip_service.engine.states import AttemptState
from afterslip_service.reconcile.dispatcher import Dispatcher
from afterslip_service.settings import Settings
from afterslip_workers import entry

N_CAMPAIGNS, N_GROUPS = 10_000, 20
N_WITHOUT_SERVER = 500
USERS = 20
SLOTS, SLEEP_S = 128, 0.2
LISTENERS, TELLINGS = 200, 10
REPEATS = 40
START_S = 60.0
WAIT_S = 30.0
_PROGRAM = "from afterslip.cli.main import main; main()"


def records(
    server: str | None = None, n_campaigns: int | None = None, seconds: float = 20.0
) -> list[Record]:
    """Fill a new database, dispatch from it, ask it and listen to it.

    Parameters
    ----------
    server : URL of a PostgreSQL server on which a database may be made; None for
        the one on this machine, or a smaller SQLite file where none answers.
    n_campaigns : of 20 groups each; 10,000 if not given, 500 in SQLite.
    seconds : that the dispatcher is measured, s.
    """
    if server is None and seeding.answers(seeding.LOCAL):
        server = seeding.LOCAL
    n_campaigns = n_campaigns or (N_CAMPAIGNS if server else N_WITHOUT_SERVER)
    with tempfile.TemporaryDirectory(prefix="afterslip-load-") as place:
        folder = Path(place)
        with seeding.fresh(server, folder) as url:
            settings = Settings(database=url, store=folder / "store")
            entry.prepare(settings.store)
            database = Database(url)
            try:
                begin = time.perf_counter()
                identities = seeding.fill(
                    database, folder / "store", n_campaigns, N_GROUPS, USERS
                )
                filled = time.perf_counter() - begin
                return _measure(database, settings, folder, identities, seconds, filled)
            finally:
                database.close()


def _measure(
    database: Database,
    settings: Settings,
    folder: Path,
    identities: list[str],
    seconds: float,
    filled: float,
) -> list[Record]:
    kind = "SQLite" if database.is_sqlite else "PostgreSQL"
    size = f"{len(identities)} campaigns, {len(identities) * N_GROUPS} groups, {kind}"
    floor_s, insert_s = _floors(database, identities)
    found = [
        record("select_ms", 1e3 * floor_s, "ms", None, f"one campaign by key, {size}"),
        record("insert_ms", 1e3 * insert_s, "ms", None, "one event, committed alone"),
        record("filled_s", filled, "s", None, size),
    ]
    rate, cost, load = _dispatch(database, settings, seconds)
    note = (
        f"{SLOTS} slots of {SLEEP_S} s; from the claim to the acceptance, with the "
        f"manifest synchronised; load average {load:.1f}; baseline: bare INSERTs, "
        "each committed alone"
    )
    found.append(record("dispatch_per_s", rate, "1/s", 1 / insert_s, note))
    note = "processor time of the dispatcher for a group; the rate ends at its inverse"
    found.append(record("dispatch_cpu_ms", 1e3 * cost, "ms", None, note))
    with _served(settings, folder) as url, httpx.Client(base_url=url) as client:
        found += _asked(client, identities, floor_s, "")
        with _dispatching(database, settings):
            found += _asked(client, identities, floor_s, "_busy")
        found += asyncio.run(_delivered(client, url, identities, insert_s))
    return found


def _floors(database: Database, identities: list[str]) -> tuple[float, float]:
    """Return the medians of a bare SELECT and of a bare INSERT, s."""
    query = sa.select(campaigns.c.state)
    row: dict[str, Any] = {
        "time": clock.now(),
        "campaign": None,
        "kind": "benchmark",
        "data": {},
    }

    def select() -> None:
        with database.read() as connection:
            connection.execute(query.where(campaigns.c.id == identities[0])).scalar()

    def insert() -> None:
        with database.write() as connection:
            connection.execute(events.insert(), row)

    return _median(select), _median(insert)


def _median(act: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        act()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


@contextmanager
def _dispatching(database: Database, settings: Settings) -> Iterator[Dispatcher]:
    """Dispatch to sleepers, in threads of this process."""
    sleepers = Sleepers(SLOTS, SLEEP_S)
    dispatcher = Dispatcher(database, sleepers, settings)
    sleepers.wake = dispatcher.wake
    dispatcher.start()
    try:
        yield dispatcher
    finally:
        dispatcher.stop(WAIT_S)
        sleepers.close()


def _dispatch(
    database: Database, settings: Settings, seconds: float
) -> tuple[float, float, float]:
    """Return groups accepted in a second, processor time of each, load average."""
    with _dispatching(database, settings):
        _await(lambda: _accepted(database) > 0)
        before, begin, used = _accepted(database), time.monotonic(), time.process_time()
        time.sleep(seconds)
        done = _accepted(database) - before
        took, used = time.monotonic() - begin, time.process_time() - used
    return done / took, used / max(done, 1), os.getloadavg()[0]


def _accepted(database: Database) -> int:
    query = sa.select(sa.func.count()).where(attempts.c.state == AttemptState.ACCEPTED)
    with database.read() as connection:
        return int(connection.execute(query).scalar_one())


def _await(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + START_S
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the service did not get ready within {START_S:.0f} s")
        time.sleep(0.05)
    return found


@contextmanager
def _served(settings: Settings, folder: Path) -> Iterator[str]:
    """Serve the API in a process of its own; yield its URL."""
    log = folder / "serve.log"
    command = [sys.executable, "-c", _PROGRAM, "serve", "--dispatcher", "off"]
    command += ["--store", str(settings.store), "--port", "0"]
    hidden = {**os.environ, "AFTERSLIP_DATABASE": settings.database}

    def address() -> str | None:
        if process.poll() is not None:
            raise RuntimeError(f"the API ended: {log.read_text()[-2000:]}")
        lines = log.read_text().splitlines()
        said = [line.split()[-1] for line in lines if "afterslip serves at" in line]
        return said[0] if said else None

    with log.open("w") as stream:
        process = subprocess.Popen(
            command, stdout=stream, stderr=subprocess.STDOUT, env=hidden
        )
    try:
        yield _await(address)
    finally:
        process.terminate()
        process.wait(WAIT_S)


def _asked(
    client: httpx.Client, identities: list[str], floor_s: float, mark: str
) -> list[Record]:
    """Measure what a person looks at."""
    one = f"/v1/campaigns/{identities[len(identities) // 2]}"
    paths = {
        "list": "/v1/campaigns",
        "show": one,
        "groups": f"{one}/groups",
        "explain": f"{one}/explain",
    }
    found = []
    for name, path in paths.items():
        client.get(path, timeout=WAIT_S).raise_for_status()

        def ask(path: str = path) -> None:
            client.get(path, timeout=WAIT_S).raise_for_status()

        while_ = "while a dispatcher works; " if mark else ""
        note = f"median of {REPEATS} over HTTP, {while_}baseline: bare SELECT"
        ms = 1e3 * _median(ask)
        found.append(record(f"{name}{mark}_ms", ms, "ms", 1e3 * floor_s, note))
    return found


async def _delivered(
    client: httpx.Client, url: str, identities: list[str], insert_s: float
) -> list[Record]:
    """Measure how long an event takes to all listeners."""
    host, _, port = url.partition("://")[2].partition(":")
    streams = [await asyncio.open_connection(host, int(port)) for _ in range(LISTENERS)]
    try:
        for reader, writer in streams:
            text = f"GET /v1/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
            writer.write(text.encode())
            await asyncio.wait_for(reader.readuntil(b"retry: "), WAIT_S)
        await asyncio.sleep(1.0)
        first, last = [], []
        for identity in identities[-TELLINGS:]:
            begin = time.perf_counter()
            hears = [
                asyncio.create_task(_hear(reader, identity, begin))
                for reader, _ in streams
            ]
            path = f"/v1/campaigns/{identity}/pause"
            answer = await asyncio.to_thread(client.post, path, timeout=WAIT_S)
            answer.raise_for_status()
            times = await asyncio.gather(*hears)
            first.append(min(times))
            last.append(max(times))
    finally:
        for _, writer in streams:
            writer.close()
    base = 1e3 * insert_s
    who = f"median of {TELLINGS} events, from the request that causes it to the"
    note = f"{who} last of {LISTENERS} listeners; baseline: bare INSERT"
    found = [record("told_all_ms", 1e3 * statistics.median(last), "ms", base, note)]
    note = f"{who} first of {LISTENERS} listeners; baseline: bare INSERT"
    found.append(
        record("told_first_ms", 1e3 * statistics.median(first), "ms", base, note)
    )
    return found


async def _hear(reader: asyncio.StreamReader, identity: str, begin: float) -> float:
    await asyncio.wait_for(reader.readuntil(identity.encode()), WAIT_S)
    # the rest of the event must not be taken for the next one
    return time.perf_counter() - begin
