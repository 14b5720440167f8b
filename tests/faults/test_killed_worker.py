"""A Dask worker dies: its nanny starts another."""

from __future__ import annotations

import arena
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


def test_group_of_killed_worker_is_solved_again(service, undisturbed, record):
    campaign = service.submit()
    token, child = service.hold_solving(campaign)
    measure = arena.Measure(service, campaign, "Dask worker killed while solving")
    child.parent().kill()
    service.go_on()
    arena.until(lambda: not child.is_running(), 5, "the child dies with its worker")
    row = measure.close(service, undisturbed, record)
    assert row["groups again"] == 1
    assert row["result"] == "bitwise"
    hit = [g for g in service.groups(campaign) if g["attempts"][0]["token"] == token]
    assert hit[0]["attempts"][0]["error"]["class"] == "worker_lost"
    assert len(service.get("/workers")["items"]) == 2
