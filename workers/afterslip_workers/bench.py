"""Measurements of the solver on a campaign's own model."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from afterslip_common.record import Record


def measure(name: str, spec: dict[str, Any], base: Path, backend: str) -> list[Record]:
    """Run one of the solver's benchmarks on the first group of a campaign.

    Parameters
    ----------
    name : module of ``afterslip_solver.benchmarks``.
    spec : campaign. base : folder of its files.
    """
    if name == "waves":
        from afterslip_solver.benchmarks import waves

        return waves.records(backend)
    # imported late: the door stands open to processes that never solve
    from afterslip.physics.viscoelastic.spec import ViscoelasticCampaign
    from afterslip.spec.files import LocalFiles
    from afterslip.spec.inputs import resolve
    from afterslip_workers.engines.viscoelastic.building import build_model
    from afterslip_workers.engines.viscoelastic.settings import settings_of
    from afterslip_workers.engines.viscoelastic.sources import UnitSources, unit_slip

    campaign = ViscoelasticCampaign.from_dict(spec)
    files = LocalFiles(base)
    inputs = resolve(campaign, files)
    model, _ = build_model(campaign.model, inputs, files, lambda _phase: None)
    units = UnitSources.of(campaign.grids, model)
    slip = unit_slip(units, units.groups[0])
    settings = settings_of(campaign.times, campaign.solver)
    module = importlib.import_module(f"afterslip_solver.benchmarks.{name}")
    found: list[Record] = module.records(model, slip, settings, backend)
    return found
