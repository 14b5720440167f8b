"""A small campaign of waves, and what a worker has of its first group."""

from typing import Any

from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_workers.engines.base import GroupWork
from afterslip_workers.engines.waves.engine import engine
from afterslip_workers.machine.model_cache import ModelCache
from afterslip_workers.store.local import LocalBackend

VP, VS, RHO = 6.0, 3.464, 2700.0
SPEC: dict[str, Any] = {
    "name": "waves",
    "physics": "waves",
    "model": {
        "frame": {"kind": "local"},
        "domain": {"x": [-12, 12], "y": [-12, 12], "depth": 12},
        "layers": [{"name": "rock", "bottom": 12, "vp": VP, "vs": VS, "rho": RHO}],
        "faults": [
            {
                "name": "main",
                "plane": {"x": 0, "y": 0, "top": 2, "strike": 30, "dip": 90,
                          "length": 4, "width": 3},
            }
        ],
    },
    "sources": {"fault": "main", "along_strike": 2, "down_dip": 2, "shape": "patch"},
    "stations": {"file": "stations.csv"},
    "waves": {
        "frequency": 0.6,
        "points_per_wavelength": 10,
        "duration": "16 s",
        "sampling": "0.4 s",
        "source_time": {"kind": "smooth_step", "rise": "2 s"},
        "backend": "cpu",
    },
}  # fmt: skip
STATIONS = {"A": (3.0, 3.0), "B": (-2.0, 4.0), "C": (4.0, -1.5), "D": (-5.0, -4.0)}


def with_waves(**changes):
    return {**SPEC, "waves": {**SPEC["waves"], **changes}}


def write_stations(folder):
    rows = [f"{name},{x},{y}" for name, (x, y) in STATIONS.items()]
    (folder / "stations.csv").write_text("\n".join(["station,x_km,y_km", *rows]) + "\n")
    return folder


def prepared(folder, tmp_path, spec=SPEC):
    """What a worker has of the first group, without a service."""
    campaign: Any = parse_campaign(spec, folder)
    files, store = LocalFiles(folder), LocalBackend(tmp_path / "store")
    store.root.mkdir(parents=True, exist_ok=True)
    store.prepare()
    built = engine.build(
        campaign, lambda: resolve(campaign, files), files, store, lambda _: None
    )
    units = engine.units(campaign, built.model)
    stations: Any = resolve(campaign, files).stations
    facts = {
        "digest": built.digest,
        "quality": built.facts["quality"],
        **engine.store_facts(campaign, built.model, units, stations),
    }
    return {
        "spec": campaign,
        "campaign": "c",
        "facts": facts,
        "model": lambda: built.model,
        "sources": [0, 1, 2, 3],
        "stations": stations,
        "store": store,
        "backend": "cpu",
        "escalation": 0,
        "phase": lambda _: None,
    }


def solve(parts, should_stop=lambda: False, **changes):
    warm = ModelCache(1 << 30)
    own = {**parts, **changes}
    return engine.solve(
        GroupWork(warm=warm, report=lambda _: None, should_stop=should_stop, **own)
    )
