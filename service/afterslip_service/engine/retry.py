"""What to do about a failed attempt, by the class of its error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

# a service that was stopped, or an attempt that it drained, is nobody's fault:
# it never counts against the job
INTERRUPTED = "interrupted"

# times that a job may be tried when it fails in this way
ATTEMPTS: dict[str, int] = {
    "oom": 3,
    "no_memory": 3,
    "gpu_error": 3,
    "gpu_lost": 3,
    "timeout": 3,
    "internal": 3,
    "not_converged": 2,
    "nan": 2,
    "bad_input": 1,
    "mesh": 1,
    "damaged": 1,
}
ATTEMPTS_IN_ALL = 4
# the process or its worker died: a group that exhausts the memory does this to every
# worker, so it has an end, but where machines come and go it says nothing of the group
LOSSES = frozenset({"killed", "worker_lost"})
LOST_LIMIT = 3
# the store was away: whoever works next would find the same, so it never counts
AWAY = "store_lost"
AWAY_S = 15.0
FREE = frozenset({INTERRUPTED, AWAY})
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


def judge(
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
    if error_class == INTERRUPTED:
        return Verdict(Action.RETRY, BACKOFF_S[0], "the service was stopped")
    if error_class == AWAY:
        return Verdict(Action.RETRY, AWAY_S, "the store could not be reached")
    if error_class == "store_full":
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
    kind = error_class if error_class in ATTEMPTS else "internal"
    of_kind = failures.get(error_class, 0)
    in_all = sum(n for c, n in failures.items() if c not in FREE | LOSSES)
    if kind == "damaged":
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


def strictness(failures: Mapping[str, int]) -> int:
    """Return how much harder the solver should try: once for each time it did not."""
    return failures.get("not_converged", 0)


def counted(failures: Mapping[str, int], error_class: str) -> dict[str, int]:
    """Return ``failures`` with one more of ``error_class``."""
    return {**failures, error_class: failures.get(error_class, 0) + 1}
