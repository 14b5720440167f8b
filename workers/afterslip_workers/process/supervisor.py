"""Watch over one attempt: sign of life, cancel, time limit, a child that dies."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import structlog

from afterslip.error_class import ErrorClass
from afterslip_common.observe import logs, telemetry
from afterslip_workers.errors import TaskError, classify
from afterslip_workers.machine import exchange, limit
from afterslip_workers.messages import (
    Envelope,
    Receipt,
    Stats,
    failed,
)
from afterslip_workers.process import ending, memory, pools
from afterslip_workers.process.answer import Answer
from afterslip_workers.process.children import (
    Child,
    Pool,
    describe_exit,
    kernel_oom_kills,
)
from afterslip_workers.process.delivery import deliverer
from afterslip_workers.process.drain import drain
from afterslip_workers.process.request import Request, Step
from afterslip_workers.process.use import working_at
from afterslip_workers.store import progress as progress_file
from afterslip_workers.store import spool
from afterslip_workers.store.errors import StoreLostError
from afterslip_workers.store.local import LocalBackend
from afterslip_workers.store.open import open_store
from afterslip_workers.store.progress import ProgressFile

_POLL_S = 0.2
# a group is written in half the time in which the next one is solved; the first ones
# take longer
_WRITERS = 2
_ASK_BUCKET_S = 1.0
GRACE_S = 5.0  # from SIGTERM to SIGKILL

pool, writers = pools.pool, pools.writers
_asking = ThreadPoolExecutor(thread_name_prefix="beside")
log = structlog.get_logger()


def start_ahead() -> None:
    """Start the computing process of this worker, if it has none yet."""
    pool.start_ahead()


def supervise(envelope: Envelope) -> Receipt:
    """Run one attempt in a child and answer for it; never raises.

    An attempt that is stored already is not run again, so that a task which Dask
    runs twice costs nothing the second time. The last thing of every attempt is its
    receipt, in the store or, while the store is away, in the spool.
    """
    content = envelope.as_json()
    with (
        drain.working(),
        working_at(envelope),
        spool.locked(open_store(envelope.store), envelope.token),
        logs.about(content),
        telemetry.continued("attempt", content, envelope.trace) as below,
    ):
        log.info("attempt begins")
        receipt = _supervise(envelope.model_copy(update={"trace": below}))
        worker = receipt.stats.worker or worker_name()
        receipt = receipt.but(worker=worker, ended=time.time())
        if receipt.outcome != "stored":
            ending.sweep(spool.folder_of(envelope))
        receipt = ending.hand_over(envelope, receipt)
        log.info("attempt done", **_outcome(receipt))
    # also what earlier attempts, or a worker that died here, have left
    deliverer.kick()
    return receipt


def _outcome(receipt: Receipt) -> dict[str, Any]:
    """Return what the log says of an end."""
    error, seconds = receipt.error, receipt.stats.seconds
    summary = {
        "outcome": receipt.outcome,
        "error": None if error is None else error.error_class,
        "seconds": None if seconds is None else round(seconds, 3),
    }
    return {name: value for name, value in summary.items() if value is not None}


def _supervise(envelope: Envelope) -> Receipt:
    token, backend = envelope.token, open_store(envelope.store)
    try:
        _make_folder(envelope)
        stored = ending.stored(envelope)
        if stored is not None:
            return stored
        if drain.asked or progress_file.cancel_requested(backend, token):
            return Receipt(token=token, outcome="cancelled")
        child = _turn(envelope)
        if child is None:
            return Receipt(token=token, outcome="cancelled")
        watch = _Watch(envelope)
        if pool.limit is None or envelope.kind != "group":
            return watch.run(pool, child)
        _asking.submit(writers.start_ahead, _WRITERS)
        with exchange.exchange_file() as path:
            solved = watch.run(pool, child, "solve", path)
            if solved.outcome != "solved":
                return solved
            writer = writers.take()
            assert writer is not None  # noqa: S101 - their number has no limit
            written = watch.run(writers, writer, "write", path)
            return _with_both_times(written, solved.stats)
    except (OSError, TaskError) as error:
        return failed(token, classify(error, backend))


def _with_both_times(written: Receipt, solving: Stats) -> Receipt:
    """Return the writer's receipt with the times of the process that solved as well."""
    phases = dict(solving.phases)
    for name, seconds in written.stats.phases.items():
        phases[name] = phases.get(name, 0.0) + seconds
    solving_s = solving.seconds or 0.0
    return written.but(
        phases=phases,
        began=solving.began,
        seconds=solving_s + (written.stats.seconds or 0.0),
        solving_s=solving_s,
    )


def _turn(envelope: Envelope) -> Child | None:
    """Wait for a child that may work; None if the attempt has to end before.

    It shows no sign of life meanwhile: it has not begun.
    """
    wait = _ASK_BUCKET_S if open_store(envelope.store).remote else _POLL_S
    with pool.line() as place:
        child = pool.take(place=place)
        if child is None and envelope.kind == "group":
            pool.announce(Request(envelope=envelope.as_json(), step="ahead").as_json())
        while True:
            child = child or pool.take(wait, place)
            # the room may come from a child that was killed for the worker's end
            if drain.asked or (child is None and _cancelled(envelope)):
                if child is not None:
                    pool.give_back(child)
                return None
            if child is not None:
                return child


def _cancelled(envelope: Envelope) -> bool:
    backend = open_store(envelope.store)
    try:
        return progress_file.cancel_requested(backend, envelope.token)
    except OSError:
        # a store that is away for a while is no reason to stop
        return False


def _make_folder(envelope: Envelope) -> None:
    backend = open_store(envelope.store)
    if not isinstance(backend, LocalBackend):
        spool.make(backend, envelope.token)
        return
    if not backend.reachable():
        # never made anew: what is missing may be a mount
        raise StoreLostError(f"the store {backend.name} is not there, or not writable")
    spool.folder_of(envelope).mkdir(exist_ok=True)


class _Watch:
    """The parent's side of one attempt."""

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._before: Future[memory.Held] | None = None
        backend = open_store(envelope.store)
        shared = backend if backend.remote else None
        folder = spool.folder_of(envelope)
        self._progress = ProgressFile(folder, envelope.token, shared=shared)
        self._started = time.monotonic()
        self._asked = float("-inf")
        self._stop_since: float | None = None
        self._stop_reason = ""
        self._most = limit.of_child()

    def run(
        self,
        children: Pool,
        child: Child,
        step: Step = "all",
        path: str | None = None,
    ) -> Receipt:
        """Have a child do one step, and give it back when it is done; see `_watched`.

        Parameters
        ----------
        path : of the memory between two steps.

        Returns
        -------
        The receipt; of step "solve" its outcome is "solved" where all went well.
        """
        self._child = child
        # the driver's tool takes a while to answer, for which the child need not wait;
        # a child that only writes is not worth the question
        if children is pool:
            self._before = _asking.submit(memory.of, child.pid)
        else:
            self._before = None
        try:
            content = self._envelope.as_json()
            return self._watched(Request(envelope=content, step=step, exchange=path))
        finally:
            children.give_back(child)

    def _watched(self, request: Request) -> Receipt:
        """Wait for the child's answer, its death or its end by us."""
        oom_kills = kernel_oom_kills()
        self._progress.beat(force=True)
        self._child.send(request.as_json())
        while True:
            alive = self._child.alive
            answer = self._listen(_POLL_S if alive else 0.0)
            if answer is not None:
                self._progress.update({"phase": answer.receipt.outcome})
                self._progress.beat(force=True)
                return self._receipt(answer)
            if not alive:
                return self._buried(kernel_oom_kills() > oom_kills)
            self._progress.beat()
            if self._most is not None:
                used = memory.resident(self._child.pid)
                if used > self._most:
                    return self._outgrown(used, self._most)
            self._enforce()

    def _listen(self, wait_s: float) -> Answer | None:
        for message in self._child.receive(wait_s):
            if "progress" not in message:
                return Answer.model_validate(message)
            self._progress.update(message["progress"])
        return None

    def _enforce(self) -> None:
        """Stop the child when asked to, gently first."""
        moment = time.monotonic()
        if self._stop_since is None:
            self._stop_reason = self._why_stop(moment)
            if not self._stop_reason:
                return
            self._stop_since = moment
            self._progress.update({"phase": "stopping"})
            self._child.ask_to_stop()
        elif moment - self._stop_since > GRACE_S:
            self._child.kill()

    def _why_stop(self, moment: float) -> str:
        limit = self._envelope.timeout_s
        if drain.over:
            return "drained"
        if limit is not None and moment - self._started > limit:
            return "timeout"
        return "cancelled" if self._cancelled(moment) else ""

    def _cancelled(self, moment: float) -> bool:
        backend = open_store(self._envelope.store)
        if backend.remote and moment - self._asked < _ASK_BUCKET_S:
            return False
        self._asked = moment
        return _cancelled(self._envelope)

    def _receipt(self, answer: Answer) -> Receipt:
        if answer.poisoned:
            self._child.kill()
        receipt = answer.receipt
        late = receipt.outcome == "solved" and self._stop_reason
        if late or receipt.outcome == "cancelled":
            return self._stopped(receipt.stats, answer.warm_bytes)
        return receipt

    def _outgrown(self, used: int, most: int) -> Receipt:
        """End a child that holds more than it may, before the kernel ends others."""
        self._child.kill()
        text = (
            f"the computing process held {used / 1e9:.2f} GB of memory, and "
            f"{most / 1e9:.2f} GB are allowed: make the mesh coarser (mesh.size, "
            f"mesh.refine), run fewer workers on the machine, or raise {limit.ENV}"
        )
        self._progress.update({"phase": "failed"})
        self._progress.beat(force=True)
        stats = Stats(seconds=time.monotonic() - self._started, memory_held=used)
        return failed(
            self._envelope.token, TaskError(ErrorClass.OUT_OF_MEMORY, text), stats
        )

    def _stopped(self, stats: Stats, warm: int = 0) -> Receipt:
        if stats.seconds is None:
            stats = stats.but(seconds=time.monotonic() - self._started)
        before = self._before.result() if self._before else memory.Held(0, 0)
        stats = stats.but(memory=memory.ensure_released(self._child, before, warm))
        if self._stop_reason == "timeout":
            text = f"stopped after its time limit of {self._envelope.timeout_s:g} s"
            return failed(
                self._envelope.token, TaskError(ErrorClass.TIMEOUT, text), stats
            )
        return Receipt(token=self._envelope.token, outcome="cancelled", stats=stats)

    def _buried(self, memory_kill: bool) -> Receipt:
        """Answer for a child that died without an answer of its own."""
        stored = None
        # a store that is away knows nothing
        with suppress(OSError, TaskError):
            stored = ending.stored(self._envelope)
        if stored is not None:
            # it died after the last byte was safe
            return stored
        if self._stop_reason:
            return self._stopped(Stats())
        text = f"the solving process {describe_exit(self._child.exit_code)}"
        if memory_kill:
            text += " by the kernel, which ran out of memory"
        tail = progress_file.log_tail(spool.folder_of(self._envelope))
        text += f"; its log ends with:\n{tail}" if tail else "; its log is empty"
        self._progress.update({"phase": "failed"})
        self._progress.beat(force=True)
        seconds = time.monotonic() - self._started
        return failed(
            self._envelope.token,
            TaskError(ErrorClass.KILLED, text),
            Stats(seconds=seconds),
        )


def worker_name() -> str:
    """Name of the Dask worker that runs this, or of this process."""
    try:
        from distributed import get_worker

        return str(get_worker().name)
    except (ImportError, ValueError):
        return f"{socket.gethostname()}:{os.getpid()}"
