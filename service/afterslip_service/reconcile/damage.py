"""What follows damage in the store: results are taken back and made again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

import structlog

from afterslip_service import clock
from afterslip_service.db import bulk, events
from afterslip_service.db.jobs import Job
from afterslip_service.db.session import Connection
from afterslip_workers import entry
from afterslip_workers.messages import Manifest

log = structlog.get_logger()
# files are removed within the first; a new attempt begins after the second, also if
# we die between the two: its files then replace the damaged ones
REMOVE_S = 60.0
BEGIN = timedelta(seconds=180)

Write = Callable[[], AbstractContextManager[Connection]]


def make_again(
    write: Write,
    store: Path | str,
    campaign: str,
    damaged: Sequence[tuple[Manifest, list[str]]],
) -> set[str]:
    """Take damaged groups and inversions of a campaign back, and queue them.

    First the database no longer counts them as accepted, then their files go, then
    new attempts may begin. What was accepted anew meanwhile is left alone.

    Parameters
    ----------
    write : opens a writing transaction.
    damaged : accepted manifests, each with the keys that are damaged or missing.

    Returns
    -------
    Tokens of the attempts that were taken back.

    Raises
    ------
    OSError, StoreError
        If the store cannot be written; the new attempts replace its files all the
        same.
    """
    manifests = {manifest.token: manifest for manifest, _ in damaged}
    keys = {manifest.token: found for manifest, found in damaged}
    began = time.monotonic()
    with write() as connection:
        taken = bulk.retract(connection, campaign, set(manifests), clock.now() + BEGIN)
        for job in taken:
            _tell(connection, job, keys[job.token or ""])
    tokens = {job.token or "" for job in taken}
    for token in sorted(tokens):
        entry.retract_result(
            store,
            campaign,
            manifests[token],
            lambda: time.monotonic() - began < REMOVE_S,
        )
    if taken:
        with write() as connection:
            bulk.release(connection, campaign, taken)
    return tokens


def _tell(connection: Connection, job: Job, keys: list[str]) -> None:
    data = {"kind": job.kind, "index": job.index, "files": keys, "again": True}
    events.append(connection, job.campaign_id, events.STORE_DAMAGED, data)
    log.error(
        "damaged result",
        campaign=job.campaign_id,
        kind=job.kind.value,
        index=job.index,
        token=job.token,
        files=keys,
        then="made again",
    )
