"""Which backend a store has, by its name."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from afterslip_workers.store.backend import StoreBackend
from afterslip_workers.store.local import LocalBackend


def is_bucket(store: str | Path) -> bool:
    """Tell whether a store is named by the address of a bucket."""
    return str(store).startswith("s3://")


@lru_cache(maxsize=64)
def _open(store: str) -> StoreBackend:
    if is_bucket(store):
        from afterslip_workers.store.bucket import BucketBackend

        return BucketBackend(store)
    return LocalBackend(Path(store))


def open_store(store: str | Path) -> StoreBackend:
    """Return the backend of a store: a folder, or ``s3://bucket/prefix``."""
    return _open(str(store))
