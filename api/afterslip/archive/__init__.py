"""The store of Green's functions: its layout, and how to read curves from it."""

from afterslip.archive.create import (
    create_campaign_store,
    create_group_store,
    set_attributes,
)
from afterslip.archive.layout import (
    Sizes,
    SourceTable,
    StationTable,
    SurfaceTable,
    chunk_file,
    group_arrays,
)
from afterslip.archive.reader import GreensStore, open_greens
from afterslip.archive.surface import SurfaceInterpolator

__all__ = [
    "GreensStore",
    "Sizes",
    "SourceTable",
    "StationTable",
    "SurfaceInterpolator",
    "SurfaceTable",
    "chunk_file",
    "create_campaign_store",
    "create_group_store",
    "group_arrays",
    "open_greens",
    "set_attributes",
]
