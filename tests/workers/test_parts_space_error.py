"""A model that several GPUs share has the error of its mesh; threads are the GPUs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_forward import MANTLE, coarse
from test_memory_estimate import MAXWELL, group, spec

from afterslip_solver import backend as backends
from afterslip_solver.parallel import DistributedModel, ThreadRankGroup
from afterslip_workers.engines.viscoelastic import preflight, settings
from afterslip_workers.engines.viscoelastic.engine import ViscoelasticEngine
from afterslip_workers.engines.viscoelastic.forward import run_forward


@pytest.fixture
def gpus(monkeypatch):
    """Threads in place of GPUs; lists the models that were divided."""
    made = []

    def divided(model, chosen, count, cache):
        ranks = ThreadRankGroup(count, lambda: backends.get("cpu", threads=1))
        made.append(DistributedModel(model, chosen, ranks, cache=cache))
        return made[-1]

    monkeypatch.setattr(settings, "prepare_on_gpus", divided)
    monkeypatch.setattr(preflight, "_free", lambda *_: None)
    return made


@pytest.mark.parametrize("refine", [0, 1])
def test_forward_run_on_two_gpus_has_the_error_of_one_device(gpus, refine):
    content = coarse(times={"until": "1 yr", "output": ["0 d", "1 yr"]})
    content["model"]["layers"][0]["bottom"] = 60
    content["model"]["layers"].append({**MANTLE, "bottom": 200})
    content["model"]["mesh"]["refine"] = refine
    expected = run_forward(content, backend="cpu")
    found = run_forward({**content, "solver": {"gpus": 2}}, backend="auto")
    assert len(gpus) == 1
    error = expected["space_error"].values
    assert (error > 0.0).any()
    # coarse curves may err by 1e-2 of their change
    np.testing.assert_allclose(
        found["space_error"].values, error, atol=0.02 * error.max()
    )
    motion = expected["displacement"].values
    np.testing.assert_allclose(
        found["displacement"].values, motion, atol=1e-5 * abs(motion).max()
    )
    assert found.attrs["iterations"] <= expected.attrs["iterations"] + 3


@pytest.mark.parametrize("refine", [0, 1])
def test_group_on_two_gpus_has_the_error_of_one_device(gpus, tmp_path, refine):
    content = spec(MAXWELL, 12, 60)
    content["model"]["mesh"]["refine"] = refine
    engine = ViscoelasticEngine()
    expected = engine.solve(group(content, tmp_path / "one"))
    content["solver"] = {"gpus": 2}
    shared = replace(group(content, tmp_path / "two"), backend="auto")
    found = engine.solve(shared)
    assert len(gpus) == 1
    error = expected.values["space_error"]
    assert np.isfinite(error).all()
    for part in (slice(0, 1), slice(1, None)):
        most = error[:, part].max()
        np.testing.assert_allclose(
            found.values["space_error"][:, part], error[:, part], atol=0.02 * most
        )
    assert abs(found.stats["iterations"] - expected.stats["iterations"]) <= 3


def test_a_coarse_mesh_of_a_hundred_vertices_is_solved_by_one_device(gpus, tmp_path):
    content = spec(MAXWELL, 24, 60)
    content["model"]["domain"] = {"x": [-50, 50], "y": [-50, 50], "depth": 60}
    content["model"]["layers"][1]["bottom"] = 60
    content["solver"] = {"gpus": 2}
    shared = replace(group(content, tmp_path), backend="auto")
    model = shared.model()
    assert model.coarser.mesh.n_vertex <= 100 < model.mesh.n_vertex
    found = ViscoelasticEngine().solve(shared)
    assert len(gpus) == 1
    assert (found.values["space_error"].max(axis=2) > 0.0).all()
