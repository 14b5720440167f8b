"""What an attempt leaves behind: its receipt, and what it had stored before."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from afterslip.error_class import ErrorClass
from afterslip_workers.errors import classify
from afterslip_workers.messages import (
    Envelope,
    Failure,
    Receipt,
    TaskError,
    of_manifest,
)
from afterslip_workers.store import commit, durable, paths, spool
from afterslip_workers.store.backend import write_json
from afterslip_workers.store.manifest import manifest_in
from afterslip_workers.store.open import open_store
from afterslip_workers.store.paths import CANCEL, LOG, PROGRESS, RECEIPT


def stored(envelope: Envelope) -> Receipt | None:
    """Receipt of an attempt whose manifest is on a disk here."""
    token, backend = envelope.token, open_store(envelope.store)
    spooled = spool.entry(backend, token)
    for folder in dict.fromkeys([spool.folder_of(envelope), spooled]):
        manifest = manifest_in(folder)
        if manifest is not None and manifest.token == token:
            receipt = of_manifest(manifest)
            if folder == spooled and not backend.remote:
                why = "the result is in the spool"
                return _delayed(receipt, TaskError(ErrorClass.STORE_LOST, why))
            return receipt
    # sent before, by this worker or another
    sent = commit.manifest_of(backend, token) if backend.remote else None
    return of_manifest(sent) if sent is not None and sent.token == token else None


def hand_over(envelope: Envelope, receipt: Receipt) -> Receipt:
    """Put the receipt, and in a bucket all else, where the service will find it.

    Returns
    -------
    The receipt as it was put there, which says where its result waits.
    """
    backend, token = open_store(envelope.store), envelope.token
    spooled = spool.entry(backend, token)
    if not backend.remote and receipt.stats.spooled is None:
        try:
            write_json(backend, f"{paths.attempt(token)}/{RECEIPT}", receipt.as_json())
        except OSError as error:
            receipt = _delayed(receipt, classify(error, backend))
        else:
            return receipt
    try:
        spool.make(backend, token)
        durable.write_json(spooled / RECEIPT, receipt.as_json())
        if backend.remote:
            spool.deliver(backend, token)
    except OSError as error:
        receipt = _delayed(receipt, classify(error, backend))
        with suppress(OSError):
            durable.write_json(spooled / RECEIPT, receipt.as_json())
    return receipt


def _delayed(receipt: Receipt, reason: TaskError) -> Receipt:
    """Say that the result will come later."""
    return receipt.but(spooled=Failure.of(reason))


_LEFT_OF_FAILED = frozenset({LOG, PROGRESS, CANCEL, RECEIPT})


def sweep(folder: Path) -> None:
    """Leave of an attempt without a result only what says why."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name in _LEFT_OF_FAILED:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
