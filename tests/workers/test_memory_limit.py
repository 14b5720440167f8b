"""A computing process that outgrows its share of the memory is ended by name."""

from __future__ import annotations

import copy
import sys
import time
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import small_campaign
from supervised import FAKE, envelope

from afterslip_workers import entry
from afterslip_workers.machine import limit
from afterslip_workers.machine.model_cache import warm_limit
from afterslip_workers.process import supervisor
from afterslip_workers.process.children import Pool


@pytest.fixture
def pool(monkeypatch, tmp_path):
    entry.prepare(tmp_path)
    pool = Pool((FAKE,))
    monkeypatch.setattr(supervisor, "pool", pool)
    yield pool
    pool.close()


def test_process_that_outgrows_its_limit_is_ended_and_the_next_task_runs(
    tmp_path, monkeypatch, pool
):
    small = entry.execute(envelope(tmp_path, "a0", do="nothing"))
    assert small["outcome"] == "stored"
    monkeypatch.setenv(limit.ENV, "1G")
    begin = time.monotonic()
    receipt = entry.execute(
        envelope(tmp_path, "a1", do="grow", bytes=1.3e9, seconds=60)
    )
    assert time.monotonic() - begin < 40
    assert receipt["outcome"] == "failed"
    assert receipt["error"]["class"] == "out_of_memory"
    text = receipt["error"]["message"]
    assert "and 1.07 GB are allowed" in text
    assert "mesh.size" in text
    assert limit.ENV in text
    assert not psutil.pid_exists(small["stats"]["pid"])
    after = entry.execute(envelope(tmp_path, "a2", do="nothing"))
    assert after["outcome"] == "stored"
    assert after["stats"]["pid"] != small["stats"]["pid"]


@pytest.mark.slow
def test_mesh_that_is_too_large_is_stopped_while_it_is_built(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "pool", Pool())
    entry.prepare(tmp_path)
    spec = copy.deepcopy(small_campaign.SPEC)
    spec["model"]["mesh"]["size"] = {"fault": 0.4, "far": 50}
    made = small_campaign.SmallCampaign(tmp_path, spec)
    monkeypatch.setenv(limit.ENV, "500M")
    try:
        receipt = entry.execute(made.envelope("model", "a1", timeout_s=300))
        assert receipt["error"]["class"] == "out_of_memory", receipt["error"]
        assert "0.52 GB are allowed" in receipt["error"]["message"]
        # the next one has a process of its own, and room
        made = small_campaign.SmallCampaign(tmp_path, identity="c2")
        monkeypatch.setenv(limit.ENV, "4G")
        receipt = entry.execute(made.envelope("model", "a2", timeout_s=300))
        assert receipt["outcome"] == "stored", receipt["error"]
    finally:
        supervisor.pool.close()


def test_process_below_its_limit_is_left_alone(tmp_path, monkeypatch, pool):
    monkeypatch.setenv(limit.ENV, "4G")
    order = {"do": "grow", "bytes": 2e8, "seconds": 1}
    assert entry.execute(envelope(tmp_path, **order))["outcome"] == "stored"


def test_limit_is_a_share_of_machine_or_group_unless_it_is_given(monkeypatch):
    monkeypatch.delenv(limit.ENV, raising=False)
    monkeypatch.setenv(limit.SHARES_ENV, "4")
    assert limit.of_machine() <= psutil.virtual_memory().total
    assert limit.of_child() == int(0.9 * limit.of_machine() / 4)
    monkeypatch.delenv("AFTERSLIP_WARM_BYTES", raising=False)
    assert warm_limit() == (limit.of_child() or 0) // 4
    for text, count in (
        ("8G", 8 << 30), ("512 MiB", 512 << 20), ("1e9", 10**9), ("1.5gb", 3 << 29)
    ):  # fmt: skip
        monkeypatch.setenv(limit.ENV, text)
        assert limit.of_child() == count
    monkeypatch.setenv(limit.ENV, "0")
    assert limit.of_child() is None
    for text in ("many", "-1", "nan", "inf", "8X"):
        monkeypatch.setenv(limit.ENV, text)
        with pytest.raises(ValueError, match=r"AFTERSLIP_CHILD_MEMORY.*write bytes"):
            limit.of_child()
