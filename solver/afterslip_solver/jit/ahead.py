"""Functions compiled for the types of a list, by several processes at once.

Numba compiles one function after the other. Processes that start together and call
`compile_listed` take functions that no other one has taken, until there are none left;
then all find them cached. What is not in the list is compiled when it is called.
"""

from __future__ import annotations

import fcntl
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numba import from_dtype, types
from numba.core.dispatcher import Dispatcher

from afterslip_solver.jit.compiling import cached_file

# `python .ci/compiled.py` writes them
_LISTS = Path(__file__).parent
_CPU_ONLY = ".backend.cpu."
_PACKAGE = __name__.partition(".")[0]
_TYPE = re.compile(r"array\((\w+), (\d)d, ([AC])\)|(\w+)")


def compile_listed(backend: str) -> None:
    """Compile what is not cached, and not being compiled by another process.

    Parameters
    ----------
    backend : "cpu" or "gpu".
    """
    lines = listed("cpu")
    if backend != "cpu":
        # first what takes longest: nobody shall wait for it alone
        lines = listed("gpu") + [line for line in lines if _CPU_ONLY not in line]
    for line in lines:
        _compile(*resolve(line))


def _compile(function: Any, signature: tuple[Any, ...]) -> None:
    path = cached_file(function, signature)
    if not path.exists():
        with _claimed(path.with_suffix(".lock")) as ours:
            if ours and not path.exists():
                function.compile(signature)


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


def called() -> set[str]:
    """Return lines of what this process has compiled, or loaded from the cache.

    Where all was cached before, that is what was called from Python.
    """
    found = set[str]()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != _PACKAGE:
            continue
        for function in vars(module).values():
            if isinstance(function, Dispatcher):
                found |= _lines(function)
    return found


def _lines(function: Any) -> set[str]:
    place = f"{function.py_func.__module__}.{function.py_func.__qualname__}"
    lines = {f"{place} {', '.join(map(str, sig))}" for sig in function.signatures}
    # types that the list has no words for, such as arrays that may not be written to
    return {line for line in lines if _is_said(line, function)}


def _is_said(line: str, function: Any) -> bool:
    try:
        return resolve(line)[1] in function.signatures
    except (AttributeError, TypeError):
        return False
