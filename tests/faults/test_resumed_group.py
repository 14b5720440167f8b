"""A group whose computing process is killed half-way goes on where it was."""

from __future__ import annotations

import copy
import threading
import time

import psutil
import pytest
import small_campaign

from afterslip_workers import entry
from afterslip_workers.messages import read_manifest
from afterslip_workers.process import supervisor
from afterslip_workers.process.children import Pool

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

KILL_AFTER = 8
GROUP = (0, [0, 1, 2, 3])


@pytest.fixture
def pool(monkeypatch, tmp_path):
    monkeypatch.setenv("AFTERSLIP_CHECKPOINT_S", "0")
    monkeypatch.setenv("AFTERSLIP_SPOOL", str(tmp_path / "spool"))
    pool = Pool()
    monkeypatch.setattr(supervisor, "pool", pool)
    yield pool
    pool.close()


def stepping(spec):
    spec["solver"] = {"integrator": "stepping", "step": "60 d"}


def spectral(spec):
    # tolerances that make every solve long enough to be hit
    spec["times"]["until"] = "100 yr"
    spec["solver"] = {"tolerance": 1e-12, "time_tolerance": 1e-11}
    spec["model"]["mesh"]["size"] = {"fault": 8, "far": 60}


def waves(spec):
    spec["physics"] = "waves"
    del spec["times"], spec["model"]["mesh"]
    for layer in spec["model"]["layers"]:
        layer.pop("rheology", None)
    spec["model"]["faults"][0]["plane"]["top"] = 5
    spec["waves"] = {
        "frequency": 0.06,
        "points_per_wavelength": 6,
        # longer than from one writing of its progress to the next
        "duration": "900 s",
        "sampling": "2.5 s",
        "source_time": {"kind": "smooth_step", "rise": "22 s"},
    }


@pytest.mark.parametrize("kind", [stepping, spectral, waves])
def test_killed_group_resumes_from_its_last_solve(tmp_path, pool, record, kind):
    spec = copy.deepcopy(small_campaign.SPEC)
    kind(spec)
    campaign = small_campaign.SmallCampaign(tmp_path / "store", spec)
    made = entry.execute(campaign.envelope("model", "m1"))
    entry.promote(campaign.root, "c1", read_manifest(made["manifest"]))
    whole = entry.execute(campaign.group("whole", *GROUP))
    assert whole["outcome"] == "stored", whole["error"]
    backend = entry.open_store(campaign.root)
    backend.remove(f"checkpoints/{whole['stats']['checkpoint']}")

    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(entry.execute(campaign.group("hit", *GROUP)))
    )
    thread.start()
    end = time.monotonic() + 120
    while True:
        found = entry.read_progress(campaign.root, "hit")
        if found is not None and (found.solves_done or 0) >= KILL_AFTER:
            break
        assert time.monotonic() < end
        time.sleep(0.02)
    began = time.monotonic()
    (child,) = psutil.Process().children()
    child.kill()
    thread.join(30)
    assert answers[0]["error"]["class"] == "killed"
    assert backend.keys("checkpoints"), "the state outlives its attempt"
    again = entry.execute(campaign.group("again", *GROUP))
    assert again["outcome"] == "stored", again["error"]
    stats = again["stats"]
    assert stats["resumed_from"] >= KILL_AFTER - 1
    assert stats["solves_repeated"] <= 1
    assert stats["solves"] == whole["stats"]["solves"]
    assert again["manifest"]["files"] == whole["manifest"]["files"], "bit for bit"
    entry.promote(campaign.root, "c1", read_manifest(again["manifest"]))
    assert backend.keys("checkpoints") == [], "swept with the acceptance"
    record(
        {
            "fault": f"child killed in a {kind.__name__} group",
            "seconds": round(time.monotonic() - began, 1),
            "groups again": 0,
            "solves again": stats["solves_repeated"],
            "lost": 0,
            "twice": 0,
            "result": "bitwise",
        }
    )
