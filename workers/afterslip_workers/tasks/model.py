"""Build a campaign's model and the empty store of its Green's functions."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from afterslip.archive import StationTable, create_campaign_store
from afterslip.identity import campaign_digest, greens_digest, model_digest
from afterslip.integrity import FIXED, ROOT
from afterslip.physics.viscoelastic.spec import ViscoelasticCampaign
from afterslip.spec.inputs import Inputs, resolve
from afterslip_solver.model import Model
from afterslip_workers.store import durable, manifest, paths
from afterslip_workers.store.backend import read_json, write_json
from afterslip_workers.tasks.context import Context
from afterslip_workers.versions import versions
from afterslip_workers.viscoelastic import coordinates
from afterslip_workers.viscoelastic import sources as unit
from afterslip_workers.viscoelastic.building import build_model
from afterslip_workers.viscoelastic.cache import get_or_build
from afterslip_workers.viscoelastic.keys import reuse_facts
from afterslip_workers.viscoelastic.reuse import COVERS
from afterslip_workers.viscoelastic.settings import settings_of
from afterslip_workers.viscoelastic.sources import UnitSources
from afterslip_workers.viscoelastic.template import Template, modes_of

# what is rewritten later; the root, which is written last, when the store is complete
_OWN = frozenset({ROOT, FIXED})
_OF_MODEL = ("n_unknowns", "n_elements", "n_node", "quality", "notes")


def run(context: Context) -> tuple[dict[str, Any], dict[str, Any]]:
    """Build, or find, everything that the groups of a campaign need."""
    envelope = context.envelope
    campaign = ViscoelasticCampaign.from_dict(envelope.spec)
    files = context.files
    context.phase("reading files")
    inputs = resolve(campaign, files)
    digest = model_digest(campaign, files)
    model, known, warm = get_or_build(
        context.store_backend,
        digest,
        lambda: build_model(campaign.model, inputs, files, context.phase),
    )
    context.phase("shaping sources")
    units = UnitSources.of(campaign.sources, model)
    facts = {
        "digest": digest,
        "campaign_digest": campaign_digest(campaign, files),
        "greens_digest": greens_digest(campaign, files),
        **{key: known[key] for key in _OF_MODEL},
        "n_sources": len(units),
        "groups": units.groups,
    }
    keys = reuse_facts(model, units, settings_of(campaign.times, campaign.solver))
    facts["covers"] = {name: keys[name] for name in COVERS}
    context.phase("creating the store")
    facts = _create_store(context, campaign, inputs, model, units, facts)
    written = context.manifest(
        model_digest=digest,
        n_sources=len(units),
        groups=facts["groups"],
        sources=facts["sources"],
        from_cache=warm,
        reuse=keys,
        files=facts["files"],
        **{key: facts[key] for key in _OF_MODEL},
    )
    manifest.commit(context.folder, written)
    return written, {"solves": 0, "iterations": 0}


def _create_store(
    context: Context,
    campaign: ViscoelasticCampaign,
    inputs: Inputs,
    model: Model,
    units: UnitSources,
    facts: dict[str, Any],
) -> dict[str, Any]:
    """Create ``greens.zarr`` and ``model.json``, unless both are there already.

    The root of the store appears last: where it is, ``model.json`` belongs to it.
    """
    backend, identity = context.store_backend, context.envelope.campaign
    final, noted = paths.greens(identity), paths.model_facts(identity)
    before = read_json(backend, noted)
    there = backend.size(f"{final}/{ROOT}") is not None
    if there and before and before["digest"] == facts["digest"]:
        return dict(before)
    table = units.table(model)
    modes = modes_of(model, settings_of(campaign.times, campaign.solver))
    stations = _stations(inputs)
    with TemporaryDirectory(prefix="afterslip-greens-") as folder:
        scratch = Path(folder) / "greens.zarr"
        sizes = create_campaign_store(
            scratch,
            sources=table,
            surface=coordinates.surface_of(model, inputs.frame),
            stations=stations,
            times=[float(time) for time in campaign.times.output],
            until=float(campaign.times.until),
            n_mode=modes.count,
            integrator=modes.integrator,
            step_times=modes.step_times,
            attributes=_attributes(context, campaign, facts),
            store_id=identity,
        )
        sums = durable.checksums(scratch)
        facts = {
            **facts,
            **Template(sizes, modes.integrator).as_json(),
            "sources": unit.describe(units, table),
            **coordinates.plain(table, stations),
            "files": {name: sums[name] for name in sums if name not in _OWN},
        }
        for name in [*facts["files"], FIXED]:
            backend.upload(scratch / name, f"{final}/{name}")
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
    context: Context, campaign: ViscoelasticCampaign, facts: dict[str, Any]
) -> dict[str, Any]:
    return {
        "title": campaign.name,
        "campaign": context.envelope.campaign,
        "spec": context.envelope.spec,
        "digest": facts["campaign_digest"],
        "model_digest": facts["digest"],
        "greens_digest": facts["greens_digest"],
        "versions": versions(),
    }
