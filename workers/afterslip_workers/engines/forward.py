"""A forward run of any physics: its engine is found by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from afterslip.errors import one_problem
from afterslip.frame import Frame
from afterslip.physics.registry import name_of
from afterslip.readers.places import Points
from afterslip.spec import load
from afterslip_workers.engines.base import ForwardEngine
from afterslip_workers.engines.registry import find
from afterslip_workers.store import durable

if TYPE_CHECKING:
    import xarray as xr


def engine_of(spec: str | Path | Mapping[str, Any]) -> ForwardEngine:
    """Return the engine that a forward spec, a file or its content, asks for.

    Raises
    ------
    SpecError
        Its physics has no forward runs.
    TaskError
        This machine has no engine for it.
    """
    data = load(Path(spec)) if isinstance(spec, str | Path) else dict(spec)
    engine = find(name_of(data))
    if not isinstance(engine, ForwardEngine):
        raise one_problem("physics", name_of(data), "has no forward runs")
    return engine


def place_coordinates(frame: Frame, points: Points) -> dict[str, Any]:
    """Return the coordinates of a dimension ``point``."""
    metres = {"units": "m"}
    coords: dict[str, Any] = {
        "station": ("point", [str(name) for name in points.name]),
        "component": ("component", ["east", "north", "up"]),
        "x": ("point", points.x, {**metres, "long_name": "east of the origin"}),
        "y": ("point", points.y, {**metres, "long_name": "north of the origin"}),
        "depth": (
            "point",
            points.depth,
            {**metres, "positive": "down", "standard_name": "depth"},
        ),
    }
    if frame.geographic:
        lon = {"units": "degrees_east", "standard_name": "longitude"}
        lat = {"units": "degrees_north", "standard_name": "latitude"}
        coords["lon"] = ("point", points.lon, lon)
        coords["lat"] = ("point", points.lat, lat)
    return coords


def require_writable(field: str, path: Path) -> None:
    """Refuse a file that cannot be written, before the work for it.

    Folders that are missing above it are made when it is written.

    Parameters
    ----------
    field : that names the file, for messages.

    Raises
    ------
    SpecError
    """
    if path.is_dir():
        raise one_problem(field, str(path), "is a folder", "name a file in it")
    folder = next(above for above in path.absolute().parents if above.exists())
    try:
        # what a file system allows is known only when it is tried
        TemporaryFile(dir=folder).close()
    except OSError as error:
        text = f"cannot be written: {folder}: {str(error.strerror).lower()}"
        hint = "name a file in a folder that you can write to"
        raise one_problem(field, str(path), text, hint) from None


def write(result: xr.Dataset, path: Path) -> None:
    """Write the file beside its name first, so that no torn one can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = durable.scratch_beside(path)
    try:
        result.to_netcdf(scratch, engine="h5netcdf")
        durable.sync_file(scratch)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
