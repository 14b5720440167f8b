"""Where an attempt writes its result: the store or, while it is away, the spool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from afterslip_workers.envelope import Envelope
from afterslip_workers.errors import AWAY, TaskError, classify
from afterslip_workers.store import manifest, spool
from afterslip_workers.store.errors import StoreLostError
from afterslip_workers.store.result_folders import RESULT_FOLDERS


def write_result(
    envelope: Envelope, write: Callable[[Path], dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, str] | None]:
    """Write a result and its manifest into the store or, if it is away, here.

    Parameters
    ----------
    write : writes all into a folder and returns the manifest; called again for
        another folder where the store has refused.

    Returns
    -------
    The manifest, and {"class", "message"} of why it is not in the store.

    Raises
    ------
    TaskError
        If neither the store nor the spool takes it.
    """
    backend = envelope.store_backend
    try:
        if not backend.remote and not backend.reachable():
            raise StoreLostError(f"the store {backend.name} is not there any more")
        return write(envelope.folder), None
    except (OSError, TaskError) as error:
        refused = classify(error, backend)
        if refused.error_class not in AWAY or backend.remote:
            raise refused from error
    part = RESULT_FOLDERS.get(manifest.kind_of(envelope.kind))
    if part is not None:
        # what little the store took would only be in the way
        manifest.clear(envelope.folder / part)
    try:
        written = write(spool.make(backend, envelope.token))
    except OSError as error:
        text = f"{refused.message}; nor can the spool take it: {error}"
        raise TaskError(refused.error_class, text) from error
    return written, {"class": refused.error_class, "message": refused.message}
