"""Imports without the collector of garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Do not look for garbage meanwhile, in the whole process.

    Large imports make many objects and no garbage, but the collector goes through all
    of them each time; that takes a fifth of the time of an engine's import, in which
    no other thread runs.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
