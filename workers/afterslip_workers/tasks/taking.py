"""Green's functions that another campaign has stored, taken instead of solved."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import zarr

from afterslip.archive import StoreLayout
from afterslip.errors import ArchiveError
from afterslip_workers.engines.base import Arrays, Engine, GroupWork
from afterslip_workers.messages import Origin
from afterslip_workers.store import paths, reading
from afterslip_workers.store.backend import StoreBackend
from afterslip_workers.store.commit import chunk_key

log = logging.getLogger(__name__)


def take(
    engine: Engine, work: GroupWork, origins: Mapping[int, Origin]
) -> dict[int, Arrays]:
    """Read sources that other campaigns have stored.

    What is gone, damaged or not good enough is left out, and has to be solved.

    Parameters
    ----------
    origins : by place in the own store.

    Returns
    -------
    Arrays by place, each without its axis of sources.
    """
    taken: dict[int, Arrays] = {}
    sound: dict[tuple[str, int], bool] = {}
    for position, origin in origins.items():
        whose = (origin.campaign, origin.group)
        if whose not in sound:
            sound[whose] = _is_sound(work.store, *whose, origin.files or {})
        if not sound[whose]:
            continue
        try:
            stored = zarr.open_group(reading.greens(work.store, whose[0]), mode="r")
            found = engine.adopt(stored, origin.position, work)
        except (OSError, KeyError, ValueError, IndexError, ArchiveError) as error:
            log.warning("a source of campaign %s cannot be read: %s", whose[0], error)
            continue
        if found is None:
            log.warning("a source of campaign %s is not exact enough", whose[0])
            continue
        taken[position] = found
    return taken


def stack(layout: StoreLayout, sources: Sequence[Arrays]) -> Arrays:
    """Return sources as the arrays of one group; shorter ones end in NaN."""
    found = {}
    for variable in layout.grouped:
        parts = [np.asarray(source[variable.name]) for source in sources]
        for axis, dim in enumerate(variable.dims[1:]):
            if dim in layout.ragged:
                parts = _padded(parts, axis)
        found[variable.name] = np.stack(parts)
    return found


def _padded(parts: Sequence[Any], axis: int) -> list[Any]:
    most = max(part.shape[axis] for part in parts)
    padded = []
    for part in parts:
        widths = [(0, 0)] * part.ndim
        widths[axis] = (0, most - part.shape[axis])
        padded.append(np.pad(part, widths, constant_values=np.nan))
    return padded


def _is_sound(
    backend: StoreBackend, campaign: str, group: int, files: dict[str, str]
) -> bool:
    """Tell whether a stored group reads back as its manifest says."""
    root = paths.greens(campaign)
    try:
        wrong = [
            name
            for name, digest in files.items()
            if backend.sha256(f"{root}/{chunk_key(name, group)}") != digest
        ]
    except OSError as error:
        log.warning("group %d of campaign %s is not there: %s", group, campaign, error)
        return False
    if wrong or not files:
        log.warning("group %d of campaign %s is damaged: %s", group, campaign, wrong)
    return bool(files) and not wrong
