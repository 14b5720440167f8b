"""Build a campaign's model and the empty store of its Green's functions."""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from afterslip.archive import SourceTable, StationTable, create_store
from afterslip.identity import campaign_digest, greens_digest
from afterslip.integrity import FIXED, ROOT
from afterslip.schemas.campaign import Campaign
from afterslip.spec import parse_stored
from afterslip.spec.files import Files
from afterslip.spec.inputs import Inputs, resolve
from afterslip_workers.engines.base import Built, Engine, Units
from afterslip_workers.engines.models import keep_for_groups
from afterslip_workers.engines.registry import failures_of, find
from afterslip_workers.messages import (
    Envelope,
    Manifest,
    ModelFacts,
    ModelManifest,
    Reuse,
    Stats,
    read_model_facts,
)
from afterslip_workers.store import durable, manifest, paths
from afterslip_workers.store.backend import read_json, write_json
from afterslip_workers.tasks import coordinates
from afterslip_workers.tasks.context import Context
from afterslip_workers.versions import versions

log = logging.getLogger(__name__)

# what is rewritten later; the root, which is written last, when the store is complete
_OWN = frozenset({ROOT, FIXED})
_OF_MODEL = ("n_unknowns", "n_elements", "n_node", "quality", "notes")


def run(context: Context) -> tuple[Manifest, Stats]:
    """Build, or find, everything that the groups of a campaign need."""
    envelope = context.envelope
    # first: a worker that lacks both halves lacks the engine
    engine = find(envelope.physics)
    spec = parse_stored(envelope.spec)
    files = context.files
    context.phase("reading files")
    inputs = resolve(spec, files)
    with failures_of(engine), ThreadPoolExecutor(1) as beside:
        built = engine.build(
            spec,
            lambda: inputs,
            files,
            context.store_backend,
            context.phase,
            envelope.max_elements,
        )
        context.phase("shaping sources")
        units = engine.units(spec, built.model)
        # digests of gigabytes, until the empty store is there
        keys = beside.submit(engine.keys, spec, built.model, units)
        stations, said = _stations(inputs), units.notes()
        for note in said:
            log.info("%s", note)
        table = units.table(built.model)
        facts = {
            **_stated(spec, files, built, said),
            **_described(engine, spec, built.model, units, stations, table),
        }
        context.phase("creating the store")
        made = spec, built.model, table, stations
        facts = _create_store(context, engine, *made, facts, keys)
    written = _manifest(envelope, facts, built, keys.result())
    manifest.commit(context.folder, written)
    keep_for_groups(context.warm, built)
    return written, Stats(solves=0, iterations=0)


def _stated(
    spec: Campaign, files: Files, built: Built, notes: list[str]
) -> dict[str, Any]:
    """Facts of the campaign and its model."""
    return {
        "digest": built.digest,
        "campaign_digest": campaign_digest(spec, files),
        "greens_digest": greens_digest(spec, files),
        **{key: built.facts[key] for key in _OF_MODEL},
        "notes": [*built.facts["notes"], *notes],
    }


def _manifest(
    envelope: Envelope, facts: dict[str, Any], built: Built, keys: dict[str, Any]
) -> ModelManifest:
    return ModelManifest(
        token=envelope.token,
        kind="model",
        campaign=envelope.campaign,
        model_digest=built.digest,
        n_sources=facts["n_sources"],
        groups=facts["groups"],
        sources=facts["sources"],
        from_cache=built.cached,
        reuse=Reuse.model_validate(keys),
        files=facts["files"],
        **{key: facts[key] for key in _OF_MODEL},
    )


def _described(
    engine: Engine,
    spec: Campaign,
    model: Any,
    units: Units,
    stations: StationTable | None,
    table: SourceTable,
) -> dict[str, Any]:
    """Facts of the sources, and what the store's layout follows from."""
    return {
        **engine.store_facts(spec, model, units, stations),
        "crc32c": True,
        "n_sources": len(units),
        "groups": units.groups,
        "sources": units.describe(table),
        **coordinates.plain(table, stations),
    }


def _create_store(
    context: Context,
    engine: Engine,
    spec: Campaign,
    model: Any,
    table: SourceTable,
    stations: StationTable | None,
    facts: dict[str, Any],
    keys: Future[dict[str, Any]],
) -> dict[str, Any]:
    """Create ``greens.zarr`` and ``model.json``, unless both are there already.

    The root of the store appears last: where it is, ``model.json`` belongs to it.
    """
    backend, identity = context.store_backend, context.envelope.campaign
    final, noted = paths.greens(identity), paths.model_facts(identity)
    before = read_json(backend, noted)
    before = read_model_facts(before).as_json() if before else None
    there = backend.size(f"{final}/{ROOT}") is not None
    if there and before and before["digest"] == facts["digest"]:
        return before
    with TemporaryDirectory(prefix="afterslip-greens-") as folder:
        scratch = Path(folder) / "greens.zarr"
        create_store(
            scratch,
            engine.physics.layout(facts),
            engine.fixed_arrays(spec, facts, model, table, stations),
            attributes={
                **engine.root(spec, facts),
                **_attributes(context, spec, facts),
            },
            store_id=identity,
        )
        sums = durable.checksums(scratch)
        facts["files"] = {name: sums[name] for name in sums if name not in _OWN}
        for name in [*facts["files"], FIXED]:
            backend.upload(scratch / name, f"{final}/{name}")
        facts["covers"] = keys.result()["quality"]
        facts = ModelFacts.model_validate(facts).as_json()
        write_json(backend, noted, facts)
        backend.upload(scratch / ROOT, f"{final}/{ROOT}")
    return facts


def _stations(inputs: Inputs) -> StationTable | None:
    """Return the campaign's stations, each name once: data tables repeat them."""
    found = inputs.stations
    if found is None or not len(found):
        return None
    first = np.sort(np.unique(np.array(found.name), return_index=True)[1])
    degrees = inputs.frame.geographic
    return StationTable(
        name=[found.name[k] for k in first],
        x=found.x[first],
        y=found.y[first],
        lon=found.lon[first] if degrees else None,
        lat=found.lat[first] if degrees else None,
    )


def _attributes(
    context: Context, spec: Campaign, facts: dict[str, Any]
) -> dict[str, Any]:
    return {
        "title": spec.name,
        "physics": spec.physics,
        "campaign": context.envelope.campaign,
        "spec": context.envelope.spec,
        "digest": facts["campaign_digest"],
        "model_digest": facts["digest"],
        "greens_digest": facts["greens_digest"],
        "versions": versions(),
    }
