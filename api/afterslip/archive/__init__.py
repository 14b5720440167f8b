"""The store of Green's functions: how it is laid out, made and read."""

from afterslip.archive.create import (
    create_group_store,
    create_store,
    set_attributes,
)
from afterslip.archive.layout import StoreLayout, Variable, chunk_file
from afterslip.archive.reader import GreensStore, open_greens
from afterslip.archive.surface import SurfaceInterpolator
from afterslip.archive.tables import SourceTable, StationTable, SurfaceTable

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
