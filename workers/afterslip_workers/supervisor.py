"""Watch over one attempt: sign of life, cancel, time limit, a child that dies."""

from __future__ import annotations

import os
import shutil
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from afterslip_workers import progress as progress_file
from afterslip_workers.envelope import Envelope, Receipt, failed
from afterslip_workers.errors import TaskError, classify
from afterslip_workers.process import Child, Pool, describe_exit, kernel_oom_kills
from afterslip_workers.progress import LOG, MANIFEST, ProgressFile
from afterslip_workers.store.durable import read_json

_POLL_S = 0.2
GRACE_S = 5.0  # from SIGTERM to SIGKILL

pool = Pool()


def supervise(envelope: Envelope) -> Receipt:
    """Run one attempt in a child and answer for it; never raises.

    An attempt that is stored already is not run again, so that a task which Dask
    runs twice costs nothing the second time.
    """
    try:
        envelope.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return failed(envelope.token, classify(error))
    stored = _stored(envelope)
    if stored is not None:
        return stored
    if progress_file.cancel_requested(envelope.folder):
        return Receipt(envelope.token, "cancelled", stats={"worker": worker_name()})
    try:
        child = pool.take()
    except OSError as error:
        return failed(envelope.token, classify(error))
    try:
        receipt = _Watch(child, envelope).run()
    finally:
        pool.give_back(child)
    if receipt.outcome != "stored":
        _sweep(envelope.folder)
    receipt.stats.setdefault("worker", worker_name())
    return receipt


class _Watch:
    """The parent's side of one attempt."""

    def __init__(self, child: Child, envelope: Envelope) -> None:
        self._child = child
        self._envelope = envelope
        self._progress = ProgressFile(envelope.folder, envelope.token)
        self._started = time.monotonic()
        self._stop_since: float | None = None
        self._stop_reason = ""

    def run(self) -> Receipt:
        """Wait for the child's answer, its death or its end by us."""
        oom_kills = kernel_oom_kills()
        self._progress.beat(force=True)
        self._child.send(self._envelope.as_json())
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
            limit = self._envelope.timeout_s
            if progress_file.cancel_requested(self._envelope.folder):
                self._stop_reason = "cancelled"
            elif limit is not None and moment - self._started > limit:
                self._stop_reason = "timeout"
            else:
                return
            self._stop_since = moment
            self._progress.update({"phase": "stopping"})
            self._child.ask_to_stop()
        elif moment - self._stop_since > GRACE_S:
            self._child.kill()

    def _receipt(self, answer: dict[str, Any]) -> Receipt:
        if answer.get("poisoned"):
            self._child.kill()
        if answer["outcome"] == "cancelled":
            return self._stopped(answer.get("stats", {}))
        return Receipt(
            token=self._envelope.token,
            outcome=answer["outcome"],
            manifest=answer.get("manifest"),
            error=answer.get("error"),
            stats=answer.get("stats", {}),
        )

    def _stopped(self, stats: dict[str, Any]) -> Receipt:
        stats.setdefault("seconds", time.monotonic() - self._started)
        if self._stop_reason == "timeout":
            text = f"stopped after its time limit of {self._envelope.timeout_s:g} s"
            return failed(self._envelope.token, TaskError("timeout", text), stats)
        return Receipt(self._envelope.token, "cancelled", stats=stats)

    def _buried(self, memory_kill: bool) -> Receipt:
        """Answer for a child that died without an answer of its own."""
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
            self._envelope.token, TaskError("killed", text), {"seconds": seconds}
        )


def _stored(envelope: Envelope) -> Receipt | None:
    """Receipt of an attempt whose manifest is on the disk."""
    manifest = read_json(envelope.folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("token") != envelope.token:
        return None
    return Receipt(
        envelope.token, "stored", manifest=manifest, stats=manifest.get("stats", {})
    )


def _sweep(folder: Path) -> None:
    """Leave of an attempt without a result only what tells why."""
    keep = {LOG, progress_file.FILE, progress_file.CANCEL}
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name in keep:
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
