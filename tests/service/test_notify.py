"""What one process writes wakes the others, which stop as soon as they are asked."""

from __future__ import annotations

import time

import psycopg
import pytest

from afterslip_service.db import events, notify
from afterslip_service.db.notify import Listener
from afterslip_service.db.session import Database

pytestmark = pytest.mark.databases("postgresql")

OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN%'
"""


@pytest.fixture
def woken(database):
    """Times at which a listener of this process was woken."""
    times = []
    listener = Listener(database, lambda: times.append(time.monotonic()))
    listener.start()
    yield times
    listener.stop()


@pytest.fixture
def other(database_url):
    database = Database(database_url)
    yield database
    database.close()


def change(database):
    with database.write() as connection:
        events.append(connection, "c", "group.state", {})


def changed_until(database, times):
    deadline = time.monotonic() + 10
    while not times and time.monotonic() < deadline:
        change(database)
        time.sleep(0.1)
    assert times


def test_processes_wake_each_other_and_not_themselves(database, other, woken):
    changed_until(other, woken)
    time.sleep(0.3)
    heard = len(woken)
    change(database)
    time.sleep(0.5)
    assert len(woken) == heard


def test_change_wakes_at_once_and_each_one_does(other, woken):
    changed_until(other, woken)
    time.sleep(0.3)
    for _ in range(3):
        heard, began = len(woken), time.monotonic()
        change(other)
        while len(woken) == heard and time.monotonic() < began + 5:
            time.sleep(0.001)
        assert woken[-1] - began < 0.5


def test_connection_that_is_lost_is_made_again(database_url, other, woken, monkeypatch):
    monkeypatch.setattr(notify, "RETRY_S", 0.05)
    changed_until(other, woken)
    with psycopg.connect(database_url, autocommit=True) as connection:
        assert connection.execute(OTHERS).fetchall()
    woken.clear()
    changed_until(other, woken)


def test_nothing_is_waited_for_when_it_stops(database, other):
    times = []
    listener = Listener(database, lambda: times.append(1))
    listener.start()
    changed_until(other, times)
    began = time.monotonic()
    listener.stop()
    assert time.monotonic() - began < 0.5
    before = len(times)
    change(other)
    time.sleep(0.2)
    assert len(times) == before


def test_waiting_takes_no_processor(other, woken):
    changed_until(other, woken)
    time.sleep(0.3)
    used = time.process_time()
    time.sleep(0.4)
    assert time.process_time() - used < 0.2
