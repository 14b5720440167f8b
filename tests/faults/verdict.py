"""What must hold when all campaigns have ended, no matter what was killed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict

import numpy as np
import sqlalchemy as sa
import submitting
import xarray as xr

from afterslip.archive import open_greens
from afterslip_service.db.tables import attempts, campaigns, events, inversions, jobs
from afterslip_service.engine.states import JobKind, JobState, may_move
from afterslip_workers.messages.manifest import read_manifest
from afterslip_workers.store.commit import moves_of

CAMPAIGN_STATE = "campaign.state"
STEPS = {"group.state": "index", "inversion.state": "id"}
# what an inversion writes besides its result tells when it was made
NUMBERS = "result.nc"


class Account:
    """What a deployment holds of its campaigns, to be compared with another's.

    Parameters
    ----------
    identities : ids of the campaigns by their numbers.
    """

    def __init__(self, here, identities):
        self.here, self.identities = here, identities
        with here.known.read() as connection:
            self.campaigns = _rows(connection, campaigns, campaigns.c.id)
            self.jobs = _rows(connection, jobs, jobs.c.id)
            self.attempts = _rows(connection, attempts, attempts.c.token)
            self.inversions = _rows(connection, inversions, inversions.c.id)
            query = sa.select(events).order_by(events.c.id)
            self.events = connection.execute(query).all()

    def of(self, campaign, kind):
        """Return the jobs of a campaign, in their order."""
        found = [
            job
            for job in self.jobs.values()
            if job.campaign_id == campaign and job.kind == kind
        ]
        return sorted(found, key=lambda job: job.ordinal)

    def manifest(self, job):
        """Return the manifest of the attempt that a job's result is of."""
        return self.attempts[job.token].manifest

    def values(self, number):
        """Return digests of a campaign's arrays and of its groups' files.

        The arrays are decoded from the store; the files' checksums are those of the
        accepted manifests.
        """
        campaign = self.identities[number]
        backend = self.here.backend
        greens = open_greens(backend.zarr(f"campaigns/{campaign}/greens.zarr"))
        found = {f"array {name}": _digest(greens[name]) for name in greens.variables}
        for job in self.of(campaign, JobKind.GROUP):
            for name, digest in self.manifest(job)["files"].items():
                found[f"group {job.ordinal} {name}"] = digest
        for row in self.inversions.values():
            if row.campaign_id == campaign:
                key = f"campaigns/{campaign}/inversions/{row.id}/{NUMBERS}"
                with backend.local(key) as path, xr.open_dataset(path) as made:
                    for name in made.variables:
                        found[f"inversion {row.name} {name}"] = _digest(made[name])
        return found


def _rows(connection, table, key):
    rows = connection.execute(sa.select(table)).all()
    return {getattr(row, key.name): row for row in rows}


def _digest(variable):
    values = np.ascontiguousarray(variable.values)
    if values.dtype.kind == "O":
        return repr(values.tolist())
    return hashlib.sha256(values.tobytes()).hexdigest()


def deviations(account, reference):
    """Yield (kind, sentence) for whatever is not as it should be.

    Parameters
    ----------
    reference : digests of the same campaigns where nothing was killed, by number.

    Returns
    -------
    Kinds are "lost", "duplicate" and "event".
    """
    for number, campaign in account.identities.items():
        row = account.campaigns[campaign]
        if row.state != "complete":
            yield "lost", f"campaign {number} {campaign} is {row.state}"
            continue
        yield from _accepted_once(account, number, campaign)
        ours, theirs = account.values(number), reference[number]
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                yield "lost", f"campaign {number} {campaign}: {name} differs"
    extra = set(account.campaigns) - set(account.identities.values())
    for campaign in sorted(extra):
        yield "duplicate", f"nobody knows of campaign {campaign}"
    yield from _illegal(account)


def _accepted_once(account, number, campaign):
    """Compare database and store: each job accepted, once, and of that attempt."""
    groups = account.of(campaign, JobKind.GROUP)
    if len(groups) != submitting.N_GROUPS:
        yield "lost", f"campaign {number} has {len(groups)} groups"
    wanted = int(submitting.inverts(number))
    inverted = account.of(campaign, JobKind.INVERSION)
    if len(inverted) != wanted:
        yield "duplicate", f"campaign {number} has {len(inverted)} inversions"
    tries = defaultdict(list)
    for attempt in account.attempts.values():
        tries[attempt.job_id].append(attempt)
    for job in [*account.of(campaign, JobKind.MODEL), *groups, *inverted]:
        what = f"campaign {number} {campaign} {job.kind} {job.ordinal}"
        if job.state != JobState.ACCEPTED:
            yield "lost", f"{what} is {job.state}"
            continue
        states = Counter(attempt.state for attempt in tries[job.id])
        if states["accepted"] != 1 or states["replaced"]:
            yield "duplicate", f"{what} has attempts {dict(states)}"
        live = [s for s in ("queued", "running", "stored") if states[s]]
        if live:
            yield "lost", f"{what} has attempts {live} that nobody works on"
        yield from _of_its_attempt(account, job, campaign, what)


def _of_its_attempt(account, job, campaign, what):
    """Compare the store's own manifest, and stamps of files, with the database."""
    here = account.here
    stem = "model" if job.kind == JobKind.MODEL else str(job.ordinal)
    if job.kind == JobKind.INVERSION:
        stem = f"inversion-{account.manifest(job)['inversion']['id']}"
    stored = here.backend.read(f"campaigns/{campaign}/manifests/{stem}.json")
    token = json.loads(stored)["token"] if stored else None
    if token != job.token:
        yield "duplicate", f"{what}: the store has {token}, accepted is {job.token}"
    if not stored:
        return
    for _, key, digest in moves_of(campaign, read_manifest(json.loads(stored))):
        if here.backend.size(key) is None or here.backend.sha256(key) != digest:
            yield "lost", f"{what}: {key} is not what its manifest says"


def touched(account, stamps):
    """Yield of each group whose files were written again after it was accepted."""
    for (campaign, group), before in stamps.items():
        after = submitting.stamps_of(account.here, campaign, group)
        changed = [key for key in before if after.get(key) != before[key]]
        if changed:
            text = f"campaign {campaign} group {group} was written again: {changed}"
            yield "duplicate", text


def _illegal(account):
    """Yield the moves that no job may make, and campaigns that jump."""
    states = {}
    accepted = Counter()
    for event in account.events:
        if event.kind in STEPS:
            state = JobState(event.data["state"])
            job = event.campaign, event.kind, event.data[STEPS[event.kind]]
            was = states.get(job, JobState.WAITING)
            if not may_move(was, state):
                yield "event", f"event {event.id}: {job} from {was} to {state}"
            states[job] = state
            accepted[job] += state is JobState.ACCEPTED
        elif event.kind == CAMPAIGN_STATE:
            before = states.get(event.campaign)
            if event.data.get("was") != before:
                yield "event", f"event {event.id}: campaign was {before}: {event.data}"
            states[event.campaign] = event.data["state"]
    for job, times in accepted.items():
        if times != 1:
            yield "event", f"{job} was reported as accepted {times} times"
    for job in account.jobs.values():
        if job.kind == JobKind.GROUP:
            reported = states.get((job.campaign_id, "group.state", job.ordinal))
            if reported != job.state:
                yield "event", f"group {job.id} is {job.state}, reported as {reported}"
