"""Where an attempt writes its result: the store or, while it is away, the spool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from afterslip_workers.errors import AWAY, TaskError, classify
from afterslip_workers.messages import Envelope, Failure, Manifest
from afterslip_workers.store import manifest, spool
from afterslip_workers.store.errors import StoreLostError
from afterslip_workers.store.open import open_store


def write_result(
    envelope: Envelope, part: str, write: Callable[[Path], Manifest]
) -> tuple[Manifest, Failure | None]:
    """Write a result and its manifest into the store or, if it is away, here.

    Parameters
    ----------
    part : folder of the result in the attempt's.
    write : writes all into a folder and returns the manifest; called again for
        another folder where the store has refused.

    Returns
    -------
    The manifest, and why it is not in the store.

    Raises
    ------
    TaskError
        If neither the store nor the spool takes it.
    """
    backend = open_store(envelope.store)
    try:
        if not backend.remote and not backend.reachable():
            raise StoreLostError(f"the store {backend.name} is not there any more")
        return write(spool.folder_of(envelope)), None
    except (OSError, TaskError) as error:
        refused = classify(error, backend)
        if refused.error_class not in AWAY or backend.remote:
            raise refused from error
    # what little the store took would only be in the way
    manifest.clear(spool.folder_of(envelope) / part)
    try:
        written = write(spool.make(backend, envelope.token))
    except OSError as error:
        text = f"{refused.message}; nor can the spool take it: {error}"
        raise TaskError(refused.error_class, text) from error
    return written, Failure.of(refused)
