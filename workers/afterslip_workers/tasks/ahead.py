"""Groups that are solved before their turn, beside the one whose turn it is.

It only saves time: what fails here is done again, and fails again, in its turn.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any, Final

import structlog

from afterslip_workers.errors import CancelledError
from afterslip_workers.machine.model_cache import NotWarmError

# groups that a device solves at a time, and so many more may wait for that
_BESIDE, _WAITING = 2, 2
_LOOK_EVERY_S = 0.1
log = structlog.get_logger()


@dataclass(slots=True)
class Job:
    """An attempt that is under way.

    Attributes
    ----------
    stop : ends it. news : the last progress that it reported.
    made : what its work returns; None where it failed or was stopped.
    """

    stop: Event = field(default_factory=Event)
    news: dict[str, Any] = field(default_factory=dict)
    made: Future[Any] = field(default_factory=Future)

    def report(self, news: dict[str, Any]) -> None:
        """Take news of the progress."""
        self.news = {**self.news, **news}


class Ahead:
    """Attempts that are under way before their turn, by token."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_BESIDE, thread_name_prefix="ahead")
        self._lock = Lock()
        self._jobs: dict[str, Job] = {}

    def begin(self, token: str, work: Callable[[Job], Any]) -> None:
        """Start an attempt; of too many that nobody came for the oldest is stopped."""
        job = Job()
        with self._lock:
            self._jobs[token] = job
            if len(self._jobs) > _WAITING:
                self._jobs.pop(next(iter(self._jobs))).stop.set()
            job.made = self._threads.submit(_made, work, job)

    def __contains__(self, token: str) -> bool:
        return token in self._jobs

    def take(
        self,
        token: str,
        should_stop: Callable[[], bool],
        report: Callable[[dict[str, Any]], None],
    ) -> Any:
        """Wait for an attempt, whose turn has come, and return what it made.

        Returns
        -------
        None where it was not begun, failed, or was asked to stop meanwhile.
        """
        with self._lock:
            job = self._jobs.pop(token, None)
        if job is None:
            return None
        reported: dict[str, Any] = {}
        while not wait([job.made], _LOOK_EVERY_S).done:
            if should_stop():
                job.stop.set()
            if job.news is not reported:
                reported = job.news
                report(reported)
        return job.made.result()

    def drop(self) -> None:
        """Stop all that nobody came for yet, and wait for its end."""
        with self._lock:
            jobs = [*self._jobs.values()]
            self._jobs.clear()
        for job in jobs:
            job.stop.set()
        wait([job.made for job in jobs])


def _made(work: Callable[[Job], Any], job: Job) -> Any:
    try:
        return None if job.stop.is_set() else work(job)
    except (CancelledError, NotWarmError):
        return None
    except Exception:
        log.exception("a group failed before its turn, and is solved again in it")
        return None


ahead: Final = Ahead()
