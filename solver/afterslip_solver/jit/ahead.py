"""Functions compiled for the types of a list, by several processes at once.

Numba compiles one function after the other. Processes that start together and call
`compile_listed` take functions that no other one has taken, until there are none left;
then all find them cached. What is not in the list is compiled when it is called.
"""

from __future__ import annotations

import fcntl
import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numba import from_dtype, types

from afterslip_solver.jit.compiling import cached_file

# `python .ci/compiled.py` writes them
_LISTS = Path(__file__).parent
# of functions that nothing but the CPU's backend calls
CPU_ONLY = ".backend.cpu."
# made between two looks for cycles: compiling takes a tenth less time than with the
# usual 700, and 20 MB more
_OBJECTS = 50_000
_TYPE = re.compile(r"array\((\w+), (\d)d, ([AC])\)|(\w+)")


def compile_listed(backend: str) -> None:
    """Compile what is not cached, and not being compiled by another process.

    Parameters
    ----------
    backend : "cpu" or "gpu".
    """
    with _fewer_collections():
        for function, signature in missing(backend):
            path = cached_file(function, signature)
            with _claimed(path.with_suffix(".lock")) as ours:
                if ours and not path.exists():
                    function.compile(signature)


def missing(backend: str) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return functions and types that are listed for a backend and not cached."""
    lines = listed("cpu")
    if backend != "cpu":
        # first what takes longest: nobody shall wait for it alone
        lines = listed("gpu") + [line for line in lines if CPU_ONLY not in line]
    return [one for one in map(resolve, lines) if not cached_file(*one).exists()]


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Look for cycles less often: Numba makes millions of objects that live on."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _claimed(lock: Path) -> Iterator[bool]:
    """Yield whether nobody else holds a lock, which ends with its process."""
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        stream = lock.open("w")
    except OSError:
        yield False
        return
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass  # not every file system knows locks: two may compile the same
        try:
            yield True
        finally:
            with suppress(OSError):
                lock.unlink()


def list_of(backend: str) -> Path:
    """Return the file of what a backend calls; of a GPU only what a CPU does not."""
    return _LISTS / f"listed-{backend}.txt"


def listed(backend: str) -> list[str]:
    """Return the lines of a list, each a function and the types of its arguments."""
    return list_of(backend).read_text("utf-8").splitlines()


def resolve(line: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a line's function and types."""
    place, _, arguments = line.partition(" ")
    module, _, name = place.rpartition(".")
    found = [
        types.Array(_scalar(of), int(ndim), order) if of else _scalar(plain)
        for of, ndim, order, plain in _TYPE.findall(arguments)
    ]
    return getattr(import_module(module), name), tuple(found)


def _scalar(name: str) -> Any:
    return from_dtype(np.dtype(name))
