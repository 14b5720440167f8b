"""The process that computes dies."""

from __future__ import annotations

import arena
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


def test_group_of_killed_child_is_solved_again(service, undisturbed, record):
    campaign = service.submit()
    token, child = service.hold_solving(campaign)
    measure = arena.Measure(service, campaign, "solver child killed while solving")
    child.kill()
    service.go_on()
    row = measure.close(service, undisturbed, record)
    assert row["groups again"] == 1
    assert row["result"] == "bitwise"
    hit = [g for g in service.groups(campaign) if g["attempts"][0]["token"] == token]
    (first, second) = hit[0]["attempts"]
    assert first["error"]["class"] == "killed"
    assert "SIGKILL" in first["error"]["message"]
    assert second["state"] == "accepted"
