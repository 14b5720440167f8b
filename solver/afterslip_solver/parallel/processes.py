"""Ranks as processes of this host, one per device.

Launching kernels takes the interpreter's lock, so threads of one process would wait
for each other; a process that dies takes its device's memory with it.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from threading import Lock
from typing import Any

from afterslip_common.errors import RankLostError
from afterslip_solver.backend import Backend
from afterslip_solver.parallel import messages
from afterslip_solver.parallel.communicator import Communicator
from afterslip_solver.parallel.rank_group import (
    ASK,
    DONE,
    FAILED,
    POST,
    Answers,
    Job,
    Posted,
    Round,
    unexpected,
)

_PR_SET_PDEATHSIG = 1
_PATIENCE_S = 10.0

# in a rank's process, what it computes with; ranks agree through ``ask``
Opening = Callable[[int, int, Callable[[str, Any], Any]], tuple[Backend, Communicator]]


class _ProcessEndpoint:
    backend: Backend
    communicator: Communicator

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending = Lock()
        # sends what is posted while the device computes
        self._post = ThreadPoolExecutor(1)
        self._on_their_way: list[Future[None]] = []
        self.stored: dict[str, Any] = {}

    def send(self, kind: str, what: Any) -> None:
        """Send a message to the whole."""
        with self._sending:
            messages.send(self._connection, (kind, what))

    def ask(self, question: str, value: Any) -> Any:
        """See `RankEndpoint`."""
        self.send(ASK, (question, value))
        return messages.receive(self._connection)

    def post(self, value: Any) -> None:
        """See `RankEndpoint`."""
        self._on_their_way.append(self._post.submit(self.send, POST, value))

    def deliver(self) -> None:
        """Wait until all that was posted is sent."""
        while self._on_their_way:
            self._on_their_way.pop(0).result()


def _serve(connection: Connection, parent: int) -> None:
    """Run jobs until the parent hangs up; it ends with its parent in any case."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    # the parent decides when a solve stops
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    endpoint = _ProcessEndpoint(connection)
    with suppress(EOFError, ConnectionError):
        while True:
            job, given = messages.receive(connection)
            try:
                message = DONE, job(endpoint, *given)
            except BaseException as error:  # noqa: BLE001 - raised by the parent
                message = FAILED, _portable(error)
            endpoint.deliver()
            endpoint.send(*message)


def _portable(error: BaseException) -> BaseException:
    """Return the error, or one that says the same and can be sent."""
    names = {kind.__name__ for kind in type(error).__mro__}
    text = f"{type(error).__name__}: {error}"
    if "OutOfMemoryError" in names:
        return MemoryError(text)
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - what was just written
    except Exception:  # noqa: BLE001 - any error at all makes it unfit
        return RuntimeError(text)
    return error


def _open(endpoint: _ProcessEndpoint, opening: Opening, rank: int, size: int) -> str:
    endpoint.backend, endpoint.communicator = opening(rank, size, endpoint.ask)
    return endpoint.backend.name


class ProcessRankGroup:
    """Processes that wait for jobs; see `RankGroup`.

    Parameters
    ----------
    size : number of processes.
    opening : a function of a module, which makes a rank's backend and communicator.
    answers : to what backends and communicators ask, in the opening and later.

    Raises
    ------
    BackendError
        If a rank's device cannot be used.
    """

    def __init__(self, size: int, opening: Opening, answers: Answers) -> None:
        self.size = size
        self._answers = dict(answers)
        context = multiprocessing.get_context("spawn")
        self._connections: list[Any] = []
        self._processes: list[Any] = []
        for _ in range(size):
            mine, theirs = context.Pipe()
            ends = (theirs, os.getpid())
            process = context.Process(target=_serve, args=ends, daemon=True)
            process.start()
            theirs.close()
            self._connections.append(mine)
            self._processes.append(process)
        # threads are made once: a new one for each message takes a process number,
        # and a solve of thousands would use all of them up
        self._pool = ThreadPoolExecutor(size)
        resources = self._processes, self._connections, self._pool
        self._end = weakref.finalize(self, _end, *resources)
        given = [(opening, rank, size) for rank in range(size)]
        self.device: str = self.call(_open, given, {})[0]

    @property
    def pids(self) -> list[int]:
        """Numbers of the processes."""
        return [process.pid for process in self._processes]

    def call(
        self,
        job: Job,
        arguments: Sequence[tuple[Any, ...]],
        answers: Answers,
        posted: Posted = unexpected,
    ) -> list[Any]:
        """See `RankGroup`; after a failure all processes are ended.

        Raises
        ------
        RankLostError
            If a process ended, or had ended before.
        """
        if not self._end.alive:
            raise RankLostError("the processes of the devices have ended: start anew")
        now = Round(self.size, {**self._answers, **answers}, posted)
        try:
            self._tell([(job, given) for given in arguments])
            while not now.over:
                self._hear(now)
        except BaseException as error:
            self.close()
            if isinstance(error, EOFError | BrokenPipeError | ConnectionResetError):
                raise RankLostError(self._obituary()) from error
            raise
        return now.in_order()

    def _hear(self, now: Round) -> None:
        """Wait for messages, and for deaths."""
        sentinels = [process.sentinel for process in self._processes]
        ready = wait([*self._connections, *sentinels])
        heard = [c for c in self._connections if c in ready]
        if not heard:
            raise EOFError
        received = self._at_once(messages.receive, heard)
        for connection, message in zip(heard, received, strict=True):
            rank = self._connections.index(connection)
            replies = now.take(rank, *message)
            if replies is not None:
                self._tell(replies)

    def _tell(self, what: Sequence[Any]) -> None:
        """Send each process its own, to all at once: they then start together."""
        self._at_once(messages.send, self._connections, what)

    def _at_once(self, what: Callable[..., Any], *given: Sequence[Any]) -> list[Any]:
        begun = [self._pool.submit(what, *each) for each in zip(*given, strict=True)]
        # also when one fails: nobody may use a connection that is closed then
        wait_for(begun)
        return [each.result() for each in begun]

    def _obituary(self) -> str:
        ended = [
            f"process {rank} ended with status {process.exitcode}"
            for rank, process in enumerate(self._processes)
            if process.exitcode not in (None, -signal.SIGKILL)
        ]
        return ", ".join(ended) or "a process of a device was killed"

    def close(self) -> None:
        """End all processes; device memory is free when this returns."""
        self._end()


def _end(
    processes: list[Any], connections: list[Any], pool: ThreadPoolExecutor
) -> None:
    for process in processes:
        # a rank in the middle of an exchange would wait for ever
        process.kill()
    # nobody reads or writes any more when connections are closed
    pool.shutdown()
    for connection in connections:
        connection.close()
    for process in processes:
        process.join(_PATIENCE_S)
