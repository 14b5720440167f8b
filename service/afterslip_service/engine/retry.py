"""What to do about a failed attempt, by the class of its error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from afterslip.error_class import ErrorClass

# times that a job may be tried when it fails in this way
ATTEMPTS: dict[str, int] = {
    ErrorClass.OOM: 3,
    ErrorClass.NO_MEMORY: 3,
    ErrorClass.GPU_ERROR: 3,
    ErrorClass.GPU_LOST: 3,
    ErrorClass.TIMEOUT: 3,
    ErrorClass.INTERNAL: 3,
    ErrorClass.NOT_INSTALLED: 3,
    ErrorClass.NOT_CONVERGED: 2,
    ErrorClass.NAN: 2,
    ErrorClass.UNSTABLE: 2,
    ErrorClass.OUT_OF_MEMORY: 1,
    ErrorClass.BAD_INPUT: 1,
    ErrorClass.MESH: 1,
    ErrorClass.DAMAGED: 1,
}
ATTEMPTS_IN_ALL = 4
# the process or its worker died: a group that exhausts the memory does this to every
# worker, so it has an end, but where machines come and go it says nothing of the group
LOSSES: frozenset[str] = frozenset({ErrorClass.KILLED, ErrorClass.WORKER_LOST})
LOST_LIMIT = 3
AWAY_S = 15.0
# while an upgrade is under way, a worker of another release refuses at once
LONGEST_AWAY_S = 240.0
# a service that was stopped, or an attempt that it drained, is nobody's fault, where
# the store is away any other worker would find the same, and an upgrade has an end:
# none of them ever counts
FREE: frozenset[str] = frozenset(
    {ErrorClass.INTERRUPTED, ErrorClass.STORE_LOST, ErrorClass.OTHER_RELEASE}
)
# what another try may solve that takes more iterations or shorter steps
STRICTER: frozenset[str] = frozenset({ErrorClass.NOT_CONVERGED, ErrorClass.UNSTABLE})
# another worker may have more memory, a device that is sound, or what is not installed
MEMORY: frozenset[str] = frozenset({ErrorClass.OOM, ErrorClass.NO_MEMORY})
ELSEWHERE: frozenset[str] = MEMORY | {
    ErrorClass.GPU_ERROR,
    ErrorClass.GPU_LOST,
    ErrorClass.KILLED,
    ErrorClass.NOT_INSTALLED,
    ErrorClass.OTHER_RELEASE,
}
CPU_AFTER = 2
BACKOFF_S = (1.0, 5.0, 20.0)


class Action(StrEnum):
    """What follows a failed attempt."""

    RETRY = "retry"
    FAIL = "fail"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision, how long to wait before the next try (s), and a sentence."""

    action: Action
    delay_s: float = 0.0
    reason: str = ""


def decide(
    error_class: str, failures: Mapping[str, int], lost_limit: int = LOST_LIMIT
) -> Verdict:
    """Decide what follows an attempt that failed.

    Parameters
    ----------
    error_class : class of the newest failure; an unknown one is ``internal``.
    failures : failures of the job by class since it was last reset, the newest
        one included.
    lost_limit : times that the job may lose its process or its worker; these do not
        count towards the failures of its own.
    """
    if error_class == ErrorClass.INTERRUPTED:
        return Verdict(Action.RETRY, BACKOFF_S[0], "the service was stopped")
    if error_class == ErrorClass.STORE_LOST:
        return Verdict(Action.RETRY, AWAY_S, "the store could not be reached")
    if error_class == ErrorClass.OTHER_RELEASE:
        times = failures.get(error_class, 0)
        delay = min(AWAY_S * 2.0 ** (times - 1), LONGEST_AWAY_S)
        return Verdict(Action.RETRY, delay, "the worker is of another release")
    if error_class == ErrorClass.STORE_FULL:
        return Verdict(
            Action.PAUSE,
            0.0,
            "the store is full: free space, then resume the campaign",
        )
    if error_class in LOSSES:
        times = sum(failures.get(loss, 0) for loss in LOSSES)
        if times >= lost_limit:
            text = f"lost its process or worker {times} times"
            return Verdict(Action.FAIL, 0.0, text)
        return Verdict(Action.RETRY, _delay(times), f"lost for the {times}. time")
    kind = error_class if error_class in ATTEMPTS else ErrorClass.INTERNAL
    of_kind = failures.get(error_class, 0)
    in_all = sum(n for c, n in failures.items() if c not in FREE | LOSSES)
    if kind == ErrorClass.DAMAGED:
        return Verdict(
            Action.FAIL, 0.0, "the store is damaged: run `afterslip fsck --repair`"
        )
    if ATTEMPTS[kind] == 1:
        return Verdict(Action.FAIL, 0.0, "the same input would fail again")
    if of_kind >= ATTEMPTS[kind] or in_all >= ATTEMPTS_IN_ALL:
        return Verdict(Action.FAIL, 0.0, f"failed {in_all} times")
    return Verdict(Action.RETRY, _delay(in_all), f"attempt {in_all} failed")


def _delay(times: int) -> float:
    return BACKOFF_S[min(times, len(BACKOFF_S)) - 1]


@dataclass(frozen=True, slots=True)
class Escalation:
    """What the next attempt at a job does differently.

    Attributes
    ----------
    strict : times that the solver did not converge or its steps were not stable; it
        tries harder each time.
    avoid : classes of failures whose workers are not asked again while others are
        there.
    backend : "cpu" where devices ran out of memory twice; None: as configured.
    """

    strict: int = 0
    avoid: frozenset[str] = frozenset()
    backend: str | None = None


def escalate(failures: Mapping[str, int]) -> Escalation:
    """Return what the next attempt does differently, from the failures before it.

    A group is solved four lanes at a time by every kernel, idle ones included, so
    that fewer lanes would need as much memory: another worker is asked, and at last
    the memory of a machine, which is mostly larger than that of its devices.
    """
    memory = sum(failures.get(kind, 0) for kind in MEMORY)
    return Escalation(
        strict=sum(failures.get(kind, 0) for kind in STRICTER),
        avoid=frozenset(kind for kind in ELSEWHERE if failures.get(kind)),
        backend="cpu" if memory >= CPU_AFTER else None,
    )


def counted(failures: Mapping[str, int], error_class: str) -> dict[str, int]:
    """Return ``failures`` with one more of ``error_class``."""
    return {**failures, error_class: failures.get(error_class, 0) + 1}
