from __future__ import annotations

import contextlib

from sqlalchemy.exc import OperationalError

from afterslip_service.reconcile import receipts


def test_receipt_outlives_a_database_that_is_away(
    new_dispatcher, new_campaign, turn, worker, monkeypatch
):
    """A failure reported meanwhile is not taken for silence, which costs a minute."""
    worker.fail["group", 0] = ["internal"]
    take, refused = receipts.take_all, []

    def away(context, ended):
        failed = [e for e in ended if (e.receipt or {}).get("outcome") == "failed"]
        if failed and len(refused) < 2:
            refused.append(failed[0].token)
            raise OperationalError("SELECT 1", {}, Exception("server closed"))
        return take(context, ended)

    monkeypatch.setattr(receipts, "take_all", away)
    dispatcher = new_dispatcher()
    tick = dispatcher.tick

    def stumbling():
        with contextlib.suppress(OperationalError):
            tick()

    monkeypatch.setattr(dispatcher, "tick", stumbling)
    campaign = new_campaign()
    turn(dispatcher, campaign, "complete", seconds=15)
    assert len(refused) == 2
    assert worker.ran[campaign, "group", 0] == 2
