"""What a campaign's store holds before any group, and how it is written anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from afterslip.archive import SourceTable, StationTable, create_store
from afterslip.spec import parse_stored
from afterslip_workers.engines.registry import find
from afterslip_workers.errors import TaskError
from afterslip_workers.store import paths
from afterslip_workers.store.backend import StoreBackend, read_json
from afterslip_workers.store.commit import facts_of

_COLUMNS = ("fault", "component", "patch", "position", "area", "rigidity")


def plain(sources: SourceTable, stations: StationTable | None) -> dict[str, Any]:
    """Return sources and stations as plain values, for ``model.json``."""
    table = {name: getattr(sources, name).tolist() for name in _COLUMNS}
    if stations is None:
        return {"table": table, "stations": None}
    columns: dict[str, Any] = {"name": list(stations.name)}
    for key in ("x", "y", "lon", "lat"):
        values = getattr(stations, key)
        columns[key] = None if values is None else np.asarray(values).tolist()
    return {"table": table, "stations": columns}


def rebuild(backend: StoreBackend, campaign: str, path: Path) -> None:
    """Write the store of a campaign anew, without groups, from what is stored.

    The sources and stations come from ``model.json``, the rest from the spec and the
    campaign's model; where that is gone, what depends on it holds nothing of worth.

    Parameters
    ----------
    path : folder that must not exist.

    Raises
    ------
    KeyError, SpecError
        What is stored says too little of the campaign, or nothing sensible.
    TaskError
        The campaign's engine is not installed here.
    """
    facts = facts_of(backend, campaign)
    root = read_json(backend, f"{paths.greens(campaign)}/zarr.json") or {}
    spec = parse_stored(json.loads(root["attributes"]["spec"]))
    engine = find(spec.physics)
    try:
        model = engine.load(backend, facts["digest"])
    except TaskError:
        model = None
    names = [fault.name for fault in spec.model.faults]
    stations = stations_of(facts)
    create_store(
        path,
        engine.physics.layout(facts),
        engine.fixed_arrays(spec, facts, model, _sources(facts, names), stations),
        attributes=engine.root(spec, facts),
        store_id=campaign,
        crc32c=has_crc32c(facts),
    )


def has_crc32c(facts: dict[str, Any]) -> bool:
    """Tell whether a store's chunks end in a checksum, as those of 0.1.0 do not."""
    return bool(facts.get("crc32c", False))


def _sources(facts: dict[str, Any], faults: list[str]) -> SourceTable:
    """Return the sources in the order of the store."""
    order = facts.get("order", slice(None))
    table = {name: np.array(facts["table"][name])[order] for name in _COLUMNS}
    return SourceTable(faults=faults, **table)


def stations_of(facts: dict[str, Any]) -> StationTable | None:
    """Return the campaign's stations from its ``model.json``."""
    columns = facts.get("stations")
    if not columns:
        return None
    degrees = columns["lon"] is not None
    return StationTable(
        name=columns["name"],
        x=np.array(columns["x"]),
        y=np.array(columns["y"]),
        lon=np.array(columns["lon"]) if degrees else None,
        lat=np.array(columns["lat"]) if degrees else None,
    )
