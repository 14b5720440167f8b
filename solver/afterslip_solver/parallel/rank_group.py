"""Ranks that run one function together, and the whole that answers their questions.

A rank is a thread or a process. It talks to the other ranks through its communicator
while it computes, and to the whole, where the unpartitioned model lies, through its
endpoint: a question is asked by all ranks alike, and answered to all at once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from afterslip_solver.backend import Backend
from afterslip_solver.parallel.communicator import (
    Communicator,
    Meeting,
    ThreadCommunicator,
)

# from what all ranks hand in to what each gets, ranks in order
Answers = Mapping[str, Callable[[list[Any]], Sequence[Any]]]
ASK, POST, DONE, FAILED = "ask", "post", "done", "failed"
# gets what a rank posts, with the rank's number
Posted = Callable[[int, Any], None]


class RankEndpoint(Protocol):
    """What a rank has; the same for all its jobs.

    Attributes
    ----------
    backend : of the rank's device. communicator : to the other ranks.
    stored : what a job leaves for the next one.
    """

    backend: Backend
    communicator: Communicator
    stored: dict[str, Any]

    def ask(self, question: str, value: Any) -> Any:
        """Hand a value in, wait for all ranks, and get this rank's answer."""

    def post(self, value: Any) -> None:
        """Hand in a part of the job's result, and go on; it must not change."""


Job = Callable[..., Any]


class RankGroup(Protocol):
    """Ranks that wait for jobs."""

    @property
    def size(self) -> int:
        """Number of ranks."""

    @property
    def device(self) -> str:
        """Name of the ranks' backend."""

    def call(
        self,
        job: Job,
        arguments: Sequence[tuple[Any, ...]],
        answers: Answers,
        posted: Posted = ...,
    ) -> list[Any]:
        """Run ``job(endpoint, *arguments[rank])`` on all ranks.

        An exception in a rank or in an answer ends the job on all of them and is
        raised here.
        """

    def close(self) -> None:
        """Let the ranks go."""


def unexpected(rank: int, _: Any) -> None:
    """Refuse what a rank posts.

    Raises
    ------
    RuntimeError
        In any case.
    """
    message = f"rank {rank} posts a part of a result that nobody expects"
    raise RuntimeError(message)


class Round:
    """The questions of one job, as messages of the ranks come in."""

    def __init__(self, size: int, answers: Answers, posted: Posted) -> None:
        self._answers, self._posted = answers, posted
        self._open: dict[int, tuple[str, Any]] = {}
        self.results: dict[int, Any] = {}
        self.size = size

    def take(self, rank: int, kind: str, what: Any) -> Sequence[Any] | None:
        """Take a message; returns the answers when the last rank has asked."""
        if kind == FAILED:
            raise what
        if kind == POST:
            self._posted(rank, what)
            return None
        if kind == DONE:
            self.results[rank] = what
            return None
        self._open[rank] = what
        if len(self._open) < self.size:
            return None
        questions = {question for question, _ in self._open.values()}
        if len(questions) != 1:
            message = f"the ranks ask different questions: {sorted(questions)}"
            raise RuntimeError(message)
        values = [self._open[r][1] for r in range(self.size)]
        self._open = {}
        return self._answers[questions.pop()](values)

    @property
    def over(self) -> bool:
        """Whether all ranks are done."""
        return len(self.results) == self.size

    def in_order(self) -> list[Any]:
        """Return the ranks' results."""
        return [self.results[rank] for rank in range(self.size)]


class _ThreadEndpoint:
    def __init__(self, backend: Backend, communicator: Communicator) -> None:
        self.backend = backend
        self.communicator = communicator
        self.stored: dict[str, Any] = {}
        self.outbox: queue.SimpleQueue[tuple[int, str, Any]] = queue.SimpleQueue()
        self.inbox: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def ask(self, question: str, value: Any) -> Any:
        """See `RankEndpoint`."""
        self.outbox.put((self.communicator.rank, ASK, (question, value)))
        answered, what = self.inbox.get()
        if not answered:
            raise threading.BrokenBarrierError
        return what

    def post(self, value: Any) -> None:
        """See `RankEndpoint`."""
        self.outbox.put((self.communicator.rank, POST, value))


class ThreadRankGroup:
    """Threads of this process on the CPU; the proof of the parallel solver.

    Parameters
    ----------
    size : number of threads. backend : makes the backend of one.
    """

    def __init__(self, size: int, backend: Callable[[], Backend]) -> None:
        self.size = size
        self._meeting = Meeting(size)
        self._endpoints = [
            _ThreadEndpoint(backend(), ThreadCommunicator(self._meeting, rank))
            for rank in range(size)
        ]

    @property
    def device(self) -> str:
        """See `RankGroup`."""
        return self._endpoints[0].backend.name

    def call(
        self,
        job: Job,
        arguments: Sequence[tuple[Any, ...]],
        answers: Answers,
        posted: Posted = unexpected,
    ) -> list[Any]:
        """See `RankGroup`."""
        self._meeting.barrier.reset()
        messages: queue.SimpleQueue[tuple[int, str, Any]] = queue.SimpleQueue()
        threads = []
        for rank, (endpoint, given) in enumerate(
            zip(self._endpoints, arguments, strict=True)
        ):
            endpoint.outbox, endpoint.inbox = messages, queue.SimpleQueue()
            work = (rank, endpoint, job, given)
            threads.append(threading.Thread(target=self._run, args=work))
        for thread in threads:
            thread.start()
        now = Round(self.size, answers, posted)
        try:
            while not now.over:
                replies = now.take(*messages.get())
                for endpoint, reply in zip(
                    self._endpoints, replies or (), strict=False
                ):
                    endpoint.inbox.put((True, reply))
        except BaseException:
            self._meeting.barrier.abort()
            for endpoint in self._endpoints:
                endpoint.inbox.put((False, None))
            raise
        finally:
            for thread in threads:
                thread.join()
        return now.in_order()

    def _run(
        self, rank: int, endpoint: _ThreadEndpoint, job: Job, given: tuple[Any, ...]
    ) -> None:
        try:
            endpoint.outbox.put((rank, DONE, job(endpoint, *given)))
        except threading.BrokenBarrierError:
            # another rank failed, and says so itself
            return
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            endpoint.outbox.put((rank, FAILED, error))
            self._meeting.barrier.abort()

    def close(self) -> None:
        """See `RankGroup`; threads end with their job."""
