"""A real small campaign on a real cluster: damage is found and solved again."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "workers"))
from small_campaign import SPEC

from afterslip.client import Client
from afterslip_service import embedded
from afterslip_service.reconcile import scrubber


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_damaged_shard_comes_back_bitwise_equal(tmp_path, monkeypatch):
    monkeypatch.setattr(scrubber, "BEGIN_S", 0.0)
    spec = {key: value for key, value in SPEC.items() if key != "stations"}
    with (
        embedded.start(tmp_path, workers=1, scrub_every=2 / 3600) as service,
        Client(service.url) as client,
    ):
        campaign = client.submit(spec)
        campaign.wait(timeout=400)
        before = campaign.greens()["response"].to_numpy()
        root = tmp_path / "store/campaigns" / campaign.id / "greens.zarr"
        (path,) = (p for p in (root / "response/c/1").rglob("*") if p.is_file())
        whole = path.read_bytes()
        path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        deadline = time.monotonic() + 400
        while len(campaign.group(1)["attempts"]) < 2 or campaign.state != "complete":
            assert time.monotonic() < deadline, "not solved again"
            time.sleep(0.5)
            campaign.refresh()
        again = campaign.greens()["response"].to_numpy()
    assert path.read_bytes() == whole
    assert before.tobytes() == again.tobytes()
