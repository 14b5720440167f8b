"""What `page.py` looks at: 10,000 campaigns, 5,000 groups, a large sparse store."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from afterslip import integrity
from afterslip.archive import (
    SourceTable,
    StoreLayout,
    SurfaceTable,
    chunk_file,
    create_group_store,
    create_store,
)
from afterslip.physics.viscoelastic.store import (
    Sizes,
    attributes,
    fixed_arrays,
    layout_of,
)
from afterslip.units import YEAR
from afterslip_common.terms import GROUP_SIZE
from afterslip_service.benchmarks import seeding
from afterslip_service.db.session import Database, normal_url
from afterslip_service.db.tables import campaigns, jobs
from afterslip_service.engine.states import CampaignState, JobKind

CAMPAIGNS = 10_000
GROUPS = 5_000
SOURCES, MODES, SIDE = 372, 25, 112
TIMES = np.linspace(0.0, 10.0, 61) * YEAR


def fill(database: Path, store: Path) -> tuple[str, str]:
    """Write the campaigns; return the one of 5,000 groups and the one with a store."""
    opened = Database(normal_url(str(database)))
    try:
        wide, explored, *_ = seeding.fill(opened, store, CAMPAIGNS, 2, 20)
        with opened.write() as connection:
            rows = [
                seeding._job(wide, JobKind.GROUP, k)  # noqa: SLF001 - the same rows
                for k in range(2, GROUPS)
            ]
            connection.execute(jobs.insert(), rows)
            connection.execute(
                campaigns.update()
                .where(campaigns.c.id == explored)
                .values(state=CampaignState.COMPLETE, finished_at=sa.func.now())
            )
    finally:
        opened.engine.dispose()
    return wide, explored


def surface() -> SurfaceTable:
    """Return a square of 50,625 nodes of second-order triangles, 400 km wide."""
    axis = np.linspace(-200e3, 200e3, 2 * SIDE + 1)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    number = np.arange(x.size).reshape(x.shape)
    a = number[:-2:2, :-2:2].ravel()
    row = x.shape[0]
    b, c, d, centre = a + 2 * row, a + 2 * row + 2, a + 2, a + row + 1
    lower = np.stack([a, b, c, a + row, b + 1, centre], axis=1)
    upper = np.stack([a, c, d, centre, a + row + 2, a + 1], axis=1)
    nodes = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
    faces = np.concatenate([lower, upper])
    return SurfaceTable(nodes, faces, x.ravel() / 1e5, y.ravel() / 1e5)


def write_store(path: Path, campaign: str) -> int:
    """Write a store of which only the first group's response is there.

    Returns
    -------
    Bytes that it would have, uncompressed.
    """
    shutil.rmtree(path, ignore_errors=True)
    rng = np.random.default_rng(0)
    ground = surface()
    number = np.arange(SOURCES)
    patches = np.stack([number // 2 % 31, number // 62], axis=1)
    places = np.column_stack([3e3 * patches - [45e3, 9e3], np.full(SOURCES, -1e4)])
    sources = SourceTable(
        ["main"],
        np.zeros(SOURCES, dtype=int),
        number % 2,
        patches,
        places,
        np.full(SOURCES, 9e6),
        np.full(SOURCES, 4e10),
    )
    sizes = Sizes(SOURCES, MODES, len(ground.nodes), len(ground.faces), 0, len(TIMES))
    layout = layout_of(sizes, "spectral")
    create_store(
        path,
        layout,
        fixed_arrays(sources, ground, None, TIMES, MODES, None),
        attributes=attributes("spectral", 10 * YEAR),
        store_id=campaign,
    )
    _write_groups(path, campaign, layout, ground, rng)
    return 4 * SOURCES * MODES * len(ground.nodes) * 3


def _write_groups(
    path: Path,
    campaign: str,
    layout: StoreLayout,
    ground: SurfaceTable,
    rng: np.random.Generator,
) -> None:
    """Link one group's files into all groups; responses only into the first."""
    decay = np.exp(-np.hypot(*ground.nodes[:, :2].T) / 4e4)[:, None]
    waves = [
        np.cos(ground.nodes[:, :2] @ k)[:, None]
        for k in rng.normal(0, 3e-5, (MODES, 2))
    ]
    # rounding of the last digits keeps it from being compressed to nothing
    response = np.stack([decay * w * [1.0, 0.7, -0.5] for w in waves])
    response = response * (1 + 1e-4 * rng.normal(size=response.shape))
    recurrence = np.zeros((GROUP_SIZE, MODES, 2))
    recurrence[:, 1:, 0], recurrence[:, 1:-1, 1] = 2e-9, 5e-10
    values = {
        "response": np.repeat(response[None], GROUP_SIZE, axis=0),
        "recurrence": recurrence,
        "start_norm": np.full(GROUP_SIZE, 1e-9),
        "shift": np.zeros(GROUP_SIZE),
        "mode_count": np.full(GROUP_SIZE, MODES),
        "residual": np.full(GROUP_SIZE, 1e-9),
        "time_error": np.full(GROUP_SIZE, 1e-7),
        "iterations": np.ones(GROUP_SIZE),
    }
    made = path.parent / "group"
    shutil.rmtree(made, ignore_errors=True)
    create_group_store(made, layout, values)
    for group in range(SOURCES // GROUP_SIZE):
        files = {}
        for variable in layout.grouped:
            if variable.name == "response" and group:
                continue
            key = chunk_file(variable, group)
            (path / key).parent.mkdir(parents=True, exist_ok=True)
            os.link(made / chunk_file(variable, 0), path / key)
            files[key] = integrity.file_digests.of(path / key)
        sums = path / integrity.group_key(group)
        sums.parent.mkdir(exist_ok=True)
        sums.write_bytes(integrity.write_checksums(campaign, files, group))
    shutil.rmtree(made)
