"""Campaigns that are submitted one after the other, while processes die."""

from __future__ import annotations

import contextlib
import copy
import threading

import arena
import deployed
import httpx
import numpy as np
import small_campaign
import sqlalchemy as sa

UNDER_WAY = 4
N_GROUPS = 4
# every so many campaigns has an inversion
INVERT_EVERY = 3
LOOK_EVERY_S = 0.5
OPEN = "SELECT count(*) FROM campaigns WHERE state <> 'complete'"
ENDED_BADLY = """
SELECT id, name, state, error_class, error_message FROM campaigns
WHERE state IN ('failed', 'paused', 'cancelled')
"""
ACCEPTED = """
SELECT campaign_id, ordinal, token FROM jobs
WHERE kind = 'group' AND state = 'accepted'
"""
RNG = np.random.default_rng(3)
CSV = "station,x_km,y_km,east,north,up\n" + "".join(
    f"S{n:02d},{x:.2f},{y:.2f},{e:.4f},{n_:.4f},{u:.4f}\n"
    for n, (x, y, e, n_, u) in enumerate(
        zip(
            RNG.uniform(-80, 80, 8),
            RNG.uniform(-80, 80, 8),
            *RNG.normal(0, 0.1, (3, 8)),
            strict=True,
        )
    )
)


def spec(number, file=None):
    """Return campaign ``number``: 6,309 unknowns, 16 unit sources in four groups.

    No two share a model, so that nothing is taken from another campaign.

    Parameters
    ----------
    file : reference of the stations' file, for an inversion.
    """
    whole = copy.deepcopy(small_campaign.SPEC)
    del whole["stations"]
    whole["name"] = f"campaign {number}"
    mantle = whole["model"]["layers"][1]["rheology"]["maxwell"]
    mantle["viscosity"] = 1e19 * (1 + number * 1e-3)
    whole["model"]["mesh"]["size"] = {"fault": 25, "far": 120}
    whole["sources"] = {"fault": "main", "along_strike": 4, "down_dip": 2}
    whole["solver"] = {"tolerance": 1e-9, "time_tolerance": 1e-8}
    if file is not None:
        data = {"name": "gnss", "file": file, "sigma": deployed.SIGMA}
        whole["datasets"] = [data]
        whole["inversions"] = [{"name": "slip", "datasets": ["gnss"]}]
    return whole


def inverts(number):
    """Tell whether a campaign has an inversion."""
    return number % INVERT_EVERY == 0


class Users(threading.Thread):
    """Submit campaigns, so that there is always work, and look at what is accepted.

    Each is asked for again, with the same idempotency key, until the API has
    answered: it may have died before or after it wrote the campaign down.

    Attributes
    ----------
    campaigns : ids by number.
    stamps : files of each group when it was first found accepted, see `stamps_of`,
        by (campaign, group).
    trouble : what ended this thread, or a campaign, before its time.
    """

    def __init__(self, here):
        super().__init__(daemon=True)
        self.here = here
        self.campaigns: dict[int, str] = {}
        self.stamps: dict[tuple[str, int], dict] = {}
        self.trouble = None
        self._over = threading.Event()
        self._file = None

    def run(self):
        while not self._over.wait(LOOK_EVERY_S):
            try:
                self._look()
            except (httpx.TransportError, sa.exc.OperationalError):
                continue
            except Exception as error:  # noqa: BLE001 - the test ends with it
                self.trouble = repr(error)
                return

    def finish(self):
        """Submit no more."""
        self._over.set()
        self.join(60)
        with contextlib.suppress(httpx.TransportError, sa.exc.OperationalError):
            self.look_at_accepted()

    def _look(self):
        if bad := self.here.rows(ENDED_BADLY):
            self.trouble = str([tuple(row) for row in bad])
            return
        self.look_at_accepted()
        ((still,),) = self.here.rows(OPEN)
        if still < UNDER_WAY:
            self._submit(len(self.campaigns))

    def _submit(self, number):
        if self._file is None:
            self._file = self._ask("/files", content=CSV.encode())["ref"]
        file = self._file if inverts(number) else None
        key = {"Idempotency-Key": f"campaign-{number}"}
        made = self._ask("/campaigns", json=spec(number, file), headers=key)
        self.campaigns[number] = made["id"]

    def _ask(self, path, **more):
        answer = arena.http.post(f"{self.here.url}/v1{path}", timeout=20, **more)
        if answer.status_code >= 500 or answer.status_code == 409:
            # it cannot act now, or a dead process had begun to answer this key
            raise httpx.TransportError(answer.text)
        assert answer.status_code in {200, 201}, answer.text
        return answer.json()

    def look_at_accepted(self):
        """Note what the files of newly accepted groups are."""
        for campaign, group, _ in self.here.rows(ACCEPTED):
            if (campaign, group) not in self.stamps:
                self.stamps[campaign, group] = stamps_of(self.here, campaign, group)


def stamps_of(here, campaign, group):
    """Return what changes when a file of a group is written again.

    Empty where the store is a bucket.
    """
    if here.backend.remote:
        return {}
    root = here.store / "campaigns" / campaign / "greens.zarr"
    found = {}
    for path in root.glob(f"*/c/{group}/**/*"):
        if path.is_file():
            facts = path.stat()
            found[str(path)] = facts.st_ino, facts.st_mtime_ns
    for path in root.glob(f"*/c/{group}"):
        if path.is_file():
            facts = path.stat()
            found[str(path)] = facts.st_ino, facts.st_mtime_ns
    return found
