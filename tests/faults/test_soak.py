"""A long life in minutes: users act at random, and processes die at random.

AFTERSLIP_SOAK_S is how long (600 s if unset), AFTERSLIP_SOAK_SEED repeats a run.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import random
import sys
import time

import arena
import deployed
import httpx
import numpy as np
import postgres
import psutil
import pytest
import tiny_store
import tiny_worker

LENGTH_S = float(os.environ.get("AFTERSLIP_SOAK_S", "600"))
SETTLE_S = 600.0
# more would only wait
CAMPAIGNS_UNDER_WAY = 8
FAILURE_SHARE = "0.03"
VICTIMS = ("api", "leader", "standby", "scheduler", "nanny", "worker", "child")
pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.timeout(LENGTH_S + 2 * SETTLE_S),
]
TWICE = """
SELECT count(*) FROM (SELECT job_id FROM attempts WHERE state = 'accepted'
GROUP BY job_id HAVING count(*) > 1) AS twice
"""


class Life:
    """What happens to a deployment, drawn from a seed."""

    def __init__(self, here, seed):
        self.here, self.draw = here, random.Random(seed)
        self.campaigns, self.kills, self.acts = [], {}, {}

    def turn(self):
        """Do one thing."""
        acts = {
            self.submit: 4,
            self.kill: 2,
            self.pause: 1,
            self.resume: 2,
            self.cancel: 1,
            self.uncancel: 2,
            self.retry: 3,
            self.invalidate: 2,
        }
        (act,) = self.draw.choices(list(acts), list(acts.values()))
        done = act()
        if done is not False:
            self.acts[act.__name__] = self.acts.get(act.__name__, 0) + 1

    def submit(self):
        shown = [
            self.here.get(f"/campaigns/{c}")["state"] for c in self.campaigns[-20:]
        ]
        if sum(state != "complete" for state in shown) >= CAMPAIGNS_UNDER_WAY:
            return False
        name = f"soak {len(self.campaigns)}"
        self.campaigns.append(self.here.submit(name))
        return True

    def kill(self):
        victim = self.draw.choice(VICTIMS)
        with contextlib.suppress(AssertionError, psutil.NoSuchProcess, ValueError):
            self.here.victim(victim).kill()
            self.kills[victim] = self.kills.get(victim, 0) + 1

    def act(self, what, **more):
        """Ask for something; what a campaign's state forbids is refused, and fine."""
        if not self.campaigns:
            return False
        path = f"/v1/campaigns/{self.draw.choice(self.campaigns)}/{what}"
        with contextlib.suppress(httpx.TransportError):
            answer = arena.http.post(self.here.url + path, timeout=30, **more)
            assert answer.status_code in {200, 409, 422, 503}, answer.text
            return answer.status_code == 200
        return False

    def pause(self):
        return self.act("pause")

    def resume(self):
        return self.act("resume")

    def cancel(self):
        return self.act("cancel")

    def uncancel(self):
        return self.act("uncancel")

    def retry(self):
        return self.act("groups/retry", json={})

    def invalidate(self):
        group = self.draw.randrange(deployed.GROUPS)
        return self.act("groups/invalidate", json={"groups": [group]})

    def settle(self):
        """Undo what users stopped; True when everything is done."""
        left = 0
        for campaign in self.campaigns:
            state = self.here.get(f"/campaigns/{campaign}")["state"]
            undo = {"paused": "resume", "cancelled": "uncancel", "failed": "retry"}
            if state in undo:
                self.here.post(f"/campaigns/{campaign}/{undo[state]}")
            left += state != "complete"
        return not left


def test_nothing_is_lost_in_a_long_life(tmp_path, postgres_server, record):
    seed = int(os.environ.get("AFTERSLIP_SOAK_SEED", time.time_ns() % 2**32))
    sys.stdout.write(f"seed {seed}, {LENGTH_S:.0f} s\n")
    # it lasts longer than any other test may without being taken for stuck
    faulthandler.cancel_dump_traceback_later()
    failing = tmp_path / "failing"
    failing.write_text(FAILURE_SHARE)
    with postgres.database(postgres_server) as url:
        here = deployed.Deployment(tmp_path, url, AFTERSLIP_FAULTS_FAIL=str(failing))
        life = Life(here, seed)
        try:
            here.start()
            end = time.monotonic() + LENGTH_S
            while time.monotonic() < end:
                life.turn()
                time.sleep(life.draw.uniform(0.1, 1.5))
            failing.write_text("0")
            settled = time.monotonic()
            here.await_ready(120)
            arena.until(life.settle, SETTLE_S, here.log, 1.0)
            summary = f"{len(life.campaigns)} campaigns, acts {life.acts}, {life.kills}"
            took = time.monotonic() - settled
            sys.stdout.write(f"{summary} killed; settled in {took:.0f} s\n")
            check(here, life, record, seed)
        finally:
            here.stop()


def check(here, life, record, seed):
    """Compare every campaign with what it should be."""
    meant = np.stack(
        [tiny_store.response(k) for k in range(deployed.GROUPS * deployed.LANES)]
    )
    wrong, tries = 0, 0
    for campaign in life.campaigns:
        stored = tiny_worker.stored(here.store, campaign)
        wrong += not np.array_equal(stored, meant)
        for group in here.groups(campaign):
            accepted = [a for a in group["attempts"] if a["state"] == "accepted"]
            wrong += len(accepted) != 1
            tries += len(group["attempts"])
    (twice,) = here.sql(TWICE)
    (live,) = here.sql(deployed.LIVE)
    total = deployed.GROUPS * len(life.campaigns)
    record(
        {
            "fault": f"soak of {LENGTH_S:.0f} s",
            "note": f"seed {seed}: {len(life.campaigns)} campaigns, "
            f"{sum(life.kills.values())} kills",
            "seconds": LENGTH_S,
            "groups again": tries - total,
            "solves again": deployed.SOLVES * (tries - total),
            "lost": wrong,
            "twice": twice,
            "result": "differs" if wrong else "bitwise",
        }
    )
    assert (wrong, twice, live) == (0, 0, 0)
    assert life.campaigns
    assert life.kills
