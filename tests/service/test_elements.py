"""Meshes are refused by what would be built, not by one part of it."""

from __future__ import annotations

import copy

import httpx
import numpy as np
import pytest
import tiny_worker

from afterslip.identity import canonical_spec
from afterslip.physics.viscoelastic.elements import elements
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_service.db import campaigns, jobs
from afterslip_service.db.jobs import NewJob
from afterslip_service.engine.states import CampaignState, JobKind
from afterslip_workers import entry
from afterslip_workers.engines.viscoelastic import engine as engines
from afterslip_workers.engines.viscoelastic.building import build_model
from afterslip_workers.engines.viscoelastic.error_shares import Errors
from afterslip_workers.machine.model_cache import ModelCache
from afterslip_workers.messages import read_envelope
from afterslip_workers.tasks import context as contexts
from afterslip_workers.tasks import model as models

# one is enough: nothing here depends on it
pytestmark = pytest.mark.databases("sqlite")


def interface(slope=0.3, reach=60):
    """Return a plane that dips west to east, as a table, km."""
    x, y = np.meshgrid(np.arange(-reach, reach + 1, 5.0), np.arange(-50, 51, 5.0))
    rows = np.column_stack([x.ravel(), y.ravel(), 25 + slope * x.ravel()])
    rows = rows[rows[:, 2] > 0.5]
    return "x_km,y_km,depth_km\n" + "\n".join(
        ",".join(f"{v:g}" for v in r) for r in rows
    )


OUTLINE = "x_km,y_km\n-30,-30\n30,-30\n30,30\n-30,30\n"


def spec(size, faults=None, **model):
    made = tiny_worker.spec()
    made["model"]["mesh"] = {"size": size}
    if faults is not None:
        made["model"]["faults"] = faults
        made["sources"]["fault"] = faults[0]["name"]
    made["model"] |= model
    return made


def plane(name, x, length=30.0, width=15.0):
    return {"name": name, "plane": {"x": x, "y": 0, "top": 5, "strike": 0, "dip": 45,
            "length": length, "width": width}}  # fmt: skip


CURVED = {"name": "main", "surface": {"file": "top.csv", "outline": "outline.csv"}}


def layered(*bottoms):
    return [{"name": f"layer{n}", "bottom": bottom, "vp": 6, "vs": 3.4, "rho": 2800}
            for n, bottom in enumerate(bottoms)]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "top.csv").write_text(interface())
    (folder / "outline.csv").write_text(OUTLINE)
    return folder


MADE = {
    "plane": spec({"fault": 3, "far": 30}, [plane("main", 0)]),
    "planes": spec({"fault": 3, "far": 30}, [plane("a", -60), plane("b", 40)]),
    "layers": spec({"fault": 3, "far": 30}, layers=layered(10, 13, 16, 60)),
    "curved": spec({"fault": 6, "far": 30}, [CURVED]),
    "curved, layers": spec(
        {"fault": 6, "far": 30}, [CURVED], layers=layered(10, 13, 16, 60)
    ),
}


def with_bodies(*thick):
    made = copy.deepcopy(MADE["curved"])
    made["model"]["bodies"] = [
        {"name": f"body{n}", "below": "top.csv", "thickness": t,
         "vp": 7, "vs": 4, "rho": 3000} for n, t in enumerate(thick)]  # fmt: skip
    return made


MADE["body"] = with_bodies(20)
# followed near the fault, and not at all
MADE["bodies, one thin"] = with_bodies(20, 2)
MADE["bodies, one too thin"] = with_bodies(20, 1)


@pytest.mark.parametrize("name", MADE)
def test_elements_are_about_those_that_the_mesher_makes(folder, name):
    campaign, files = parse_campaign(MADE[name]), LocalFiles(folder)
    inputs = resolve(campaign, files)
    expected = sum(elements(campaign.model, inputs).values())
    _, facts = build_model(campaign.model, inputs, files, lambda _: None)
    assert 0.3 < expected / facts["n_elements"] < 1.3


def test_refusal_of_a_mesh_names_its_number_the_limit_and_what_makes_it(serve, folder):
    server = serve(files=folder, max_elements=100_000)
    size = {"fault": 3, "far": 30}
    (folder / "mesh.msh").write_bytes(b"$MeshFormat\n4.1 0 8\n$EndMeshFormat\n" * 9000)
    with httpx.Client(base_url=server.url, timeout=20) as client:

        def detail(made):
            answer = client.post("/v1/campaigns", json=made)
            assert answer.status_code == 422, answer.text
            return answer.json()["detail"]

        assert client.post("/v1/campaigns", json=spec(size)).status_code == 201
        for made, hint in (
            (spec({"fault": 0.1, "far": 30}), "mesh.size.fault coarser"),
            (spec({"fault": 0.8, "far": 30}, [CURVED]), "the fault main"),
            (spec({"fault": 3, "far": 3}), "mesh.size.far or the domain"),
            (spec({"fault": 0.3, "far": 30},
                  layers=layered(*np.linspace(0.3, 60, 200).tolist())), "join layers"),
            (MADE["plane"] | {"model": MADE["plane"]["model"] | {
                "mesh": {"size": size, "refine": 3}}}, "lower model.mesh.refine"),
            (MADE["plane"] | {"model": MADE["plane"]["model"] | {
                "mesh": {"file": "mesh.msh", "refine": 3}}}, "use a coarser mesh"),
        ):  # fmt: skip
            text = detail(made)
            assert "elements or more, and 100,000 are allowed here" in text
            assert hint in text, text
        # each of them alone is allowed
        many = [plane(f"f{n}", -90 + 20 * n, 40, 20) for n in range(9)]
        assert client.post(
            "/v1/campaigns", json=spec({"fault": 1.5, "far": 30}, many[:1])
        ).status_code == 201  # fmt: skip
        assert "elements or more" in detail(spec({"fault": 1.5, "far": 30}, many))


@pytest.mark.slow
def test_later_meshes_of_an_accuracy_are_held_against_the_limit_of_the_service(
    database, new_dispatcher, turn, worker, tmp_path, monkeypatch
):
    """The dispatcher's limit, and the worker's task that searches for a mesh."""
    made = tiny_worker.spec()
    made["model"]["mesh"] = {"accuracy": "20 %"}
    canonical = canonical_spec(parse_campaign(made), LocalFiles(tmp_path))
    wrong = Errors.everywhere(0.4)
    monkeypatch.setattr(engines, "of_sources", lambda *_: lambda *_: wrong)
    entry.prepare(tmp_path / "other")
    found = []

    def execute(envelope):
        if envelope["kind"] == "model":
            mine = read_envelope(envelope | {"store": str(tmp_path / "other")})
            warm, quiet = ModelCache(0), lambda _: None
            context = contexts.Context(mine, quiet, lambda: False, warm)
            found.append(models.run(context)[0].as_json())
        return worker(envelope)

    with database.write() as connection:
        campaign = campaigns.create(
            connection, name="c", digest="sha256:0", spec=made, canonical=canonical
        )
        jobs.create(connection, campaign, [NewJob(JobKind.MODEL, 0)])
    dispatcher = new_dispatcher(execute, max_elements=40_000)
    # it meshes again and again, and compiles where nothing did before
    turn(dispatcher, campaign, CampaignState.COMPLETE, seconds=240)
    (facts,) = found
    (warned,) = [note for note in facts["notes"] if "was not met" in note]
    assert "40,000 are allowed here" in warned
    assert facts["n_elements"] < 40_000
