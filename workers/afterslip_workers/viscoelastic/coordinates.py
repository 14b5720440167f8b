"""What a campaign's store holds before any group: coordinates and shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from afterslip.archive import (
    Sizes,
    SourceTable,
    StationTable,
    SurfaceTable,
    create_campaign_store,
)
from afterslip.frame import Frame
from afterslip.physics.viscoelastic.spec import ViscoelasticCampaign
from afterslip_solver.mesh.slit_surface import two_sided
from afterslip_solver.model import Model
from afterslip_workers.errors import TaskError
from afterslip_workers.store import paths
from afterslip_workers.store.backend import StoreBackend, read_json
from afterslip_workers.store.commit import facts_of
from afterslip_workers.viscoelastic.cache import load_model
from afterslip_workers.viscoelastic.settings import settings_of
from afterslip_workers.viscoelastic.template import steps_of, template_of

_COLUMNS = ("fault", "component", "patch", "position", "area", "rigidity")


def surface_of(model: Model, frame: Frame) -> SurfaceTable:
    """Return the free surface of a model."""
    trace = two_sided(model)
    nodes = model.mesh.nodes[trace.nodes]
    lon = lat = None
    if frame.geographic:
        lon, lat = frame.to_geographic(nodes[:, 0], nodes[:, 1])
    return SurfaceTable(nodes=nodes, faces=trace.faces, lon=lon, lat=lat)


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

    The sources and stations come from ``model.json``, the times from the spec. The
    surface comes from the campaign's model; where that is gone, it is left out, and
    its arrays hold nothing of worth.

    Parameters
    ----------
    path : folder that must not exist.

    Raises
    ------
    KeyError, SpecError
        What is stored says too little of the campaign, or nothing sensible.
    """
    facts = facts_of(backend, campaign)
    root = read_json(backend, f"{paths.greens(campaign)}/zarr.json") or {}
    spec = ViscoelasticCampaign.from_dict(json.loads(root["attributes"]["spec"]))
    settings = settings_of(spec.times, spec.solver)
    template = template_of(facts)
    try:
        model = load_model(backend, facts["digest"])
        surface = surface_of(model, Frame.of(spec.model.frame))
    except TaskError:
        surface = _hollow(template.sizes, Frame.of(spec.model.frame))
    stepping = template.integrator == "stepping"
    create_campaign_store(
        path,
        sources=_sources(facts, [fault.name for fault in spec.model.faults]),
        surface=surface,
        stations=None if facts["stations"] is None else _stations(facts["stations"]),
        times=[float(time) for time in spec.times.output],
        until=float(spec.times.until),
        n_mode=template.sizes.mode,
        integrator=template.integrator,
        step_times=steps_of(settings).step_times if stepping else None,
        store_id=campaign,
        crc32c=template.crc32c,
    )


def _hollow(sizes: Sizes, frame: Frame) -> SurfaceTable:
    """Return a surface of the right size that lies nowhere."""
    nodes = np.zeros((sizes.node, 3))
    degrees = nodes[:, 0] if frame.geographic else None
    faces = np.zeros((sizes.face, 6), dtype=np.int64)
    return SurfaceTable(nodes=nodes, faces=faces, lon=degrees, lat=degrees)


def _sources(facts: dict[str, Any], faults: list[str]) -> SourceTable:
    """Return the sources in the order of the store."""
    order = facts.get("order", slice(None))
    table = {name: np.array(facts["table"][name])[order] for name in _COLUMNS}
    return SourceTable(faults=faults, **table)


def _stations(columns: dict[str, Any]) -> StationTable:
    degrees = columns["lon"] is not None
    return StationTable(
        name=columns["name"],
        x=np.array(columns["x"]),
        y=np.array(columns["y"]),
        lon=np.array(columns["lon"]) if degrees else None,
        lat=np.array(columns["lat"]) if degrees else None,
    )
