"""Acceptance: what is stored moves into its campaign; each step may be repeated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from afterslip.error_class import ErrorClass
from afterslip.errors import SpecError
from afterslip_service import clock
from afterslip_service.db import (
    attempts,
    campaigns,
    events,
    inversions,
    jobs,
    sources,
)
from afterslip_service.db.attempts import Attempt
from afterslip_service.db.jobs import Job, NewJob
from afterslip_service.db.session import Connection
from afterslip_service.engine.campaign import greens_done
from afterslip_service.engine.states import JobKind, JobState
from afterslip_service.reconcile import failures, reuse
from afterslip_service.reconcile.context import Context
from afterslip_service.reconcile.reuse import Plan
from afterslip_workers import entry
from afterslip_workers.messages import (
    InversionManifest,
    Manifest,
    ModelManifest,
    Stats,
    TaskError,
    read_manifest,
)

ASK_AGAIN_S = 2.0
PROMOTERS = 8
Problem = tuple[ErrorClass, str]


@dataclass(slots=True)
class _Promoted:
    """A stored job whose files are in the campaign, or the reason why not."""

    job: Job
    manifest: Manifest | None
    problem: Problem | None
    began: datetime
    plan: Plan | None = None
    seconds: float | None = None

    @property
    def token(self) -> str:
        return self.job.token or ""


def accept_all(context: Context, meanwhile: Callable[[], None] | None = None) -> bool:
    """Promote what stored attempts wrote, then accept their jobs.

    Promotion is a set of renames that may be repeated, so a crash between it and
    the acceptance is repaired by doing both again.

    Parameters
    ----------
    meanwhile : done while the promotions wait for the disk.

    Returns
    -------
    True if anything was accepted, so that more may have become possible.
    """
    with context.database.read() as connection:
        found = jobs.stored(connection)
        now = context.ticks()
        found = [j for j in found if context.postponed.get(j.token or "", 0.0) <= now]
        tokens = [job.token for job in found if job.token]
        tries = attempts.many(connection, tokens)
        before = attempts.stored_before(connection, tokens)
    # mostly waits for the disk; each has files of its own
    with ThreadPoolExecutor(PROMOTERS) as pool:
        coming = pool.map(
            lambda j: _promote(
                context, j, tries.get(j.token or ""), before.get(j.token or "", ())
            ),
            found,
        )
        if meanwhile is not None:
            meanwhile()
        promoted = [item for item in coming if item is not None]
    if not promoted:
        return False
    with context.write() as connection:
        accepted, full = _accept(connection, promoted)
    for item in promoted:
        context.postponed.pop(item.token, None)
        if item.token in accepted:
            entry.discard(context.store, item.token)
    for campaign in full:
        close_campaign(context, campaign)
    return bool(accepted)


def _promote(
    context: Context, job: Job, attempt: Attempt | None, before: Sequence[str]
) -> _Promoted | None:
    """Move the files into the campaign; None if they are still to come.

    Parameters
    ----------
    before : earlier attempts at the job that stored a result. They are discarded
        first: a dispatcher that was suspended while it promoted one of them then
        finds nothing left that it could move over what is promoted now.
    """
    began = clock.now()
    if attempt is None or attempt.manifest is None:
        gone = (ErrorClass.INTERNAL, "the manifest is gone")
        return _Promoted(job, None, gone, began)
    try:
        manifest = read_manifest(attempt.manifest)
    except TaskError as error:
        return _Promoted(job, None, (error.error_class, error.message), began)
    stats = Stats.model_validate(attempt.stats or {})
    try:
        for token in before:
            entry.discard(context.store, token)
        entry.promote(context.store, job.campaign_id, manifest)
        plan = None
        if isinstance(manifest, ModelManifest):
            plan = reuse.arrange(context, job.campaign_id, manifest)
        return _Promoted(job, manifest, None, began, plan, stats.seconds)
    except entry.NotDeliveredError as error:
        # the worker keeps it on its own disk, and sends it when the store is back
        since = attempt.finished_at or clock.now()
        limit = timedelta(seconds=context.settings.spool_wait)
        if stats.spooled and clock.now() - since < limit:
            context.postponed[attempt.token] = context.ticks() + ASK_AGAIN_S
            return None
        return _Promoted(job, manifest, (ErrorClass.INTERNAL, str(error)), began)
    except SpecError as error:
        # the service was started without it: the groups cannot be planned
        return _Promoted(job, manifest, (ErrorClass.NOT_INSTALLED, str(error)), began)
    except entry.StoreError as error:
        return _Promoted(job, manifest, (ErrorClass.INTERNAL, str(error)), began)
    except OSError as error:
        # it may be back by now
        away = isinstance(error, entry.StoreLostError)
        if away or not entry.reachable(context.store):
            context.postponed[attempt.token] = context.ticks() + ASK_AGAIN_S
            return None
        message = f"the result could not be moved into the store: {error}"
        return _Promoted(job, manifest, (ErrorClass.STORE_FULL, message), began)


def _accept(
    connection: Connection, promoted: Sequence[_Promoted]
) -> tuple[set[str], list[str]]:
    """Return the tokens accepted, and the campaigns that are to be closed."""
    tokens = [item.token for item in promoted]
    found = jobs.by_tokens(connection, tokens, lock=True)
    good: list[_Promoted] = []
    for item in promoted:
        job = found.get(item.token)
        if job is None or job.token != item.token or job.state is not JobState.STORED:
            continue
        if item.problem is None:
            good.append(item)
        elif item.problem[0] is ErrorClass.STORE_FULL:
            failures.pause_full(
                connection, job.campaign_id, item.problem[1], item.began
            )
        else:
            failures.fail(connection, job, item.token, *item.problem)
    if not good:
        return set(), []
    jobs.move_all(connection, [(item.job, {}) for item in good], JobState.ACCEPTED)
    accepted = {item.token for item in good}
    attempts.accept(connection, accepted, [item.job.id for item in good])
    took = _follow(connection, good)
    touched = {item.job.campaign_id for item in good}
    return accepted, campaigns.refresh_all(connection, touched, took)


def _follow(
    connection: Connection, good: Sequence[_Promoted]
) -> dict[str, list[float]]:
    """Write what acceptances make possible; return how long the groups took, s."""
    seconds: dict[str, list[float]] = {}
    rows: list[dict[str, Any]] = []
    for item in good:
        campaign = item.job.campaign_id
        manifest = item.manifest
        if isinstance(manifest, ModelManifest):
            _open_groups(connection, campaign, manifest, item.plan)
        elif isinstance(manifest, InversionManifest):
            inversion = inversions.of_job(connection, item.job.id)
            inversions.set_summary(connection, inversion.id, manifest.summary)
        elif manifest is not None:
            if item.seconds is not None and not item.job.payload.get("taken"):
                seconds.setdefault(campaign, []).append(item.seconds)
            rows += reuse.registration(campaign, item.token, manifest)
    sources.register(connection, rows)
    return seconds


def _open_groups(
    connection: Connection, campaign: str, manifest: ModelManifest, plan: Plan | None
) -> None:
    plan = plan or Plan.plain(manifest)
    jobs.create(
        connection,
        campaign,
        [
            NewJob(JobKind.GROUP, index, payload)
            for index, payload in enumerate(plan.payloads)
        ],
    )
    sources.plan(connection, plan.sources)
    hidden = {"files", "groups", "sources", "token", "version", "kind", "campaign",
              "reuse"}  # fmt: skip
    model = {
        key: value for key, value in manifest.as_json().items() if key not in hidden
    }
    model["n_reused"] = plan.n_reused
    n_sources = manifest.n_sources
    campaigns.set_model(connection, campaign, model, n_sources)
    data = {"model": model, "n_sources": n_sources, "n_groups": len(plan.payloads)}
    events.append(connection, campaign, events.MODEL_BUILT, data)


def close_campaign(context: Context, campaign: str) -> None:
    """Mark the Green's functions complete once every group is accepted."""
    entry.finish(context.store, campaign)
    with context.write() as connection:
        found = campaigns.get(connection, campaign, lock=True, deleted=True)
        if greens_done(campaigns.job_tally(connection, found)):
            campaigns.set_finished(connection, campaign)
            campaigns.refresh(connection, campaign)
