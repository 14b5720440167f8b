"""The key from which the secrets of webhooks follow: one file, in no database.

A user who reads a copy of the database so learns no secret, and every process of the
service that has the file makes the same ones.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from afterslip_service.errors import ConflictError
from afterslip_service.settings import Settings

NAME = "afterslip-webhooks.key"
LEAST_BYTES = 32


def read(settings: Settings, *, make: bool = False) -> bytes:
    """Return the key.

    Parameters
    ----------
    make : make one beside the store if the settings name none and none is there.

    Raises
    ------
    ConflictError
        There is none, or it is too short; with what the operator should do.
    """
    path = _path(settings)
    try:
        if make and settings.webhook_key is None and not path.exists():
            _make(path)
        key = path.read_bytes()
    except OSError as error:
        raise ConflictError(
            f"the key of webhooks cannot be read or made ({error.strerror}): set "
            "AFTERSLIP_WEBHOOK_KEY to a file of 32 random bytes, for every process "
            "of the service"
        ) from error
    if len(key) < LEAST_BYTES:
        raise ConflictError(
            f"the key of webhooks has {len(key)} bytes and needs {LEAST_BYTES}: "
            "`head -c 32 /dev/urandom` makes one"
        )
    return key


def _path(settings: Settings) -> Path:
    if settings.webhook_key is not None:
        return settings.webhook_key
    if isinstance(settings.store, Path):
        return settings.store.parent / NAME
    raise ConflictError(
        "webhooks need a key that is no part of the store: set AFTERSLIP_WEBHOOK_KEY "
        "to a file of 32 random bytes, for every process of the service"
    )


def _make(path: Path) -> None:
    """Make a key that is whole from the moment that others can read it."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(LEAST_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):  # another process was faster
            os.link(beside, path)
    finally:
        beside.unlink()
