"""What a plan says of waves: voxels, steps, memory, and sides that are too near."""

from __future__ import annotations

from pathlib import Path

import pytest

from afterslip import Campaign
from afterslip.cli.check import lines
from afterslip.identity import plain
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_service.db import measured
from afterslip_workers import entry
from afterslip_workers.engines.waves import building, planning, solving

# a plan records nothing
pytestmark = pytest.mark.databases("sqlite")

EXAMPLE = Path(__file__).parents[2] / "examples" / "waves" / "campaign.yaml"


@pytest.fixture
def example():
    return Campaign.from_yaml(EXAMPLE)


def posted(client, campaign, **changes):
    spec = plain(campaign)
    table = EXAMPLE.with_name("stations.csv").read_bytes()
    ref = client.post("/v1/files", content=table).json()["ref"]
    spec["stations"] = {**spec["stations"], "file": ref}
    spec["model"] = {**spec["model"], **changes}
    return spec


def plan(client, campaign, **changes):
    spec = posted(client, campaign, **changes)
    answer = client.post("/v1/plan", json=spec, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_plan_of_waves_tells_voxels_steps_and_memory(client, example):
    found = plan(client, example)
    assert (found["elements"], found["unknowns"]) == (70 * 70 * 32, 3 * 71 * 71 * 33)
    assert found["steps"] > 120
    assert 0 < found["memory"]["least_bytes"] < found["memory_free"]
    said = "\n".join(lines(found))
    assert "  voxels      about 156,800" in said
    assert "  time        not known before the first groups" in said


def test_steps_of_a_plan_are_those_of_the_voxels_or_slightly_more(example):
    files = LocalFiles(EXAMPLE.parent)
    inputs = resolve(example, files)
    ground, facts = building.build_ground(example, inputs, files, lambda _: None)
    waves = example.waves
    prepared = solving.prepare(example, ground, "cpu", (0.0, 0.0, -7e3))
    real = prepared.plan(float(waves.duration), float(waves.sampling))
    said = planning.plan(example, inputs, "cpu")
    assert said["unknowns"] == facts["n_unknowns"]
    assert real.count <= said["steps"] <= 1.3 * real.count


def test_the_example_of_waves_is_planned_without_a_warning(client, example):
    assert plan(client, example)["warnings"] == []


def test_sides_that_change_permanent_offsets_are_warned_of(client, example):
    near = {"x": [-22, 22], "y": [-40, 40], "depth": 36}
    (warning,) = plan(client, example, domain=near)["warnings"]
    assert warning["path"] == "model.faults[0]"
    assert "permanent offsets" in warning["message"]


def test_sides_that_hold_nothing_are_not_warned_of(client, example):
    free = example.waves.absorbing.model_copy(update={"kind": "free"})
    waves = example.waves.model_copy(update={"absorbing": free})
    given = example.model_copy(update={"waves": waves})
    near = {"x": [-22, 22], "y": [-40, 40], "depth": 36}
    assert plan(client, given, domain=near)["warnings"] == []


def test_waves_that_never_fit_are_refused_with_the_numbers(
    client, example, monkeypatch
):
    machine = entry.describe_worker() | {"memory_bytes": 4_000_000}
    monkeypatch.setattr(entry, "describe_worker", lambda: machine)
    spec = posted(client, example)
    for path in ("plan", "campaigns"):
        answer = client.post(f"/v1/{path}", json=spec, timeout=120)
        assert answer.status_code == 422
        (problem,) = answer.json()["errors"]
        assert problem["path"] == "model.domain"
        assert "156,800 voxels" in problem["message"]
        assert "of memory, and the machine has 0 GB" in problem["message"]
        assert "at waves.frequency" in problem["hint"]


def test_time_of_waves_follows_the_steps_and_the_runs_of_them(
    client, example, monkeypatch
):
    unknowns = 3 * 71 * 71 * 33
    other = measured.Measured("known", "known", {}, unknowns, (9.0,), 2.0)
    monkeypatch.setattr(measured, "newest", lambda *_: [other])
    monkeypatch.setattr(measured, "step_s", lambda *_: {"known": 0.01})

    def timed(**changes):
        waves = example.waves.model_copy(update=changes)
        found = plan(client, example.model_copy(update={"waves": waves}))
        return found["groups"], found["steps"], found["time"]

    groups, steps, time = timed(solve="sources")
    assert time["group"] == pytest.approx(0.01 * steps)
    assert time["worker"] == pytest.approx(2.0 + 0.01 * steps * groups)
    # three motions of each station are runs of four lanes
    table = EXAMPLE.with_name("stations.csv").read_text().split()
    runs = -(-3 * (len(table) - 1) // 4)
    groups, steps, time = timed(solve="receivers")
    assert time["worker"] == pytest.approx(2.0 + 0.01 * steps * runs)
    # nothing is known where no step was taken here
    monkeypatch.setattr(measured, "step_s", lambda *_: {})
    assert timed()[2] is None
