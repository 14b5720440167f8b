"""Reasons in words: why work waits, why it failed, why nothing was reused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import sqrt
from statistics import NormalDist, fmean, median, stdev
from typing import Any

from afterslip.error_class import ErrorClass
from afterslip_service.engine.states import CampaignState, JobState

ADVICE: dict[str, str] = {
    ErrorClass.KILLED: "the solving process died: look at the end of its log",
    ErrorClass.WORKER_LOST: "its machine or connection was lost: look at the workers",
    ErrorClass.OOM: "memory ran out: use a coarser mesh or a larger machine",
    ErrorClass.OUT_OF_MEMORY: (
        "the computing process outgrew its share of the machine's memory: make the "
        "mesh coarser, run fewer workers, or raise AFTERSLIP_CHILD_MEMORY"
    ),
    ErrorClass.NO_MEMORY: (
        "the model does not fit into the memory that was free: see what else uses it, "
        "use a coarser mesh or a larger machine, then retry"
    ),
    ErrorClass.GPU_ERROR: (
        "the GPU failed: look at the end of its log, and at nvidia-smi if it happens "
        "again"
    ),
    ErrorClass.GPU_LOST: (
        "the GPU is gone: look at nvidia-smi and the kernel's log, and restart its "
        "worker"
    ),
    ErrorClass.TIMEOUT: "it took longer than allowed: raise AFTERSLIP_ATTEMPT_TIMEOUT",
    ErrorClass.NOT_CONVERGED: (
        "the solver gave up, also with more iterations: look at the mesh's quality, "
        "or loosen solver.tolerance"
    ),
    ErrorClass.NAN: "numbers became infinite: look at the materials and the mesh",
    ErrorClass.UNSTABLE: "waves grew although the step was halved: set waves.step",
    ErrorClass.STORE_FULL: "free space in the store, then resume the campaign",
    ErrorClass.STORE_LOST: (
        "the store cannot be reached: it is tried again when it is back"
    ),
    ErrorClass.DAMAGED: (
        "a file of the store is damaged: run `afterslip fsck --repair`, then retry"
    ),
    ErrorClass.BAD_INPUT: "the spec is at fault: correct it and submit again",
    ErrorClass.MESH: (
        "no mesh could be made: correct geometry or sizes and submit again"
    ),
    ErrorClass.INTERRUPTED: "the service or its worker was stopped: it is tried again",
    ErrorClass.NOT_INSTALLED: (
        "the package of the campaign's physics is missing: install it in the service "
        "and its workers, then retry"
    ),
    ErrorClass.OTHER_RELEASE: (
        "a worker is of another release than the service: install the same one; it is "
        "tried again"
    ),
    ErrorClass.INTERNAL: "an error of this program: look at the log, and report it",
}
MOST_DIFFERENCES = 6
MOST_NAMED = 4
# fewest groups whose times have a spread
LEAST_FOR_SPREAD = 5


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is as it is: a word for programs and a sentence for people."""

    code: str
    message: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """All that decides whether a campaign is served.

    Attributes
    ----------
    slots : groups that the workers can solve at a time; None: no dispatcher.
    trouble : what the dispatcher says of its workers.
    busy, limit : groups of the same user that are under way, and may be.
    above : campaigns of higher priority with work that may start.
    before : campaigns of the same priority whose turn is earlier.
    wake_at : when the next of its jobs may start.
    awaits : campaigns in other earths that its next inversion waits for.
    shares : another campaign is solving the sources of its next group.
    """

    state: CampaignState
    error_class: str | None
    error_message: str | None
    cancelling: bool
    paused: bool
    built: bool
    waiting: int
    active: int
    slots: int | None
    trouble: str | None
    busy: int
    limit: int | None
    above: int
    before: int
    wake_at: datetime | None
    now: datetime
    awaits: tuple[str, ...] = ()
    shares: bool = False


def why_waiting(s: Situation) -> list[Reason]:
    """Return all reasons why a campaign's waiting jobs do not start.

    Empty where nothing waits.
    """
    if s.state is CampaignState.CANCELLED or s.cancelling:
        return [
            Reason(
                "cancelled", "the campaign is cancelled: take it up again (uncancel)"
            )
        ]
    if s.waiting == 0 and not s.paused:
        return []
    return list(_hindrances(s))


def _hindrances(s: Situation) -> Iterator[Reason]:
    if s.paused and s.error_class == ErrorClass.STORE_FULL:
        yield Reason(
            ErrorClass.STORE_FULL.value,
            s.error_message or ADVICE[ErrorClass.STORE_FULL],
        )
    elif s.paused:
        yield Reason("paused", "the campaign is paused: resume it")
    if s.state is CampaignState.FAILED:
        yield Reason("failed", "a part has failed: nothing starts before it is retried")
    if s.slots is None:
        yield Reason("no_dispatcher", "no dispatcher runs: start one")
    elif s.trouble or s.slots == 0:
        yield Reason("no_worker", s.trouble or "there are no workers: start some")
    if s.paused or s.state is CampaignState.FAILED:
        # until somebody acts, nothing else matters
        return
    if s.awaits:
        # it has no turn before they are solved
        yield Reason("other_earths", _awaiting(s.awaits))
    else:
        yield from _before_its_turn(s)


def _before_its_turn(s: Situation) -> Iterator[Reason]:
    if not s.built:
        yield Reason("model", "the groups wait for the model, which is not built yet")
    if s.wake_at is not None and s.wake_at > s.now:
        yield _put_off(s, s.wake_at)
    if s.limit is not None and s.busy >= s.limit:
        text = f"its user has {s.busy} of {s.limit} groups under way"
        yield Reason("limit", text)
    if s.above:
        text = f"{s.above} campaigns of higher priority have work that waits"
        yield Reason("priority", text)
    if s.slots and s.busy >= 0 and not s.above:
        yield Reason("turn", _turn(s.before, s.slots))


def _put_off(s: Situation, until: datetime) -> Reason:
    if not s.shares:
        return Reason("backoff", "after a failure it pauses a while", until)
    text = "another campaign is solving the same sources: they are copied when stored"
    return Reason("shared", text, until)


def _awaiting(names: tuple[str, ...]) -> str:
    what = "1 campaign" if len(names) == 1 else f"{len(names)} campaigns"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return (
        f"its inversion waits for {what} in other earths: "
        f"{', '.join(names[:MOST_NAMED])}{more}"
    )


def _turn(before: int, slots: int) -> str:
    among = "1 slot" if slots == 1 else f"{slots} slots"
    if not before:
        return f"it is the next in turn, once one of {among} is free"
    ahead = "1 campaign comes" if before == 1 else f"{before} campaigns come"
    return f"it takes turns: {ahead} before it, {among}"


def remaining_s(
    recent: tuple[float, ...], groups: Mapping[JobState, int]
) -> float | None:
    """Return the time until all groups are accepted, at the present pace, s.

    Parameters
    ----------
    recent : how long the last accepted groups took, s.
    groups : number of groups by state.

    Returns
    -------
    None where nobody can know: before a first group ended, or while none is under way.
    """
    queued, running = groups.get(JobState.QUEUED, 0), groups.get(JobState.RUNNING, 0)
    left = queued + running + groups.get(JobState.WAITING, 0)
    # a worker may have one that waits for its turn there
    active = running or queued
    if left == 0 and groups:
        return 0.0
    if not recent or active == 0:
        return None
    return median(recent) * max(left / active, 1.0)


def remaining_interval_s(
    recent: tuple[float, ...], groups: Mapping[JobState, int]
) -> tuple[float, float] | None:
    """Return the 90 % prediction interval of `remaining_s`, s.

    What is left is a sum of about ``left / active`` times like the last ones, whose
    mean is itself known from these few only: the interval of Student's t of such a
    sum (Hahn & Meeker, Statistical Intervals, section 4.8). The estimate, which
    is by the median, lies inside.

    Returns
    -------
    None where nobody can know, or before `LEAST_FOR_SPREAD` groups have ended.
    """
    middle = remaining_s(recent, groups)
    n = len(recent)
    if middle is None or middle == 0.0 or n < LEAST_FOR_SPREAD:
        return None
    rounds = middle / median(recent) if median(recent) > 0 else 1.0
    half = _t95(n - 1) * stdev(recent) * sqrt(rounds + rounds**2 / n)
    likely = rounds * fmean(recent)
    return max(min(likely - half, middle), 0.0), max(likely + half, middle)


def _t95(freedom: int) -> float:
    """Return the 95 % quantile of Student's t (Abramowitz & Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(0.95)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def differences(first: Any, second: Any, path: str = "") -> list[str]:
    """Return the paths at which two plain documents differ, at most a few."""
    found = []
    for where in _differing(first, second, path):
        found.append(where)
        if len(found) == MOST_DIFFERENCES:
            break
    return found


def _differing(first: Any, second: Any, path: str) -> Iterator[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted({*first, *second}):
            deeper = f"{path}.{key}" if path else key
            yield from _differing(first.get(key), second.get(key), deeper)
    elif isinstance(first, list) and isinstance(second, list):
        if len(first) != len(second):
            yield path
            return
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _differing(one, other, f"{path}[{index}]")
    elif first != second:
        yield path
