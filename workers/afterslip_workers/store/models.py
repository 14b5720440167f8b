"""Cached models in a store: one file of arrays, and the facts that name it."""

from __future__ import annotations

from typing import Any

from afterslip_workers.store import paths
from afterslip_workers.store.backend import StoreBackend, read_json

MODEL = "model.npz"
META = "meta.json"


def file_of(digest: str, meta: dict[str, Any]) -> str:
    """Return the key of a cached model's arrays."""
    return f"{paths.model(digest)}/{meta.get('file', MODEL)}"


def described(backend: StoreBackend, digest: str) -> dict[str, Any] | None:
    """Return the facts of a cached model; None if it is absent."""
    meta = read_json(backend, f"{paths.model(digest)}/{META}")
    if not isinstance(meta, dict) or backend.size(file_of(digest, meta)) is None:
        return None
    return meta


def intact(backend: StoreBackend, digest: str, meta: dict[str, Any]) -> bool:
    """Whether a cached model's arrays are those that were written."""
    return backend.sha256(file_of(digest, meta)) == meta.get("sha256")


def find(backend: StoreBackend, digest: str) -> dict[str, Any] | None:
    """Return the facts of a cached model; None if it is absent or damaged."""
    meta = described(backend, digest)
    return meta if meta is not None and intact(backend, digest, meta) else None
