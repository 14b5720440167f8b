"""The process that computes: started, watched and, if need be, killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from afterslip_workers.machine import heap
from afterslip_workers.process.channel import Decoder, encode

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
# An inversion factorises a small matrix for every draw: two threads that wait for
# each other on a busy machine took 25 to 150 times as long for 40 to 100 unknowns,
# 6 times for 800. Solves use Numba's threads.
_BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_PROGRAM = ("-m", "afterslip_workers.child")

# The kernel kills a child when the *thread* that started it ends, so every child
# is started by one thread that lives as long as its process.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="child-starter")


class Child:
    """One computing process and the pipes to it."""

    def __init__(self, program: Sequence[str]) -> None:
        self._process = _starter.submit(_start, program).result()
        self._decoder = Decoder()
        self._sending = threading.Lock()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Exit status; negative for the signal that ended it, None while alive."""
        return self._process.poll()

    def send(self, message: dict[str, Any]) -> None:
        """Hand a message over; a dead child is noticed by ``receive``."""
        assert self._process.stdin is not None  # noqa: S101 - opened in _start
        with self._sending, suppress(BrokenPipeError):
            self._process.stdin.write(encode(message))
            self._process.stdin.flush()

    def receive(self, wait_s: float) -> list[dict[str, Any]]:
        """Messages that arrived within ``wait_s`` seconds, perhaps none."""
        assert self._process.stdout is not None  # noqa: S101 - opened in _start
        handle = self._process.stdout.fileno()
        if not select.select([handle], [], [], wait_s)[0]:
            return []
        piece = os.read(handle, 1 << 16)
        if not piece:
            # the pipe closes a moment before the process can be reaped
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
        return self._decoder.feed(piece)

    def ask_to_stop(self) -> None:
        """Send SIGTERM: the task ends at its next check and the child lives on."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the child and everything it started, and reap it."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def release(self) -> None:
        """Kill the child and close the pipes; nobody may be listening any more."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


def _start(program: Sequence[str]) -> subprocess.Popen[bytes]:
    count = os.environ.get("AFTERSLIP_THREADS", "1")
    threads = dict.fromkeys(_THREAD_VARIABLES, count)
    threads |= dict.fromkeys(_BLAS_VARIABLES, "1")
    return subprocess.Popen(
        [sys.executable, *program, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **threads, **heap.VARIABLES},
        process_group=0,  # Ctrl-C in the worker's terminal does not reach it
    )


class Pool:
    """Children of this process that wait for work, most recently used first.

    A Dask worker with one thread has one child for life; an in-process cluster
    with several threads gets one for each.

    Parameters
    ----------
    program : arguments of the Python that computes.

    Attributes
    ----------
    limit : children that may work at the same time; None: any number.
    """

    def __init__(self, program: Sequence[str] = _PROGRAM) -> None:
        self.limit: int | None = None
        self._program = program
        self._lock = threading.Condition()
        self._taken = 0
        self._line: list[object] = []
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._owner = os.getpid()

    @contextmanager
    def line(self) -> Iterator[object]:
        """Stand in line: of those who do, the first is served first."""
        place = object()
        with self._lock:
            self._line.append(place)
        try:
            yield place
        finally:
            with self._lock:
                self._line.remove(place)
                self._lock.notify_all()

    def take(self, wait_s: float = 0.0, place: object = None) -> Child | None:
        """Return an idle child, or a new one; None if all were busy for so long.

        Parameters
        ----------
        place : in line; without one nobody is waited for.
        """
        with self._lock:
            if self._owner != os.getpid():
                # after a fork these children belong to somebody else
                self._idle, self._busy, self._owner = [], set(), os.getpid()
                self._taken, self._line = 0, [] if place is None else [place]
            if not self._lock.wait_for(partial(self._has_room, place), wait_s):
                return None
            self._taken += 1
            while self._idle:
                child = self._idle.pop()
                if child.alive:
                    self._busy.add(child)
                    return child
                child.release()
        try:
            child = Child(self._program)
        except BaseException:
            self._leave()
            raise
        with self._lock:
            self._busy.add(child)
        return child

    def announce(self, message: dict[str, Any]) -> None:
        """Send a message to the child that works, where only one may.

        Between two tasks it is idle for a moment.
        """
        with self._lock:
            children = [*self._busy, *self._idle] if self.limit == 1 else []
        for child in children:
            child.send(message)

    def start_ahead(self, count: int = 1) -> None:
        """Start children for the first tasks, unless there are as many.

        They import what these will need, and compile it.
        """
        with self._lock:
            missing = count - len(self._idle) - len(self._busy)
        for _ in range(missing):
            child = Child(self._program)
            with self._lock:
                self._idle.append(child)

    def _has_room(self, place: object) -> bool:
        served = place is None or self._line[0] is place
        return served and (self.limit is None or self._taken < self.limit)

    def _leave(self) -> None:
        with self._lock:
            self._taken -= 1
            self._lock.notify_all()

    def give_back(self, child: Child) -> None:
        """Keep a child for the next task; a dead one is reaped."""
        with self._lock:
            self._busy.discard(child)
            alive = child.alive
            if alive:
                self._idle.append(child)
        if not alive:
            # its memory is free before the next child begins
            child.release()
        self._leave()

    def close(self) -> None:
        """Kill all children of this process.

        Pipes of a busy one are closed by the thread that listens, in `give_back`.
        """
        with self._lock:
            if self._owner != os.getpid():
                return
            idle, busy = self._idle, self._busy
            self._idle, self._busy = [], set()
        for child in idle:
            child.release()
        for child in busy:
            child.kill()


def describe_exit(code: int | None) -> str:
    """Say in words how a process ended."""
    if code is None:
        return "is still running"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"was killed by {name}"
    return f"ended with exit status {code}"


def kernel_oom_kills() -> int:
    """Count the processes that the kernel has killed for memory, as counted here."""
    for source in ("/sys/fs/cgroup/memory.events", "/proc/vmstat"):
        with suppress(OSError, ValueError):
            for line in Path(source).read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill":
                    return int(value)
    return 0
