"""Dask: a local cluster of our own, or a scheduler that others run.

Dask restarts nothing and remembers nothing for us: every attempt has a key of
its own, no retries, and a tiny return value. What happened to an attempt is in
the store and in the database, so that a scheduler may die at any time.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

import dask
import distributed

from afterslip.error_class import ErrorClass
from afterslip_service.errors import ServiceError
from afterslip_service.placement.base import Ended, WorkerFacts
from afterslip_service.placement.local import LocalCluster
from afterslip_workers import entry
from afterslip_workers.messages import Envelope

# its functions carry no types
_dask: Any = distributed

REVIVE_EVERY_S = 5.0
CONFIG = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # our own count decides: one death must not damn the tasks beside it
    "distributed.scheduler.allowed-failures": 0,
    # the solve runs in a child; a worker that is silent that long is dead
    "distributed.scheduler.worker-ttl": "5 minutes",
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    # nothing shows these: 50 and 100 samples a second in each process, which take a
    # tenth of two cores
    "distributed.admin.tick.interval": "1 s",
    "distributed.admin.tick.limit": "30 s",
    "distributed.worker.profile.enabled": False,
}


class Cluster:
    """A placement on a Dask scheduler.

    Parameters
    ----------
    address : of a scheduler, or ``local`` for a cluster that lives and dies with
        this process (with one worker a GPU where dask-cuda and a GPU are there).
    workers : of the local cluster; one a core if None.
    wake : called when something has ended.
    """

    def __init__(
        self,
        address: str = "local",
        workers: int | None = None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.dies_with_us = address == "local"
        self.address = address
        self.wake = wake
        self._cluster: LocalCluster | None = None
        self._done: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._held: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._tried = float("-inf")
        dask.config.set(CONFIG)
        if self.dies_with_us:
            with _deaf_to_the_terminal():
                self._cluster = LocalCluster(workers)
                inside = self._cluster.dask
                self._client = _dask.Client(inside, set_as_default=False)
        else:
            self._client = _connect(address)

    def slots(self) -> int:
        """Return the number of threads of all workers."""
        self._revive()
        return sum(worker["nthreads"] for worker in self._known().values())

    def submit(self, envelope: Envelope) -> None:
        """Submit an attempt under a key that no other attempt ever has."""
        token = envelope.token
        future = self._client.submit(
            entry.execute,
            envelope.as_json(),
            key=f"{envelope.kind}-{token}",
            retries=0,
            pure=False,
            **self._others(envelope.avoid),
        )
        with self._lock:
            self._held[token] = future
        if not self.dies_with_us:
            # the attempt outlives this dispatcher: its successor reads the manifest
            _dask.fire_and_forget(future)
        future.add_done_callback(lambda done: self._on_done(token, done))
        if self.dies_with_us and envelope.kind == "model":
            self._start_ahead(token)

    def _start_ahead(self, token: str) -> None:
        """Let workers that do not build the model get ready for its groups.

        The one that builds it comes to this afterwards, when it has nothing to do.
        """
        for address in self._known():
            future = self._client.submit(
                entry.start_ahead,
                key=f"ahead-{token}-{address}",
                workers=[address],
                pure=False,
            )
            _dask.fire_and_forget(future)

    def _others(self, avoid: Collection[str]) -> dict[str, Any]:
        """Return the wish for other workers than some; none where there are no others.

        It is a wish: should the others leave, the attempt does not wait for them.
        """
        if not avoid:
            return {}
        known = self._known()
        left = [
            address
            for address, worker in known.items()
            if str(worker.get("name", address)) not in avoid
        ]
        return {"workers": left, "allow_other_workers": True} if left else {}

    def _on_done(self, token: str, future: Any) -> None:
        ended = _outcome(token, future)
        if ended is None:
            with self._lock:
                self._held.pop(token, None)
        else:
            self._done.put(ended)
            self.wake()

    def forget(self, token: str) -> None:
        """Cancel the key; the running solve is stopped through the store."""
        with self._lock:
            future = self._held.get(token)
        if future is not None:
            future.cancel(reason="cancelled by the dispatcher", force=True)

    def ended(self) -> list[Ended]:
        """Return what has ended since the last call."""
        out = []
        while not self._done.empty():
            out.append(self._done.get())
        with self._lock:
            for ended in out:
                self._held.pop(ended.token, None)
        return out

    def holds(self) -> frozenset[str]:
        """Return the tokens that were not yet returned as ended."""
        with self._lock:
            return frozenset(self._held)

    def workers(self) -> list[WorkerFacts]:
        """Return the workers that the scheduler knows."""
        return [
            WorkerFacts(
                name=str(worker.get("name", address)),
                address=address,
                state=str(worker.get("status", "running")),
                slots=int(worker["nthreads"]),
                facts=_facts(worker.get("metrics", {})),
            )
            for address, worker in self._known().items()
        ]

    def _revive(self) -> None:
        """Connect again to a scheduler that was started anew.

        Dask's client gives up after a while; what it knew is gone with the old
        scheduler, and is found by heartbeats and manifests instead.
        """
        now = time.monotonic()
        if self.dies_with_us or self._client.status in {"running", "connecting"}:
            return
        if now - self._tried < REVIVE_EVERY_S:
            return
        self._tried = now
        with self._lock:
            self._held.clear()
        try:
            fresh = _connect(self.address)
        except ServiceError:
            return
        old, self._client = self._client, fresh
        old.close(timeout=1)

    def _known(self) -> dict[str, Any]:
        client = self._client
        scheduler = client.scheduler
        if client.status != "running" or scheduler is None:
            return {}
        # not Client.scheduler_info: it returns what its own periodic query, which asks
        # for no workers, may have put there in the meantime
        try:
            said = client.sync(scheduler.identity, n_workers=-1)
        except OSError:
            return {}
        known: dict[str, Any] = said["workers"]
        return known

    def trouble(self) -> str | None:
        """Say if the scheduler is gone or has no workers."""
        if self._client.status != "running":
            where = "its own cluster" if self.dies_with_us else self.address
            return f"the Dask scheduler at {where} does not answer: start it again"
        if not self._known():
            return (
                f"the Dask scheduler has no workers: start some with "
                f"`afterslip worker {self.address}`"
            )
        return None

    def close(self) -> None:
        """Close the client, and the cluster if it is ours."""
        self._client.close(timeout=2)
        if self._cluster is not None:
            self._cluster.close()


@contextmanager
def _deaf_to_the_terminal() -> Iterator[None]:
    """Let threads and processes that are started here never see Ctrl-C.

    A terminal sends it to all of us at once; the workers are stopped by their
    cluster, in good order. Threads inherit the mask, and so do the processes that
    they start, also when a worker is started anew later.
    """
    # its start would take our mask away again
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _never_twice(dask_scheduler: Any) -> None:
    """Keep a scheduler of others from giving a lost worker's attempts to another.

    It would be the same attempt, in the same folder, perhaps beside a worker that
    only cannot be detected; we make a new attempt instead.
    """
    dask_scheduler.allowed_failures = 0


def _connect(address: str) -> Any:
    try:
        client = _dask.Client(address, timeout="10 s", set_as_default=False)
        client.run_on_scheduler(_never_twice)
        return client
    except (OSError, TimeoutError, ValueError) as error:
        raise ServiceError(
            f"no Dask scheduler answers at {address!r} ({error}): start one with "
            "`dask scheduler`, or use --scheduler local"
        ) from error


def _outcome(token: str, future: Any) -> Ended | None:
    """Read how a task ended; None if only our connection to it did."""
    if future.status == "finished":
        return Ended(token, future.result(timeout=10))
    if future.status == "error":
        error = future.exception(timeout=10)
        name = type(error).__name__
        lost = name in {"KilledWorker", "NoValidWorkerError", "CommClosedError"}
        text = str(error) or name
        kind = ErrorClass.WORKER_LOST if lost else ErrorClass.INTERNAL
        return Ended(token, None, kind, text)
    # cancelled: by us, or because the scheduler went away. The heartbeat in the
    # store tells the two apart, so nothing is concluded here.
    return None


def _facts(metrics: dict[str, Any]) -> dict[str, Any]:
    """Say what a worker's processes use; of one of release 0.1.0 only Dask's own."""
    plain = {
        "memory_used": metrics.get("memory"),
        "cpu_percent": metrics.get("cpu"),
    }
    return {**plain, **(metrics.get("afterslip") or {}), **_gpu(metrics)}


def _gpu(metrics: dict[str, Any]) -> dict[str, Any]:
    """Say of a worker's GPU what Dask's monitor has measured, nothing without one.

    It is the whole GPU that is measured, whichever processes use it: the worker says
    what its own do. What the driver does not tell, such as the utilization of a part
    of a GPU, is missing.
    """
    names = ("gpu_memory_used", "gpu_utilization")
    return {name: metrics[name] for name in names if metrics.get(name) is not None}
