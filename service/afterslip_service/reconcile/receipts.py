"""Receipts: stored, promoted, accepted; each step once, each may be repeated."""

from __future__ import annotations

from typing import Any

import structlog

from afterslip_service.db import attempts, campaigns, events, inversions, jobs
from afterslip_service.db.jobs import Job, NewJob
from afterslip_service.db.session import Connection
from afterslip_service.engine.campaign import greens_done
from afterslip_service.engine.states import (
    AttemptState,
    JobKind,
    JobState,
)
from afterslip_service.placement.base import Ended
from afterslip_service.reconcile import failures
from afterslip_service.reconcile.context import Context
from afterslip_workers import entry

log = structlog.get_logger()
_KEPT = frozenset({JobState.STORED, JobState.ACCEPTED})


def take(context: Context, ended: Ended) -> bool:
    """Write down how an attempt ended.

    Returns
    -------
    False if the receipt was refused: its attempt no longer holds the job. What
    it wrote is swept away.
    """
    outcome = (ended.receipt or {}).get("outcome", "failed")
    # a process that dies between its last byte and its word has stored all the same
    manifest = (ended.receipt or {}).get("manifest") or entry.read_manifest(
        context.store, ended.token
    )
    if manifest is not None and outcome == "failed" and ended.receipt is None:
        outcome = "stored"
    with context.write() as connection:
        job = jobs.by_token(connection, ended.token)
        if job is not None and job.token == ended.token and job.state in _KEPT:
            # told twice: what it wrote is still needed, or is in the campaign
            return False
        taken = job is not None and _write_down(
            context, connection, job, ended, outcome, manifest
        )
    context.watched.pop(ended.token, None)
    if not taken:
        log.warning("late receipt refused", token=ended.token, outcome=outcome)
    if not taken or outcome != "stored":
        entry.discard(context.store, ended.token)
    return taken


def _write_down(
    context: Context,
    connection: Connection,
    job: Job,
    ended: Ended,
    outcome: str,
    manifest: dict[str, Any] | None,
) -> bool:
    receipt = ended.receipt or {}
    stats = receipt.get("stats") or {}
    known: dict[str, Any] = {"stats": stats} if stats else {}
    if stats.get("worker"):
        known["worker"] = str(stats["worker"])
    campaigns.get(connection, job.campaign_id, lock=True, deleted=True)
    if outcome == "stored" and manifest is not None:
        if not jobs.move(connection, job, JobState.STORED, holder=ended.token):
            return False
        known.setdefault("stats", manifest.get("stats"))
        attempts.finish(
            connection, ended.token, AttemptState.STORED, manifest=manifest, **known
        )
        return True
    known["log"] = entry.read_log(context.store, ended.token) or None
    if outcome == "cancelled":
        return failures.cancelled(connection, job, ended.token, **known)
    error = receipt.get("error") or {}
    return failures.fail(
        connection,
        job,
        ended.token,
        error.get("class") or ended.error_class or "internal",
        error.get("message") or ended.message or "the worker gave no reason",
        **known,
    )


def accept(context: Context, job: Job) -> None:
    """Promote what a stored attempt wrote, then accept the job.

    Promotion is a set of renames that may be repeated, so a crash between it and
    the acceptance is mended by doing both again.
    """
    token = job.token or ""
    with context.database.read() as connection:
        attempt = attempts.get(connection, token)
    if attempt is None or attempt.manifest is None:
        problem: tuple[str, str] | None = ("internal", "the manifest is gone")
        manifest: dict[str, Any] = {}
    else:
        manifest = attempt.manifest
        problem = _promote(context, job, manifest)
    with context.write() as connection:
        campaigns.get(connection, job.campaign_id, lock=True, deleted=True)
        if problem is not None and problem[0] == "store_full":
            failures.pause(connection, job.campaign_id, *problem)
            return
        if problem is not None:
            failures.fail(connection, job, token, *problem)
            return
        if not jobs.move(connection, job, JobState.ACCEPTED, holder=token):
            return
        attempts.update(connection, token, state=AttemptState.ACCEPTED)
        _follow(connection, job, manifest)
        campaigns.refresh(connection, job.campaign_id)
    entry.discard(context.store, token)


def _promote(
    context: Context, job: Job, manifest: dict[str, Any]
) -> tuple[str, str] | None:
    """Move the files; return class and message of what went wrong."""
    try:
        entry.promote(context.store, job.campaign_id, manifest)
    except entry.StoreError as error:
        return "internal", str(error)
    except OSError as error:
        return "store_full", f"the result could not be moved into the store: {error}"
    return None


def _follow(connection: Connection, job: Job, manifest: dict[str, Any]) -> None:
    """Write what an acceptance makes possible."""
    if job.kind is JobKind.MODEL:
        _open_groups(connection, job.campaign_id, manifest)
    elif job.kind is JobKind.INVERSION:
        inversion = inversions.of_job(connection, job.id)
        summary = manifest.get("summary") or {}
        inversions.set_summary(connection, inversion.id, summary)


def _open_groups(
    connection: Connection, campaign: str, manifest: dict[str, Any]
) -> None:
    groups = manifest["groups"]
    new = [
        NewJob(JobKind.GREENS, index, {"sources": sources})
        for index, sources in enumerate(groups)
    ]
    jobs.create(connection, campaign, new)
    hidden = {"files", "groups", "sources", "token", "version", "kind", "campaign"}
    model = {key: value for key, value in manifest.items() if key not in hidden}
    n_sources = int(manifest["n_sources"])
    campaigns.set_model(connection, campaign, model, n_sources)
    data = {"model": model, "n_sources": n_sources, "n_groups": len(groups)}
    events.append(connection, campaign, events.MODEL_BUILT, data)


def close_campaign(context: Context, campaign: str) -> None:
    """Mark the Green's functions complete once every group is accepted."""
    entry.finish(context.store, campaign)
    with context.write() as connection:
        found = campaigns.get(connection, campaign, lock=True, deleted=True)
        if greens_done(campaigns.standing(connection, found)):
            campaigns.set_finished(connection, campaign)
            campaigns.refresh(connection, campaign)
