"""Meshes of an accuracy that is asked for, in place of sizes."""

import copy
import json
import runpy
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import small_campaign
import test_forward
import test_sphere

from afterslip.errors import SpecError
from afterslip.identity import model_digest
from afterslip.physics.viscoelastic.elements import elements
from afterslip.physics.viscoelastic.sizing import ENDS, scaled, sized
from afterslip.physics.viscoelastic.spec import (
    ViscoelasticCampaign,
    ViscoelasticForward,
)
from afterslip.spec import parse_campaign, parse_forward
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_solver.reference import Rectangles, surface_displacement
from afterslip_workers import entry
from afterslip_workers.engines.viscoelastic.accuracy import adapted
from afterslip_workers.engines.viscoelastic.building import build_model
from afterslip_workers.engines.viscoelastic.engine import engine
from afterslip_workers.engines.viscoelastic.error_shares import Errors
from afterslip_workers.engines.viscoelastic.forward import run_forward
from afterslip_workers.store.open import open_store

ROOT = Path(__file__).parents[2]


def wanting(accuracy, spec=test_forward.SPEC):
    made = copy.deepcopy(spec)
    made["model"]["mesh"] = {"accuracy": accuracy}
    return made


def test_forward_run_has_the_accuracy_that_it_asks_for():
    spec = wanting("6 %")
    result = run_forward(spec)
    xy = np.column_stack([result["x"], result["y"]])
    okada = surface_displacement(
        xy, Rectangles(0, 0, 10e3, 0, 30, 80e3, 60e3), (0, 1, 0)
    )
    error = np.linalg.norm(result["displacement"].values[0] - okada, axis=1).max()
    peak = np.linalg.norm(okada, axis=1).max()
    found = json.loads(result.attrs["accuracy"])
    assert error < 0.06 * peak
    assert found["met"]
    assert found["reached"] <= 0.06
    # the estimate is of the size of the error
    assert found["reached"] > 0.5 * error / peak
    assert any("accuracy 6 %" in note for note in json.loads(result.attrs["notes"]))


def with_top(top):
    """Return a spec of 4 % for a steep fault that begins some km below ground."""
    made = wanting("4 %")
    plane = {"top": top, "dip": 60, "length": 60, "width": 20}
    made["model"]["faults"][0]["plane"] |= plane
    # clear of the top by more than an edge
    made["points"] = [[x, y] for x in (-20, -8, 8, 20) for y in (0, 20, 40)]
    return made


def test_a_shallow_top_shortens_edges_near_it_alone():
    spec = parse_forward(with_top(0.2))
    inputs = resolve(spec, LocalFiles(Path()))
    chosen = sized(spec.model, inputs)
    assert chosen.mesh.size is not None
    assert chosen.mesh.size.fault > 4.0
    _, facts = build_model(chosen, inputs, LocalFiles(Path()), lambda _: None)
    expected = sum(elements(chosen, inputs).values())
    # all edges as short as the top is deep: more than a million
    assert facts["n_elements"] < 100_000
    assert 0.3 < expected / facts["n_elements"] < 1.5


def test_a_shallow_fault_has_the_accuracy_that_it_asks_for():
    result = run_forward(with_top(0.5))
    xy = np.column_stack([result["x"], result["y"]])
    fault = Rectangles(0, 0, 0.5e3, 0, 60, 60e3, 20e3)
    okada = surface_displacement(xy, fault, (0, 1, 0))
    error = np.linalg.norm(result["displacement"].values[0] - okada, axis=1).max()
    assert json.loads(result.attrs["accuracy"])["met"]
    assert error < 0.04 * np.linalg.norm(okada, axis=1).max()


@pytest.mark.parametrize(("taper", "near"), [(False, 2), (True, 0)])
def test_points_beside_an_abrupt_end_of_slip_are_counted_in_the_notes(taper, near):
    spec = wanting("20 %")
    spec["model"]["faults"][0]["plane"] |= {"top": 1, "width": 15}
    spec["slip"][0]["taper"] = taper
    # 1.02 km from the upper edge and from a corner, and away from all edges, on
    # elements of 1.7 km; the first one is beside the trace of the margin
    spec["points"] = [[-1.5, 0.0], [0.2, 0.0], [0.2, 40.0], [25.0, 0.0], [-60.0, 0.0]]
    result = run_forward(spec)
    assert result.attrs["points_near_ends"] == near
    notes = json.loads(result.attrs["notes"])
    said = [note for note in notes if "slip ends abruptly" in note]
    assert said == [note for note in said if note.endswith(": 2 of 5")]
    assert len(said) == (near > 0)


@pytest.mark.slow
def test_accuracy_can_be_asked_for_under_a_slope(tmp_path):
    """Against a half-space that is tilted."""
    slope = runpy.run_path(str(ROOT / "benchmarks/topography.py"))
    places = [[x, y] for x in (-14.0, -6.0, 2.0, 10.0) for y in (-8.0, 0.0, 8.0)]
    half, rise = slope["HALF"], slope["SLOPE"]
    side = np.linspace(-half, half, 21)
    rows = [f"{x:g},{y:g},{rise * x:g}" for x in side for y in side]
    table = "\n".join(["x_km,y_km,height_km", *rows]) + "\n"
    (tmp_path / "slope.csv").write_text(table)
    spec = slope["spec"](1.0, places, "slope.csv")
    spec["model"]["mesh"] = {"accuracy": "5 %"}
    result = run_forward(spec, base=tmp_path)
    exact = slope["exact"](1e3 * np.array(places))
    error = np.linalg.norm(result["displacement"].values[0] - exact, axis=1).max()
    peak = np.linalg.norm(exact, axis=1).max()
    assert error < 0.05 * peak
    found = json.loads(result.attrs["accuracy"])
    assert found["met"]
    assert found["reached"] > 0.5 * error / peak


@pytest.mark.slow
def test_accuracy_can_be_asked_for_on_a_sphere():
    fine = {"size": {"fault": 14, "far": 400, "growth": 0.25}, "refine": 1}
    found, better = (
        test_sphere.forward(test_sphere.FAULT, mesh=mesh)
        for mesh in ({"accuracy": "4 %"}, fine)
    )
    one, other = (result["displacement"].values[0] for result in (found, better))
    error = np.linalg.norm(one - other, axis=1).max()
    assert error < 0.04 * np.linalg.norm(other, axis=1).max()
    assert json.loads(found.attrs["accuracy"])["met"]


def test_edges_on_faults_follow_the_error_and_growth_that_of_the_change():
    forward = parse_forward(wanting("20 %"))
    files = LocalFiles(forward.base)
    inputs = resolve(forward, files)
    found = iter(
        [Errors.everywhere(*e) for e in ((0.3, 0.4), (0.15, 0.3), (0.15, 0.19))]
    )
    _, facts = adapted(
        forward.model, inputs, files, lambda _: None, lambda *_: next(found)
    )
    tried = facts["accuracy"]["tried"]
    assert facts["accuracy"]["met"]
    edges, growth = ([mesh[k] for mesh in tried] for k in ("fault_km", "growth"))
    # an error two times too large, of second order, and a margin; in six digits
    assert edges[1] == pytest.approx(edges[0] * (0.9 / 2) ** 0.5, rel=1e-5)
    assert growth[1] == growth[0]
    smaller = (0.9 * 0.2 / 0.3) ** 0.5
    assert edges[2] == pytest.approx(edges[1] * smaller, rel=1e-5)
    assert growth[2] == pytest.approx(growth[1] * smaller, rel=1e-5)


def test_a_mesh_whose_ends_of_slip_are_coarse_for_a_point_is_made_again():
    forward = parse_forward(wanting("20 %"))
    files = LocalFiles(forward.base)
    inputs = resolve(forward, files)

    given = forward.model, inputs, files, lambda _: None

    def measured(distance, room=np.inf):
        one = np.full(1, distance)
        near = Errors(0.1 * np.ones((1, 1, 1)), np.zeros((1, 3)), 9 + 0 * one, one)
        _, facts = adapted(*given, lambda *_: near, room=lambda _: room)
        assert facts["accuracy"]["met"]
        said = [note for note in facts["notes"] if note.startswith("warning")]
        return facts["accuracy"]["tried"], said

    (far, none), (close, nothing) = measured(1e5), measured(10.0)
    assert none == nothing == []
    assert [mesh["ends"] for mesh in far] == [ENDS]
    assert [mesh["ends"] for mesh in close] == [ENDS, pytest.approx(0.25 * ENDS)]
    assert close[0]["fault_km"] == close[1]["fault_km"]
    assert close[1]["n_unknowns"] > close[0]["n_unknowns"]
    # a mesh that meets the accuracy is not lost where a finer one has no room
    first, (warned,) = measured(10.0, room=0.5)
    assert len(first) == 1
    assert "edges where slip ends were not shortened" in warned


def test_accuracy_that_is_not_met_is_a_warning():
    forward = parse_forward(wanting("20 %"))
    files = LocalFiles(forward.base)
    inputs = resolve(forward, files)
    _, facts = adapted(
        forward.model,
        inputs,
        files,
        lambda _: None,
        lambda *_: Errors.everywhere(0.5, 0.9),
    )
    assert not facts["accuracy"]["met"]
    warned = [note for note in facts["notes"] if note.startswith("warning")]
    assert len(warned) == 1
    assert "90 %" in warned[0]
    largest = max(mesh["n_unknowns"] for mesh in facts["accuracy"]["tried"])
    assert largest < 40 * facts["accuracy"]["tried"][0]["n_unknowns"]


def test_accuracy_is_not_promised_where_the_mesh_steps_around_a_boundary():
    spec = wanting("20 %")
    # thinner than half an element
    soil = spec["model"]["layers"][0] | {"name": "soil", "bottom": 2.9, "vp": 5.0}
    spec["model"]["layers"].insert(0, soil)
    found = [], []
    for said, content in zip(found, (wanting("20 %"), spec), strict=True):
        forward = parse_forward(content)
        files = LocalFiles(forward.base)
        given = forward.model, resolve(forward, files), files, lambda _: None
        _, facts = adapted(*given, lambda *_: Errors.everywhere(0.1))
        assert facts["accuracy"]["met"]
        said += [note for note in facts["notes"] if note.startswith("warning")]
    assert found[0] == []
    (warned,) = found[1]
    assert "20 % is not promised where the mesh steps" in warned


@pytest.mark.parametrize(("room", "meshes"), [(2.1, 1), (2.4, 2)])
def test_no_mesh_is_made_that_the_memory_cannot_hold(room, meshes):
    forward = parse_forward(wanting("20 %"))
    files = LocalFiles(forward.base)
    given = forward.model, resolve(forward, files), files, lambda _: None
    # edges of 0.67 times: at most 2.2 times the elements
    errors = iter([0.4, 0.1])
    _, facts = adapted(
        *given, lambda *_: Errors.everywhere(next(errors)), room=lambda _: room
    )
    assert len(facts["accuracy"]["tried"]) == meshes
    assert facts["accuracy"]["met"] == (meshes == 2)
    warned = [note for note in facts["notes"] if "was not met" in note]
    assert len(warned) == 2 - meshes
    assert all("would not fit into the memory" in note for note in warned)


@pytest.mark.parametrize(("share", "meshes"), [(2.1, 1), (2.4, 2)])
def test_no_mesh_is_made_that_has_more_elements_than_allowed(share, meshes):
    forward = parse_forward(wanting("20 %"))
    files = LocalFiles(forward.base)
    given = forward.model, resolve(forward, files), files, lambda _: None
    _, facts = adapted(*given, lambda *_: Errors.everywhere(0.1))
    most = int(share * facts["n_elements"])
    # edges of 0.67 times: at most 2.2 times the elements
    errors = iter([0.4, 0.1])
    _, facts = adapted(
        *given, lambda *_: Errors.everywhere(next(errors)), max_elements=most
    )
    assert len(facts["accuracy"]["tried"]) == meshes
    assert facts["accuracy"]["met"] == (meshes == 2)
    warned = [note for note in facts["notes"] if "was not met" in note]
    assert len(warned) == 2 - meshes
    assert all(f"{most:,} are allowed here" in note for note in warned)


def in_domain(half, depth):
    spec = wanting("20 %")
    sides = [-half, half]
    spec["model"]["domain"] = {"x": sides, "y": sides, "depth": depth}
    for layer in spec["model"]["layers"]:
        layer["bottom"] = min(layer["bottom"], depth)
    return spec


@pytest.mark.parametrize(("half", "met"), [(120, False), (400, True)])
def test_what_the_sides_of_a_domain_change_is_estimated_and_counted(half, met):
    """Against a half-space; the mesh leaves less than the sides."""
    result = run_forward(in_domain(half, half))
    xy = np.column_stack([result["x"], result["y"]])
    okada = surface_displacement(
        xy, Rectangles(0, 0, 10e3, 0, 30, 80e3, 60e3), (0, 1, 0)
    )
    error = np.linalg.norm(result["displacement"].values[0] - okada, axis=1).max()
    found = json.loads(result.attrs["accuracy"])
    share = error / np.linalg.norm(okada, axis=1).max()
    if not met:
        assert 0.5 < found["domain"] / share < 2.0
    assert found["met"] == met
    assert found["reached"] > 0.5 * share
    notes = json.loads(result.attrs["notes"])
    warned = [note for note in notes if note.startswith("warning")]
    assert len(warned) == 1 - met
    assert all("give a larger domain" in note for note in warned)


def test_domain_that_is_left_open_grows_until_its_sides_change_little():
    spec = wanting("20 %")
    del spec["model"]["domain"]
    spans = []
    for content, walls in ((spec, [0.3, 0.13, 0.11]), (in_domain(400, 400), [0.3])):
        forward = parse_forward(content)
        files, left = LocalFiles(forward.base), iter(walls)
        model, facts = adapted(
            forward.model,
            resolve(forward, files),
            files,
            lambda _: None,
            lambda *_: Errors.everywhere(0.1),
            walls=partial(lambda shares, _: Errors.everywhere(next(shares)), left),
        )
        assert facts["accuracy"]["domain"] == walls[-1]
        assert facts["accuracy"]["met"] == (walls[-1] < 0.2)
        spans.append(np.ptp(model.mesh.nodes, axis=0))
    open_one, given = spans
    first = resolve(parse_forward(spec), LocalFiles(Path())).box
    wider = 1.1**2 * np.sqrt(0.3 * 0.13) / (0.6 * 0.2)
    assert open_one[0] == pytest.approx(wider * (first.x[1] - first.x[0]))
    assert open_one[2] == pytest.approx(wider * first.depth)
    np.testing.assert_allclose(given, [800e3, 800e3, 400e3])


def test_finer_sources_have_shorter_edges():
    campaign = copy.deepcopy(small_campaign.SPEC)
    campaign["model"]["mesh"] = {"accuracy": "2 %"}
    del campaign["stations"]
    edges = []
    for count in (3, 12):
        campaign["sources"]["along_strike"] = campaign["sources"]["down_dip"] = count
        spec = parse_campaign(campaign)
        inputs = resolve(spec, LocalFiles(spec.base))
        size = sized(spec.model, inputs, spec.grids).mesh.size
        assert size is not None
        edges.append(size.fault)
    assert edges[0] / edges[1] > 2.0
    finer = scaled(sized(spec.model, inputs, spec.grids), 0.5).mesh.size
    assert finer is not None
    assert finer.fault == pytest.approx(0.5 * edges[1])


def test_model_of_a_campaign_is_measured_by_its_sources(tmp_path):
    campaign = copy.deepcopy(small_campaign.SPEC)
    campaign["model"]["mesh"] = {"accuracy": "15 %"}
    del campaign["stations"], campaign["model"]["domain"]
    spec = parse_campaign(campaign)
    assert isinstance(spec, ViscoelasticCampaign)
    entry.prepare(tmp_path)
    files = LocalFiles(spec.base)
    said: list[str] = []
    built = engine.build(
        spec, lambda: resolve(spec, files), files, open_store(tmp_path), said.append
    )
    found = built.facts["accuracy"]
    assert 0.0 < found["elastic"] < 0.15
    assert 0.0 < found["change"] < 0.15
    # so soon hardly anything flows out there
    assert 0.0 < found["domain"] < 0.05
    assert any("its error is" in phase for phase in said)
    other = copy.deepcopy(campaign)
    other["sources"]["down_dip"] = 2
    changed = parse_campaign(other)
    assert model_digest(spec, files) != model_digest(changed, files)


@pytest.mark.parametrize(
    ("mesh", "solver", "path"),
    [
        ({"accuracy": 0.01}, {}, "model.mesh.accuracy"),
        ({"accuracy": "1 %", "refine": 1}, {}, "model.mesh.refine"),
        ({"accuracy": "1 %", "size": {"fault": 1, "far": 9}}, {}, "model.mesh"),
        ({"accuracy": "1 %"}, {"space_error": False}, "solver.space_error"),
    ],
)
def test_accuracy_that_cannot_be_is_refused(mesh, solver, path):
    spec = copy.deepcopy(test_forward.SPEC)
    spec["model"]["mesh"] = mesh
    with pytest.raises(SpecError) as refused:
        parse_forward({**spec, "solver": solver})
    assert [problem.path for problem in refused.value.problems] == [path]


def test_accuracy_goes_with_several_gpus():
    spec = copy.deepcopy(test_forward.SPEC)
    spec["model"]["mesh"] = {"accuracy": "1 %"}
    parsed = parse_forward({**spec, "solver": {"gpus": 2}})
    assert isinstance(parsed, ViscoelasticForward)
    assert parsed.solver.gpus == 2
