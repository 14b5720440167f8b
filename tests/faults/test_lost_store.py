"""The store goes away while results are to be written, and comes back."""

from __future__ import annotations

import time

import arena
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

AWAY_S = 8.0


def test_nothing_is_solved_twice_when_the_store_was_away(service, undisturbed, record):
    campaign = service.submit()
    service.hold_solving(campaign)
    measure = arena.Measure(service, campaign, "store away at commit, then back")
    away = service.store.with_name("away")
    service.store.rename(away)
    service.go_on()
    time.sleep(AWAY_S)
    assert not service.store.exists(), "nobody writes where a mount is missing"
    away.rename(service.store)
    row = measure.close(service, undisturbed, record)
    assert row["groups again"] == 0
    assert row["solves again"] == 0
    assert row["result"] == "bitwise"
