"""Stores of a campaign and of a group as real tasks make them, without any solve.

What does not differ between campaigns is made once a process and then written again.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import zarr

from afterslip import integrity
from afterslip.archive import (
    SourceTable,
    SurfaceTable,
    create_group_store,
    create_store,
)
from afterslip.physics.viscoelastic.store import (
    Sizes,
    fixed_arrays,
    layout_of,
)
from afterslip.physics.viscoelastic.store import (
    attributes as of_curves,
)
from afterslip.units import YEAR
from afterslip_workers.tasks.coordinates import plain

LANES = 4
N_MODE = 2
# corners and midpoints of one triangle around the domain of `tiny_worker.spec`
NODES = 1e3 * np.array(
    [[-500, -250], [500, -250], [0, 500], [0, -250], [250, 125], [-250, 125]]
)
N_NODE = len(NODES)
TIMES = (0.0, 30 * 86400.0)


def response(source):
    """Return the (mode, node, component) response that a tiny source has."""
    shape = (N_MODE, N_NODE, 3)
    return (source + np.arange(np.prod(shape)).reshape(shape) / 100).astype("f4")


def write_campaign(root: Path, campaign: str, n_sources: int, **attributes):
    """Write ``greens.zarr`` as it is before any group; return facts of it."""
    files, sizes, sources = _of_campaign(n_sources)
    _write(root, files)
    own = {integrity.ROOT, integrity.FIXED}
    sums = {n: hashlib.sha256(c).hexdigest() for n, c in files.items() if n not in own}
    (root / integrity.FIXED).write_bytes(integrity.write_checksums(campaign, sums))
    document = json.loads(files[integrity.ROOT])
    document["attributes"].update(attributes, store_id=campaign)
    (root / integrity.ROOT).write_text(json.dumps(integrity.signed(document)))
    layout = {"sizes": asdict(sizes), "integrator": "spectral", "crc32c": True}
    return {**layout, **plain(sources, None), "files": sums}


def write_group(part: Path, n_sources: int, sources: list[int]):
    """Write the store of a group."""
    _write(part, _of_group(n_sources, len(sources)))
    array = zarr.open_group(str(part), mode="r+", use_consolidated=False)["response"]
    assert isinstance(array, zarr.Array)
    values = np.full((LANES, N_MODE, N_NODE, 3), np.nan, np.float32)
    for lane, source in enumerate(sources):
        values[lane] = response(source)
    array[:] = values


@cache
def _of_campaign(n_sources: int) -> tuple[dict[str, bytes], Sizes, SourceTable]:
    number = np.arange(n_sources)
    sources = SourceTable(
        faults=["main"],
        fault=0 * number,
        component=number % 2,
        patch=np.column_stack([number // 2, 0 * number]),
        position=np.column_stack([1e3 * number, 0.0 * number, 0.0 * number - 5e3]),
        area=np.full(n_sources, 1.6e8),
        rigidity=np.full(n_sources, 3.8e10),
    )
    nodes = np.column_stack([NODES, np.zeros(N_NODE)])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "greens.zarr"
        sizes = Sizes(n_sources, N_MODE, N_NODE, face=1, time=len(TIMES))
        surface = SurfaceTable(nodes, np.arange(N_NODE)[None])
        create_store(
            root,
            layout_of(sizes),
            fixed_arrays(sources, surface, None, TIMES, N_MODE),
            attributes=of_curves("spectral", YEAR),
        )
        return _read(root), sizes, sources


@cache
def _of_group(n_sources: int, lanes: int) -> dict[str, bytes]:
    _, sizes, _ = _of_campaign(n_sources)
    recurrence = np.zeros((lanes, N_MODE, 2))
    recurrence[:, 1:, 0] = 1e-9
    values = {
        "response": np.stack([response(0)] * lanes),
        "recurrence": recurrence,
        "start_norm": np.ones(lanes),
        "shift": np.zeros(lanes),
        "mode_count": np.full(lanes, N_MODE),
        "residual": np.full(lanes, 1e-9),
        "time_error": np.full(lanes, 1e-7),
        "iterations": np.full(lanes, 30),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "group.zarr"
        create_group_store(root, layout_of(sizes), values)
        return _read(root)


def _read(root: Path) -> dict[str, bytes]:
    found = sorted(path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def _write(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
