"""Bits flip in what an attempt wrote, before it is accepted."""

from __future__ import annotations

import arena
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


def test_damaged_shard_is_refused_and_solved_again(service, undisturbed, record):
    campaign = service.submit()
    token, _ = service.hold_solving(campaign)
    measure = arena.Measure(service, campaign, "a bit flipped before promotion")
    attempt = service.store / "attempts" / token
    with arena.frozen(service.process):
        service.go_on()
        arena.until((attempt / "manifest.json").exists, 60, "the group is stored")
        (shard,) = [
            path
            for path in attempt.glob("group.zarr/response/c/**/*")
            if path.is_file()
        ]
        content = bytearray(shard.read_bytes())
        content[len(content) // 2] ^= 1
        shard.write_bytes(content)
    row = measure.close(service, undisturbed, record)
    assert row["groups again"] == 1
    assert row["result"] == "bitwise"
    hit = [g for g in service.groups(campaign) if g["attempts"][0]["token"] == token]
    assert "checksum" in hit[0]["attempts"][0]["error"]["message"]
