"""Cache of what a set-up has computed, keyed by the digest of its inputs.

A mesh's numbering, the tables of its kernels and the coarse matrices of its stiffness
are the same in every process that prepares a model, and in the one that takes the place
of another. Where they are stored is up to the caller.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyamg
from numpy.typing import NDArray

from afterslip_solver.jit.threads import over

Arrays = dict[str, NDArray[Any]]
# bytes that one thread hashes at once
_BLOCK = 2**23


def digest(*parts: Any) -> bytes:
    """SHA-256 of arrays and of the representation of anything else.

    Of an array the digests of its blocks are taken, which all cores make.
    """
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(repr((part.shape, part.dtype.str)).encode())
            found.update(_of_blocks(part))
        else:
            found.update(repr(part).encode())
    return found.digest()


def _of_blocks(array: NDArray[Any]) -> bytes:
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    found = [b""] * -(-len(data) // _BLOCK)

    def fill(start: int, stop: int) -> None:
        for k in range(start, stop):
            block = data[k * _BLOCK : (k + 1) * _BLOCK]
            found[k] = hashlib.sha256(block).digest()

    over(len(found), fill, few=1)
    return b"".join(found)


class ArrayCache(Protocol):
    """Storage for sets of host arrays."""

    def get(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return what is stored under a name, or make it and store it.

        Damaged sets are made again. The name changes with everything that the arrays
        depend on.
        """

    def find(self, name: str) -> Arrays | None:
        """Return what is stored under a name; None where it is absent or damaged."""


@dataclass(frozen=True, slots=True)
class CacheScope:
    """Cached sets of arrays that have the same inputs.

    Attributes
    ----------
    store : where they are; None: nowhere, they are made each time.
    cause : digest of the inputs.
    """

    store: ArrayCache | None = None
    cause: str = ""

    def keyed(self, *parts: Any) -> CacheScope:
        """Return the scope of further inputs: arrays, or what has a clear repr."""
        if self.store is None:
            return self
        return CacheScope(self.store, digest(self.cause or makers(), *parts).hex())

    def get(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return a set, made only if it is not stored; see `ArrayCache`."""
        if self.store is None:
            return make()
        return self.store.get(f"{name}-{self.cause}", make)

    def find(self, name: str) -> Arrays | None:
        """Return a set that is stored; see `ArrayCache`."""
        return None if self.store is None else self.store.find(f"{name}-{self.cause}")


NO_CACHE = CacheScope()


@cache
def makers() -> str:
    """Digest of the code that makes what is stored: each version makes its own."""
    versions = f"{np.__version__} {pyamg.__version__}"
    folder = Path(__file__).parent
    modules = sorted(folder.rglob("*.py"))
    read = ((str(path.relative_to(folder)), path.read_bytes()) for path in modules)
    return digest(versions, *read).hex()
