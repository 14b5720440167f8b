"""Campaigns in other earths that an inversion asks for, and what waits for them."""

import copy
import threading
import time

import pytest
import tiny_worker

HEAD = "station,x_km,y_km,east,north,up"
CSV = "\n".join([HEAD, "A,0,0,1.0,0.2,0.1", "B,9,3,0.5,0.1,0.0", "C,4,-5,0.4,0.1,0.0"])
SIGMA = {"horizontal": 0.01, "vertical": 0.03}
PERTURB = {
    "layers.mantle.rheology.maxwell.viscosity": ["x3", "/3"],
    "layers.crust.bottom": 15,
}
NAMES = [
    "tiny layers.mantle.rheology.maxwell.viscosity x3",
    "tiny layers.mantle.rheology.maxwell.viscosity /3",
    "tiny layers.crust.bottom 15",
]


def spec_of(client, perturb=PERTURB, **error):
    ref = client.post("/v1/files", content=CSV.encode()).json()["ref"]
    asked = {"name": "i", "datasets": ["d"],
             "model_error": {"perturb": perturb, **error}}  # fmt: skip
    return tiny_worker.spec(
        datasets=[{"name": "d", "file": ref, "sigma": SIGMA}], inversions=[asked]
    )


def listed(client):
    items = client.get("/v1/campaigns").json()["items"]
    return {item["name"]: item for item in items}


def inversion_of(client, campaign):
    (identity,) = client.get(f"/v1/campaigns/{campaign}").json()["inversions"]
    return client.get(f"/v1/inversions/{identity}").json()


def wait(client, campaign, *states):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        shown = inversion_of(client, campaign)
        if shown["state"] in states:
            return shown
        time.sleep(0.02)
    raise AssertionError(shown)


def test_one_submit_makes_the_campaigns_and_the_inversion_waits_for_them(
    client, worker, wait_for
):
    may_build = threading.Event()

    def hold(envelope):
        if envelope.spec["name"] == NAMES[2]:
            assert may_build.wait(30)

    worker.fail = {("model", 0): [hold] * 4}
    made = client.post("/v1/campaigns", json=spec_of(client))
    assert made.status_code == 201, made.text
    identity, found = made.json()["id"], listed(client)
    assert set(found) == {"tiny", *NAMES}
    ids = [found[name]["id"] for name in NAMES]
    error = inversion_of(client, identity)["request"]["model_error"]
    assert error["campaigns"] == [ids[:2], ids[2:]]
    assert "perturb" not in error
    for one in (identity, *ids[:2]):
        wait_for(one, "complete")
    time.sleep(0.3)
    assert inversion_of(client, identity)["state"] == "waiting"
    assert (identity, "inversion", 0) not in worker.ran
    said = client.get(f"/v1/campaigns/{identity}/explain").json()["waiting"]
    assert [reason["code"] for reason in said] == ["other_earths"]
    assert f"waits for 1 campaign in other earths: {ids[2]}" in said[0]["message"]
    may_build.set()
    wait(client, identity, "accepted")
    assert listed(client)[NAMES[2]]["state"] == "complete"
    other = client.get(f"/v1/campaigns/{ids[0]}").json()["spec"]
    mantle = other["model"]["layers"][1]
    assert mantle["rheology"]["maxwell"]["viscosity"] == pytest.approx(3e19)
    assert not other.get("inversions")


def test_campaigns_that_are_there_are_taken_again(client, wait_for):
    made = client.post("/v1/campaigns", json=spec_of(client)).json()["id"]
    first = wait(client, made, "accepted")
    body = {"name": "d2", "csv": CSV, "sigma": SIGMA}
    assert client.post("/v1/datasets", json=body).status_code == 201
    asked = {"campaign": made, "name": "again", "datasets": ["d2"],
             "model_error": {"perturb": PERTURB}}  # fmt: skip
    answer = client.post("/v1/inversions", json=asked)
    assert answer.status_code == 201, answer.text
    named = answer.json()["request"]["model_error"]["campaigns"]
    assert named == first["request"]["model_error"]["campaigns"]
    assert len(listed(client)) == 4


def test_a_repeated_request_makes_nothing_twice(client):
    key = {"Idempotency-Key": "once"}
    spec = spec_of(client)
    answers = [client.post("/v1/campaigns", json=spec, headers=key) for _ in range(2)]
    assert [a.json()["id"] for a in answers] == [answers[0].json()["id"]] * 2
    assert len(client.get("/v1/campaigns").json()["items"]) == 4


def test_inversion_fails_with_its_other_earth_and_waits_again_once_retried(
    client, worker, wait_for
):
    worker.gate.clear()
    made = client.post("/v1/campaigns", json=spec_of(client)).json()["id"]
    other = listed(client)[NAMES[2]]["id"]
    assert client.post(f"/v1/campaigns/{other}/cancel").status_code == 200
    worker.gate.set()
    wait_for(made, "complete")
    shown = wait(client, made, "failed")
    assert f"{other} is cancelled" in shown["error"]["message"]
    assert client.post(f"/v1/campaigns/{other}/uncancel").status_code == 200
    assert client.post(f"/v1/campaigns/{made}/retry").status_code == 200
    wait(client, made, "accepted")


@pytest.mark.parametrize(
    ("perturb", "path", "said"),
    [
        ({"layers.core.bottom": [30]}, "layers.core.bottom", "has no core"),
        ({"layers.crust.bottom": ["deep"]}, "layers.crust.bottom", "is no value"),
        ({"layers.crust.bottom": [70]}, "layers.crust.bottom", "makes model.layers"),
        ({}, "", "at least 1"),
        ({"layers.crust.vs": [f"x1.0{k}" for k in range(10)],
          "layers.crust.vp": [f"x1.0{k}" for k in range(10)],
          "layers.mantle.vs": [f"x1.0{k}" for k in range(10)],
          "layers.mantle.vp": ["x1.1"]}, "", "asks for 31 campaigns"),
    ],
)  # fmt: skip
def test_what_makes_no_earth_is_refused_where_it_stands(client, perturb, path, said):
    spec = spec_of(client, perturb)
    for route in ("campaigns", "plan"):
        answer = client.post(f"/v1/{route}", json=spec)
        assert answer.status_code == 422, answer.text
        here = "inversions[0].model_error.perturb"
        errors = answer.json()["errors"]
        assert any(
            error["path"] == (f"{here}.{path}" if path else here)
            and said in error["message"]
            for error in errors
        ), errors
    assert client.get("/v1/campaigns").json()["items"] == []


def test_windows_are_refused_beside_other_earths(client):
    spec = spec_of(client)
    hypocentre = {"x": 0, "y": 0, "depth": 5}
    spec["inversions"][0]["windows"] = {
        "count": 2, "spacing": "2 s", "rupture_speed": 3, "hypocentre": hypocentre
    }  # fmt: skip
    for route in ("campaigns", "plan"):
        answer = client.post(f"/v1/{route}", json=spec)
        assert answer.status_code == 422, answer.text
        (error,) = answer.json()["errors"]
        assert error["path"] == "inversions[0].model_error.perturb"
        assert "cannot be used with windows" in error["message"]
        assert error["hint"] == "leave one of them out"
    assert client.get("/v1/campaigns").json()["items"] == []


def test_plan_names_them_and_says_what_the_inversion_needs(client):
    found = client.post("/v1/plan", json=spec_of(client)).json()
    assert found["perturbed"] == NAMES
    (inversion,) = found["inversions"]
    assert (inversion["data"], inversion["unknowns"]) == (9, 10)
    alone = copy.deepcopy(spec_of(client))
    del alone["inversions"][0]["model_error"]
    (less,) = client.post("/v1/plan", json=alone).json()["inversions"]
    assert inversion["bytes"] > less["bytes"]
    assert client.get("/v1/campaigns").json()["items"] == []
