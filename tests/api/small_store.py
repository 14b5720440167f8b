"""A store of two groups on a small surface, without any solve."""

import json
from pathlib import Path

import numpy as np

from afterslip import integrity
from afterslip.archive import (
    SourceTable,
    StationTable,
    SurfaceTable,
    chunk_file,
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

N_SOURCE, N_MODE, TIMES = 6, 9, [0.0, 0.5 * YEAR, 10 * YEAR]


def square(n: int = 3, size: float = 1e4) -> SurfaceTable:
    """Return a structured surface of 2 n² second-order triangles."""
    axis = np.linspace(-size, size, 2 * n + 1)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    number = np.arange(x.size).reshape(x.shape)
    faces = []
    for i in range(0, 2 * n, 2):
        for j in range(0, 2 * n, 2):
            a, b, c, d = (
                number[p] for p in ((i, j), (i + 2, j), (i + 2, j + 2), (i, j + 2))
            )
            centre = number[i + 1, j + 1]
            faces.append([a, b, c, number[i + 1, j], number[i + 2, j + 1], centre])
            faces.append([a, c, d, centre, number[i + 1, j + 2], number[i, j + 1]])
    nodes = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
    return SurfaceTable(nodes, np.array(faces), x.ravel() / 1e5, y.ravel() / 1e5)


def sources() -> SourceTable:
    rng = np.random.default_rng(0)
    return SourceTable(
        ["main", "splay"],
        np.array([0, 0, 0, 0, 1, 1]),
        np.arange(N_SOURCE) % 2,
        np.arange(12).reshape(6, 2),
        rng.normal(size=(6, 3)) * 1e4,
        np.full(6, 1e8),
        np.full(6, 4e10),
    )


def stations() -> StationTable:
    return StationTable(["Ōshika", "MYGI"], np.array([0.0, 1e3]), np.array([1.0, 2e3]))


def group_values(n_lane: int, seed: int, n_mode: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    recurrence = np.zeros((n_lane, n_mode, 2))
    recurrence[:, 1:, 0] = rng.uniform(1e-9, 2e-9, (n_lane, n_mode - 1))
    recurrence[:, 1:-1, 1] = 1e-10
    return {
        "response": rng.normal(size=(n_lane, n_mode, 49, 3)),
        "recurrence": recurrence,
        "start_norm": rng.uniform(1, 2, n_lane),
        "shift": np.zeros(n_lane),
        "displacement": rng.normal(size=(n_lane, 3, 2, 3)),
        "mode_count": np.full(n_lane, n_mode),
        "residual": np.full(n_lane, 1e-9),
        "time_error": np.full(n_lane, 1e-7),
        "iterations": np.zeros(n_lane),  # equal to its fill value, yet a file
    }


def create_campaign_store(
    path,
    *,
    sources,
    surface,
    stations,
    times,
    until,
    n_mode,
    integrator="spectral",
    step_times=None,
    attributes=None,
    store_id=None,
    crc32c=True,
):
    """Create a store of curves without groups, and return its layout; s."""
    sizes = Sizes(
        source=len(sources),
        mode=n_mode,
        node=len(surface.nodes),
        face=len(surface.faces),
        station=0 if stations is None else len(stations),
        time=np.size(times),
    )
    layout = layout_of(sizes, integrator)
    create_store(
        path,
        layout,
        fixed_arrays(sources, surface, stations, times, n_mode, step_times),
        attributes={**of_curves(integrator, until), **(attributes or {})},
        store_id=store_id,
        crc32c=crc32c,
    )
    return layout


def create_whole_store(path: Path, **changes) -> None:
    """Create a store whose two groups are accepted."""
    given = {
        "sources": sources(),
        "surface": square(),
        "stations": stations(),
        "times": TIMES,
        "until": 10 * YEAR,
        "n_mode": N_MODE,
    }
    layout = create_campaign_store(path, **(given | changes))
    for index, lanes in enumerate((4, 2)):
        group = path.with_name(f"g{index}.zarr")
        create_group_store(group, layout, group_values(lanes, seed=index))
        accept(group, path, index, layout)


def accept(group: Path, campaign: Path, index: int, layout) -> None:
    """Move a group's files into a store, then write their checksums."""
    files = {}
    for variable in layout.grouped:
        key = chunk_file(variable, index)
        target = campaign / key
        target.parent.mkdir(parents=True, exist_ok=True)
        (group / chunk_file(variable, 0)).rename(target)
        files[key] = integrity.file_digests.of(target)
    root = json.loads((campaign / integrity.ROOT).read_text())
    if store := root["attributes"].get("store_id"):
        document = campaign / integrity.group_key(index)
        document.parent.mkdir(exist_ok=True)
        document.write_bytes(integrity.write_checksums(store, files, index))
