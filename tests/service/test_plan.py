"""What a plan says before anything is recorded, and that it refuses as submits do."""

from __future__ import annotations

import subprocess
import sys
import time

import httpx
import numpy as np
import pytest
import tiny_worker

from afterslip_workers import entry
from afterslip_workers.engines.viscoelastic import planning

# a plan records nothing
pytestmark = pytest.mark.databases("sqlite")


def plan(client, spec=None, **query):
    answer = client.post(
        "/v1/plan", json=spec or tiny_worker.spec(), params=query, timeout=120
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_plan_tells_sizes_and_records_nothing(client):
    found = plan(client)
    assert (found["sources"], found["groups"]) == (10, 3)
    assert found["elements"] > 300
    assert 3.5 < found["unknowns"] / found["elements"] < 4.5
    memory = found["memory"]
    assert memory["backend"] == "cpu"
    assert 0 < memory["least_bytes"] <= memory["bytes"] < found["memory_free"]
    # nothing was solved here
    assert found["time"] is None
    assert found["reuse"] == {"model": None, "sources": None}
    assert client.get("/v1/campaigns").json()["items"] == []


def test_memory_of_a_plan_counts_the_coarser_model_of_the_error(client):
    spec = tiny_worker.spec()
    without = plan(client, {**spec, "solver": {"space_error": False}})["memory"]
    memory = plan(client, spec)["memory"]
    assert without["parts"]["coarse"] == 0
    assert memory["parts"]["coarse"] > 0
    assert memory["bytes"] == without["bytes"] + memory["parts"]["coarse"]
    assert memory["least_bytes"] > without["least_bytes"]


def test_a_trial_mesh_counts_elements_as_the_mesher_makes_them(client, monkeypatch):
    monkeypatch.setattr(planning, "TRIAL", 4000.0)
    spec = tiny_worker.spec()
    spec["model"]["mesh"] = {"size": {"fault": 0.4, "far": 20}}
    found = plan(client, spec, mesh=True)
    trial = found["trial"]
    assert trial["coarser"] > 1
    assert trial["n_elements"] > 1000
    ratio = trial["n_elements"] / trial["expected"]
    assert found["elements"] == pytest.approx(plan(client, spec)["elements"] * ratio,
                                              rel=1e-3)  # fmt: skip


def test_the_sources_of_a_plane_lie_on_it(client):
    shape = plan(client)["geometry"]
    (fault,) = shape["faults"]
    sources = np.array(fault["sources"])
    assert sources.shape == (5, 3)
    # strike 0: along y; 10 km down a dip of 30 degrees from a top at 2 km
    assert sources[:, 1] == pytest.approx([-16, -8, 0, 8, 16])
    assert sources[:, 0] == pytest.approx(10 * np.cos(np.radians(30)), abs=1e-3)
    assert sources[:, 2] == pytest.approx(-7.0)
    assert shape["section"]["azimuth"] == 90.0
    (top, bottom) = fault["line"]
    assert top[1] == pytest.approx(-2.0)
    assert bottom[1] == pytest.approx(-12.0)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"sources": {"fault": "none", "along_strike": 2, "down_dip": 1}}, "sources"),
        ({"times": {"until": "1 yr", "output": ["2 yr"]}}, "times"),
        ({"solver": {"backend": "gpu"}}, "solver.backend"),
    ],
)
def test_a_plan_refuses_what_a_submit_refuses(client, change, path):
    spec = tiny_worker.spec(**change)
    answers = [client.post(f"/v1/{name}", json=spec) for name in ("plan", "campaigns")]
    assert [answer.status_code for answer in answers] == [422, 422]
    one, other = (answer.json()["errors"] for answer in answers)
    assert one == other
    assert one[0]["path"].startswith(path)


def test_a_model_that_never_fits_is_refused_with_the_numbers(client, monkeypatch):
    machine = entry.describe_worker() | {"memory_bytes": 1_000_000}
    monkeypatch.setattr(entry, "describe_worker", lambda: machine)
    answer = client.post("/v1/campaigns", json=tiny_worker.spec())
    assert answer.status_code == 422
    (problem,) = answer.json()["errors"]
    assert problem["path"] == "model.mesh"
    assert "GB of memory, and the machine has 0 GB" in problem["message"]
    assert "most elements are" in problem["hint"]


def test_a_narrow_domain_and_few_data_are_warned_of(client):
    csv = b"station,x_km,y_km,east,north,up\nA,0,0,1,1,1\n"
    ref = client.post("/v1/files", content=csv).json()["ref"]
    data = {"name": "gnss", "file": ref, "sigma": {"horizontal": 1, "vertical": 1}}
    found = plan(
        client,
        tiny_worker.spec(
            datasets=[data],
            inversions=[{"name": "slip", "datasets": ["gnss"], "smoothness": 1.0}],
        ),
    )
    by_path = {warning["path"]: warning["message"] for warning in found["warnings"]}
    assert "side of the domain" in by_path["model.faults[0]"]
    assert "3 data for 10 unit sources" in by_path["inversions[0]"]
    spec = tiny_worker.spec()
    spec["model"]["domain"] = {"x": [-500, 500], "y": [-500, 500], "depth": 60 + 400}
    spec["model"]["layers"][1]["bottom"] = 460
    spec["sources"]["along_strike"] = 3
    assert plan(client, spec)["warnings"] == []


def test_sources_that_the_data_would_hardly_see_are_warned_of(client):
    """Nothing is refused for it: the prior says what they slip."""
    lines = ["station,x_km,y_km,east,north,up", "A,0,-18,1,1,1", "B,5,-15,1,1,1"]
    ref = client.post("/v1/files", content="\n".join(lines).encode()).json()["ref"]

    def said(error):
        spec = tiny_worker.spec(
            datasets=[{"name": "gnss", "file": ref,
                       "sigma": {"horizontal": error, "vertical": error}}],
            inversions=[{"name": "slip", "datasets": ["gnss"], "smoothness": 1.0}],
        )  # fmt: skip
        found = plan(client, spec)["warnings"]
        return [one for one in found if one["path"] == "inversions[0].datasets"]

    assert said(0.003) == []
    (some,) = said(0.5)
    (every,) = said(100.0)
    assert "hardly see" in some["message"]
    assert "10 of 10 unit sources on the fault main" in every["message"]
    assert "10 of 10" not in some["message"]
    assert "half-space" in some["message"]
    assert some["hint"]


@pytest.mark.parametrize(("shape", "apart"), [("bspline", 3.3), ("patch", 3.1)])
def test_elements_too_coarse_for_the_sources_are_warned_of(client, shape, apart):
    sources = {"fault": "main", "along_strike": 13, "down_dip": 1, "shape": shape}
    warnings = plan(client, tiny_worker.spec(sources=sources))["warnings"]
    (found,) = [one for one in warnings if one["path"] == "sources"]
    assert f"are {apart} km apart on the fault main" in found["message"]
    assert (
        f"mesh.size.fault of {40 / (12 if shape == 'bspline' else 13) / 2:.2g}"
        in (found["hint"])
    )


def test_a_plan_after_a_campaign_has_its_rates_and_its_model(client, wait_for):
    made = client.post("/v1/campaigns", json=tiny_worker.spec("first")).json()["id"]
    wait_for(made, "complete")
    found = plan(client)
    assert found["reuse"] == {"model": made, "sources": made}
    timed = found["time"]
    assert timed["campaigns"] == 1
    assert timed["low"] == timed["high"] == timed["group"] > 0
    assert timed["worker"] >= 3 * timed["group"]
    assert found["cost"] is None
    other = tiny_worker.spec()
    other["model"]["faults"][0]["plane"]["dip"] = 45
    assert plan(client, other)["reuse"] == {"model": None, "sources": None}
    finer = tiny_worker.spec(
        sources={"fault": "main", "along_strike": 6, "down_dip": 1}
    )
    assert plan(client, finer)["reuse"] == {"model": made, "sources": None}


def test_a_plan_says_what_the_workers_cost_at_the_price_of_the_service(serve):
    server = serve(price=36.0, currency="CHF")
    with httpx.Client(base_url=server.url, timeout=20) as client:
        assert plan(client)["cost"] is None  # nothing was timed yet
        made = client.post("/v1/campaigns", json=tiny_worker.spec("first")).json()["id"]
        deadline = time.monotonic() + 60
        while client.get(f"/v1/campaigns/{made}").json()["state"] != "complete":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        found = plan(client)
        cost = found["cost"]
        assert cost["amount"] == pytest.approx(found["time"]["worker"] * 36 / 3600)
        assert (cost["currency"], cost["price"]) == ("CHF", 36.0)
        wide = tiny_worker.spec(solver={"gpus": 2, "backend": "auto"})
        both = plan(client, wide)
        ratio = both["cost"]["amount"] / both["time"]["worker"]
        assert ratio == pytest.approx(2 * 36 / 3600)


STARTED = """
import sys, time
from pathlib import Path
from afterslip_service.main import bring_down, bring_up, create_app
from afterslip_service.settings import Settings
ENGINE = "afterslip_workers.engines.viscoelastic.planning"
folder = Path(sys.argv[1])
settings = Settings(store=folder / "store", database=str(folder / "db.sqlite"))
app = create_app(settings, placement=None)
assert ENGINE not in sys.modules
bring_up(app)
for _ in range(1200):
    if hasattr(sys.modules.get(ENGINE), "plan"):
        break
    time.sleep(0.05)
else:
    sys.exit("nobody imported the engine")
bring_down(app)
"""


def test_a_started_service_has_the_engines_before_the_first_plan(tmp_path):
    command = [sys.executable, "-c", STARTED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
