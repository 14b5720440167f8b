"""What `page.py` looks at: 10,000 campaigns, 5,000 groups, a large sparse store."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

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
from afterslip_common.curve import mode_weights
from afterslip_common.terms import GROUP_SIZE
from afterslip_service.benchmarks import seeding
from afterslip_service.db.session import Database, normal_url
from afterslip_service.db.tables import campaigns, jobs
from afterslip_service.engine.states import CampaignState, JobKind

CAMPAIGNS = 10_000
GROUPS = 5_000
SOURCES, MODES, SIDE = 372, 25, 112
TIMES = np.linspace(0.0, 10.0, 61) * YEAR
# 1/s: rates of relaxation, from a few days to far beyond the last time
RATES = np.geomspace(1e-11, 1e-6, 2000)


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
    rng = np.random.default_rng(1)
    x, y = (
        _irregular(places, rng) for places in np.meshgrid(axis, axis, indexing="ij")
    )
    number = np.arange(x.size).reshape(x.shape)
    a = number[:-2:2, :-2:2].ravel()
    row = x.shape[0]
    b, c, d, centre = a + 2 * row, a + 2 * row + 2, a + 2, a + row + 1
    lower = np.stack([a, b, c, a + row, b + 1, centre], axis=1)
    upper = np.stack([a, c, d, centre, a + row + 2, a + 1], axis=1)
    nodes = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
    faces = np.concatenate([lower, upper])
    return SurfaceTable(nodes, faces, x.ravel() / 1e5, y.ravel() / 1e5)


def _irregular(
    places: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Move the corners, as those of a real mesh lie, and the midpoints with them."""
    found = places.copy()
    inner = found[2:-2:2, 2:-2:2]
    inner += rng.uniform(-600.0, 600.0, inner.shape)
    found[1::2, ::2] = (found[:-2:2, ::2] + found[2::2, ::2]) / 2
    found[::2, 1::2] = (found[::2, :-2:2] + found[::2, 2::2]) / 2
    found[1::2, 1::2] = (found[:-2:2, :-2:2] + found[2::2, 2::2]) / 2
    return found


def lanczos() -> tuple[NDArray[np.float64], float, float]:
    """Return alpha and beta, norm of the first rate and shift of a real recurrence.

    Of a diagonal operator of `RATES` by shift-invert, as the solver makes it, so that
    the weights of the modes decay as those of a curve do.
    """
    shift = TIMES[-1] / 10
    operator = 1 / (1 + shift * RATES)
    start = RATES * np.random.default_rng(2).normal(size=len(RATES))
    basis = [start / np.linalg.norm(start)]
    pairs = np.zeros((MODES, 2))
    for mode in range(1, MODES):
        vector = operator * basis[-1]
        pairs[mode, 0] = vector @ basis[-1]
        for _ in range(2):
            vector -= np.array(basis).T @ (np.array(basis) @ vector)
        pairs[mode, 1] = np.linalg.norm(vector)
        basis.append(vector / pairs[mode, 1])
    pairs[-1, 1] = 0.0
    return pairs, float(np.linalg.norm(start)), float(shift)


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
    pairs, norm, shift = lanczos()
    # of modes of one length, that moves the ground by 0.3 of the elastic displacement
    weights = mode_weights(pairs[1:], norm, shift, TIMES)
    response[1:] *= 0.3 / np.abs(weights).max()
    values = {
        "response": np.repeat(response[None], GROUP_SIZE, axis=0),
        "recurrence": np.repeat(pairs[None], GROUP_SIZE, axis=0),
        "start_norm": np.full(GROUP_SIZE, norm),
        "shift": np.full(GROUP_SIZE, shift),
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
