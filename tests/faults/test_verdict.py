"""The checks after random kills find what they are there to find."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import drawing
import pytest
import verdict

from afterslip_service.engine.states import JobKind


def account(*moves, kind="group.state"):
    found = [
        SimpleNamespace(
            id=number, kind=kind, campaign="c", data={"index": 0, "state": state}
        )
        for number, state in enumerate(moves)
    ]
    job = SimpleNamespace(
        id="j", kind=JobKind.GROUP, campaign_id="c", ordinal=0, state="accepted"
    )
    return SimpleNamespace(events=found, jobs={"j": job})


def test_legal_moves_are_no_deviation():
    moves = "queued", "running", "waiting", "queued", "stored", "accepted"
    assert list(verdict._illegal(account(*moves))) == []


@pytest.mark.parametrize(
    "moves",
    [
        ("queued", "accepted"),
        ("queued", "stored", "accepted", "waiting", "queued", "stored", "accepted"),
        ("queued", "stored"),
        (),
    ],
    ids=["not stored", "accepted twice", "not reported", "no events"],
)
def test_moves_that_no_group_may_make_are_found(moves):
    assert list(verdict._illegal(account(*moves)))


def test_file_that_is_written_again_is_found(tmp_path):
    shard = tmp_path / "campaigns/c/greens.zarr/response/c/0/0"
    shard.parent.mkdir(parents=True)
    shard.write_bytes(b"numbers")
    here = SimpleNamespace(store=tmp_path, backend=SimpleNamespace(remote=False))
    before = {("c", 0): verdict.submitting.stamps_of(here, "c", 0)}
    assert before["c", 0]
    known = SimpleNamespace(here=here)
    assert list(verdict.touched(known, before)) == []
    again = shard.with_name("again")
    again.write_bytes(b"numbers")
    again.replace(shard)
    assert [what for what, _ in verdict.touched(known, before)] == ["duplicate"]


def test_seed_draws_the_same_again():
    one, two = (list(itertools.islice(drawing.draws(5), 200)) for _ in range(2))
    assert one == two
    assert {draw.role for draw in one} == set(drawing.WEIGHTS)
    assert list(itertools.islice(drawing.draws(6), 200)) != one
