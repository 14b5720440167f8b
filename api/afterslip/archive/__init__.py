"""The store of Green's functions: how it is laid out, made and read.

What reads is imported when it is first used: a process that only writes has no use for
xarray, which takes a fifth of its imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from afterslip.archive.create import (
    create_group_store,
    create_store,
    set_attributes,
)
from afterslip.archive.layout import StoreLayout, Variable, chunk_file
from afterslip.archive.surface import SurfaceInterpolator
from afterslip.archive.tables import SourceTable, StationTable, SurfaceTable

if TYPE_CHECKING:
    from afterslip.archive.reader import GreensStore, open_greens

_READER = ("GreensStore", "open_greens")

__all__ = [
    "GreensStore",
    "SourceTable",
    "StationTable",
    "StoreLayout",
    "SurfaceInterpolator",
    "SurfaceTable",
    "Variable",
    "chunk_file",
    "create_group_store",
    "create_store",
    "open_greens",
    "set_attributes",
]


def __getattr__(name: str) -> Any:
    if name not in _READER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("afterslip.archive.reader"), name)
