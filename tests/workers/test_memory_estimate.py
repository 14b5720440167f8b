"""What a group is expected to take of the host's memory is what a process grows by."""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_solver.greens.nested_guess import Solutions
from afterslip_workers.engines.base import GroupWork
from afterslip_workers.engines.viscoelastic import preflight, space
from afterslip_workers.engines.viscoelastic.engine import ViscoelasticEngine
from afterslip_workers.engines.viscoelastic.settings import settings_of
from afterslip_workers.machine.model_cache import ModelCache
from afterslip_workers.store.local import LocalBackend

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MAXWELL = {"maxwell": {"viscosity": 1e19}}
# polynomial, the same for longer, shift-invert, and states of two rows
CASES: dict[str, dict[str, Any]] = {
    "short": MAXWELL,
    "long": {"maxwell": {"viscosity": 1.3e18}},
    "shift_invert": {"maxwell": {"viscosity": 1e18}},
    "burgers": {
        "burgers": {"viscosity": 1e20, "kelvin_viscosity": 2e19, "kelvin_ratio": 1.0}
    },
}


def spec(rheology: dict[str, Any], fault: float, far: float) -> dict[str, Any]:
    crust = {"name": "crust", "bottom": 20, "vp": 6.4, "vs": 3.7, "rho": 2800}
    mantle = {"name": "mantle", "bottom": 100, "vp": 8.0, "vs": 4.6, "rho": 3300}
    plane = {"x": 0, "y": 0, "top": 2, "strike": 0, "dip": 30, "length": 40}
    return {
        "name": "memory",
        "model": {
            "frame": {"kind": "local"},
            "domain": {"x": [-100, 100], "y": [-100, 100], "depth": 100},
            "layers": [crust, {**mantle, "rheology": rheology}],
            "faults": [{"name": "main", "plane": {**plane, "width": 20}}],
            "mesh": {"size": {"fault": fault, "far": far}},
        },
        "sources": {"fault": "main", "along_strike": 5, "down_dip": 2},
        "times": {"until": "1 yr", "output": ["0 d", "1 yr"]},
    }


def group(content: dict[str, Any], folder: Path) -> GroupWork:
    """Return the first group of a campaign, whose model is built or read."""
    engine = ViscoelasticEngine()
    campaign: Any = parse_campaign(content, folder)
    files, store = LocalFiles(folder), LocalBackend(folder / "store")
    store.root.mkdir(parents=True, exist_ok=True)
    store.prepare()
    built = engine.build(
        campaign, lambda: resolve(campaign, files), files, store, lambda _: None
    )
    units = engine.units(campaign, built.model)
    facts = {
        "digest": built.digest,
        "quality": built.facts["quality"],
        **engine.store_facts(campaign, built.model, units, None),
    }
    return GroupWork(
        spec=campaign, campaign="c", facts=facts, model=lambda: built.model,
        sources=[0, 1, 2, 3], stations=None, store=store, backend="cpu", escalation=0,
        warm=ModelCache(1 << 34), phase=lambda _: None, report=lambda _: None,
        should_stop=lambda: False,
    )  # fmt: skip


def resident(line: str) -> int:
    (found,) = (x for x in STATUS.read_text().split("\n") if x.startswith(line))
    return 1024 * int(found.split()[1])


def measure(content: dict[str, Any], small: dict[str, Any], folder: Path) -> None:
    """Write by how many bytes this process grows, and what was expected."""
    engine = ViscoelasticEngine()
    # libraries and compiled code are no part of a model
    engine.solve(group(small, folder))
    work = group(content, folder)
    model = work.model()
    settings = settings_of(work.spec.times, work.spec.solver)
    compared = bool(work.facts["sizes"]["error_time"])
    found = preflight.predict_memory(model, settings, "cpu", compared=compared)
    ctypes.CDLL(None).malloc_trim(0)
    CLEAR.write_text("5")
    before = resident("VmRSS")
    stats = engine.solve(work).stats
    grown = resident("VmHWM") - before
    said = {"grown": grown, "needed": found.needed, "scheme": stats["scheme"]}
    sys.stdout.write(json.dumps(said))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not CLEAR.exists(), reason="the kernel does not say the peak")
@pytest.mark.parametrize("case", list(CASES))
def test_a_group_takes_nearly_what_is_asked_for_and_no_more(case, tmp_path):
    whole, small = spec(CASES[case], 1.1, 8.5), spec(CASES[case], 10, 50)
    # meshing takes memory of its own, so that the model is read by another process
    group(whole, tmp_path)
    command = [sys.executable, __file__, json.dumps([whole, small]), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["scheme"] == (
        "shift_invert" if case == "shift_invert" else "polynomial"
    )
    assert said["grown"] <= said["needed"] <= 1.3 * said["grown"], said


def test_group_that_is_evaluated_leaves_the_device_to_the_next_one(
    tmp_path, monkeypatch
):
    made: list[weakref.ref[Solutions]] = []

    class Watched(Solutions):
        def __init__(self) -> None:
            super().__init__()
            made.append(weakref.ref(self))

    monkeypatch.setattr(space, "Solutions", Watched)
    content = spec(MAXWELL, 12, 60)
    content["model"]["mesh"]["refine"] = 1
    evaluate = ViscoelasticEngine().begin(group(content, tmp_path))
    gc.collect()
    assert [ref() for ref in made] == [None]
    assert np.isfinite(evaluate(lambda _: None).values["space_error"]).all()


if __name__ == "__main__":
    whole, small = json.loads(sys.argv[1])
    measure(whole, small, Path(sys.argv[2]))
