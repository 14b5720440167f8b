"""What a set-up has computed, kept by what it follows from.

A mesh's numbering, the tables of its kernels and the coarse matrices of its stiffness
are the same in every process that prepares a model, and in the one that takes the place
of another. Where they are kept is for whoever owns a disk to say.
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

Arrays = dict[str, NDArray[Any]]


def digest(*parts: Any) -> bytes:
    """SHA-256 of arrays and of the representation of anything else."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(repr((part.shape, part.dtype.str)).encode())
            found.update(np.ascontiguousarray(part).data)
        else:
            found.update(repr(part).encode())
    return found.digest()


class Shelf(Protocol):
    """A place for sets of host arrays."""

    def take(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return what is kept under a name, or make it and keep it.

        What is damaged there is made again. The name changes with everything that the
        arrays depend on.
        """


@dataclass(frozen=True, slots=True)
class Kept:
    """Sets of arrays that follow from the same things.

    Attributes
    ----------
    shelf : where they are; None: nowhere, they are made each time.
    cause : digest of what they follow from.
    """

    shelf: Shelf | None = None
    cause: str = ""

    def by(self, *parts: Any) -> Kept:
        """Return those that follow from some more, arrays or what has a clear repr."""
        if self.shelf is None:
            return self
        return Kept(self.shelf, digest(self.cause or makers(), *parts).hex())

    def take(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return a set, made only if it is not kept; see `Shelf`."""
        if self.shelf is None:
            return make()
        return self.shelf.take(f"{name}-{self.cause}", make)


NOT_KEPT = Kept()


@cache
def makers() -> str:
    """Digest of the code that makes what is kept: another version makes its own."""
    versions = f"{np.__version__} {pyamg.__version__}"
    folder = Path(__file__).parent
    modules = sorted(folder.rglob("*.py"))
    read = ((str(path.relative_to(folder)), path.read_bytes()) for path in modules)
    return digest(versions, *read).hex()
