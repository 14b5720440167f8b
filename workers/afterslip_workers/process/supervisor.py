"""Watch over one attempt: sign of life, cancel, time limit, a child that dies."""

from __future__ import annotations

import os
import shutil
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from afterslip.error_class import ErrorClass
from afterslip_common.observe import logs, telemetry
from afterslip_workers.envelope import Envelope, Receipt, failed
from afterslip_workers.errors import TaskError, classify
from afterslip_workers.machine import exchange, limit
from afterslip_workers.process import memory
from afterslip_workers.process.children import (
    Child,
    Pool,
    describe_exit,
    kernel_oom_kills,
)
from afterslip_workers.process.delivery import deliverer
from afterslip_workers.process.drain import drain
from afterslip_workers.process.use import working_at
from afterslip_workers.store import durable, paths, spool
from afterslip_workers.store import progress as progress_file
from afterslip_workers.store.backend import read_json, write_json
from afterslip_workers.store.errors import StoreLostError
from afterslip_workers.store.local import LocalBackend
from afterslip_workers.store.paths import CANCEL, LOG, MANIFEST, PROGRESS, RECEIPT
from afterslip_workers.store.progress import ProgressFile

_POLL_S = 0.2
_ASK_BUCKET_S = 1.0
GRACE_S = 5.0  # from SIGTERM to SIGKILL

pool = Pool()
# where attempts outnumber the children that solve, others write what those solved
writers = Pool()
_asking = ThreadPoolExecutor(thread_name_prefix="memory")
log = structlog.get_logger()


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
        spool.locked(envelope.store_backend, envelope.token),
        logs.about(content),
        telemetry.continued("attempt", content, envelope.trace) as below,
    ):
        log.info("attempt begins")
        receipt = _supervise(replace(envelope, trace=below))
        receipt.stats.setdefault("worker", worker_name())
        receipt.stats["ended"] = time.time()
        if receipt.outcome != "stored":
            _sweep(envelope.folder)
        _hand_over(envelope, receipt)
        log.info("attempt done", **_outcome(receipt))
    # also what earlier attempts, or a worker that died here, have left
    deliverer.kick()
    return receipt


def _outcome(receipt: Receipt) -> dict[str, Any]:
    """Return what the log says of an end."""
    summary = {"outcome": receipt.outcome, "error": (receipt.error or {}).get("class")}
    seconds = receipt.stats.get("seconds")
    summary |= {"seconds": None if seconds is None else round(seconds, 3)}
    return {name: value for name, value in summary.items() if value is not None}


def _supervise(envelope: Envelope) -> Receipt:
    token, backend = envelope.token, envelope.store_backend
    try:
        _make_folder(envelope)
        stored = _stored(envelope)
        if stored is not None:
            return stored
        if drain.asked or progress_file.cancel_requested(backend, token):
            return Receipt(token, "cancelled")
        child = _turn(envelope)
        if child is None:
            return Receipt(token, "cancelled")
        watch = _Watch(envelope)
        if pool.limit is None:
            return watch.run(pool, child)
        with exchange.exchange_file() as path:
            receipt = watch.run(pool, child, hand_to=path)
            if receipt.outcome != "solved":
                return receipt
            writer = writers.take()
            assert writer is not None  # noqa: S101 - their number has no limit
            return _joined(receipt, watch.run(writers, writer, handed=path))
    except OSError as error:
        return failed(token, classify(error, backend))


def _joined(solved: Receipt, written: Receipt) -> Receipt:
    """Return the receipt of an attempt that two processes have worked on."""
    first, stats = solved.stats, written.stats
    phases = dict(first["phases"])
    for name, seconds in stats.get("phases", {}).items():
        phases[name] = phases.get(name, 0.0) + seconds
    total = first["seconds"] + stats.get("seconds", 0.0)
    joined = {**stats, "phases": phases, "began": first["began"], "seconds": total}
    return replace(written, stats={**joined, "solving_s": first["seconds"]})


def _turn(envelope: Envelope) -> Child | None:
    """Wait for a child that may work; None if the attempt has to end before.

    It shows no sign of life meanwhile: it has not begun.
    """
    wait = _ASK_BUCKET_S if envelope.store_backend.remote else _POLL_S
    while True:
        child = pool.take(wait)
        # the room may come from a child that was killed for the worker's end
        if drain.asked or (child is None and _cancelled(envelope)):
            if child is not None:
                pool.give_back(child)
            return None
        if child is not None:
            return child


def _cancelled(envelope: Envelope) -> bool:
    try:
        return progress_file.cancel_requested(envelope.store_backend, envelope.token)
    except OSError:
        # a store that is away for a while is no reason to stop
        return False


def _make_folder(envelope: Envelope) -> None:
    backend = envelope.store_backend
    if not isinstance(backend, LocalBackend):
        spool.make(backend, envelope.token)
        return
    if not backend.reachable():
        # never made anew: what is missing may be a mount
        raise StoreLostError(f"the store {backend.name} is not there, or not writable")
    envelope.folder.mkdir(exist_ok=True)


def _hand_over(envelope: Envelope, receipt: Receipt) -> None:
    """Put the receipt, and in a bucket all else, where the service will find it."""
    backend, token = envelope.store_backend, envelope.token
    spooled = spool.entry(backend, token)
    if not backend.remote and "spooled" not in receipt.stats:
        try:
            write_json(backend, f"{paths.attempt(token)}/{RECEIPT}", receipt.as_json())
        except OSError as error:
            _delay(receipt, classify(error, backend))
        else:
            return
    try:
        spool.make(backend, token)
        durable.write_json(spooled / RECEIPT, receipt.as_json())
        if backend.remote:
            spool.deliver(backend, token)
    except OSError as error:
        _delay(receipt, classify(error, backend))
        with suppress(OSError):
            durable.write_json(spooled / RECEIPT, receipt.as_json())


def _delay(receipt: Receipt, reason: TaskError) -> None:
    """Say that the result will come later."""
    receipt.stats["spooled"] = {"class": reason.error_class, "message": reason.message}


class _Watch:
    """The parent's side of one attempt."""

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._before: Future[memory.Held] | None = None
        shared = envelope.store_backend if envelope.store_backend.remote else None
        self._progress = ProgressFile(envelope.folder, envelope.token, shared=shared)
        self._started = time.monotonic()
        self._asked = float("-inf")
        self._stop_since: float | None = None
        self._stop_reason = ""
        self._most = limit.of_child()

    def run(self, children: Pool, child: Child, **more: str) -> Receipt:
        """Have a child work, and give it back when it is done; see `_watched`.

        Parameters
        ----------
        more : what the child gets besides the envelope.

        Returns
        -------
        The receipt; outcome "solved" where another child has to write.
        """
        self._child = child
        # the driver's tool takes a while to answer, for which the child need not wait;
        # a child that only writes is not worth the question
        if children is pool:
            self._before = _asking.submit(memory.of, child.pid)
        else:
            self._before = None
        try:
            return self._watched(more)
        finally:
            children.give_back(child)

    def _watched(self, more: dict[str, str]) -> Receipt:
        """Wait for the child's answer, its death or its end by us."""
        oom_kills = kernel_oom_kills()
        self._progress.beat(force=True)
        self._child.send({**self._envelope.as_json(), **more})
        while True:
            alive = self._child.alive
            answer = self._listen(_POLL_S if alive else 0.0)
            if answer is not None:
                self._progress.update({"phase": answer["outcome"]})
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

    def _listen(self, wait_s: float) -> dict[str, Any] | None:
        for message in self._child.receive(wait_s):
            if "progress" not in message:
                return message
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
        backend = self._envelope.store_backend
        if backend.remote and moment - self._asked < _ASK_BUCKET_S:
            return False
        self._asked = moment
        return _cancelled(self._envelope)

    def _receipt(self, answer: dict[str, Any]) -> Receipt:
        if answer.get("poisoned"):
            self._child.kill()
        late = answer["outcome"] == "solved" and self._stop_reason
        if late or answer["outcome"] == "cancelled":
            return self._stopped(answer.get("stats", {}))
        return Receipt(
            token=self._envelope.token,
            outcome=answer["outcome"],
            manifest=answer.get("manifest"),
            error=answer.get("error"),
            stats=answer.get("stats", {}),
        )

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
        stats = {"seconds": time.monotonic() - self._started, "memory_held": used}
        return failed(
            self._envelope.token, TaskError(ErrorClass.OUT_OF_MEMORY, text), stats
        )

    def _stopped(self, stats: dict[str, Any]) -> Receipt:
        stats.setdefault("seconds", time.monotonic() - self._started)
        warm = int(stats.pop("warm_bytes", 0))
        before = self._before.result() if self._before else memory.Held(0, 0)
        stats["memory"] = memory.ensure_released(self._child, before, warm)
        if self._stop_reason == "timeout":
            text = f"stopped after its time limit of {self._envelope.timeout_s:g} s"
            return failed(
                self._envelope.token, TaskError(ErrorClass.TIMEOUT, text), stats
            )
        return Receipt(self._envelope.token, "cancelled", stats=stats)

    def _buried(self, memory_kill: bool) -> Receipt:
        """Answer for a child that died without an answer of its own."""
        stored = None
        with suppress(OSError):  # a store that is away knows nothing
            stored = _stored(self._envelope)
        if stored is not None:
            # it died after the last byte was safe
            return stored
        if self._stop_reason:
            return self._stopped({})
        text = f"the solving process {describe_exit(self._child.exit_code)}"
        if memory_kill:
            text += " by the kernel, which ran out of memory"
        tail = progress_file.log_tail(self._envelope.folder)
        text += f"; its log ends with:\n{tail}" if tail else "; its log is empty"
        self._progress.update({"phase": "failed"})
        self._progress.beat(force=True)
        seconds = time.monotonic() - self._started
        return failed(
            self._envelope.token,
            TaskError(ErrorClass.KILLED, text),
            {"seconds": seconds},
        )


def _stored(envelope: Envelope) -> Receipt | None:
    """Receipt of an attempt whose manifest is on a disk here."""
    token = envelope.token
    spooled = spool.entry(envelope.store_backend, token)
    for folder in dict.fromkeys([envelope.folder, spooled]):
        manifest = durable.read_json(folder / MANIFEST)
        if isinstance(manifest, dict) and manifest.get("token") == token:
            stats = dict(manifest.get("stats", {}))
            receipt = Receipt(token, "stored", manifest=manifest, stats=stats)
            if folder == spooled and not envelope.store_backend.remote:
                _delay(
                    receipt,
                    TaskError(ErrorClass.STORE_LOST, "the result is in the spool"),
                )
            return receipt
    if envelope.store_backend.remote:
        # sent before, by this worker or another
        sent = read_json(envelope.store_backend, f"{paths.attempt(token)}/{MANIFEST}")
        if isinstance(sent, dict) and sent.get("token") == token:
            return Receipt(token, "stored", manifest=sent, stats=sent.get("stats", {}))
    return None


_LEFT_OF_FAILED = frozenset({LOG, PROGRESS, CANCEL, RECEIPT})


def _sweep(folder: Path) -> None:
    """Leave of an attempt without a result only what says why."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name in _LEFT_OF_FAILED:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def worker_name() -> str:
    """Name of the Dask worker that runs this, or of this process."""
    try:
        from distributed import get_worker

        return str(get_worker().name)
    except (ImportError, ValueError):
        return f"{socket.gethostname()}:{os.getpid()}"
