"""Data sets and inversions over HTTP."""

from __future__ import annotations

import copy
import time

import pytest
import tiny_worker

CSV = "station,x_km,y_km,east,north,up\nA,0,0,1.0,0.2,0.1\nB,9,3,0.5,0.1,0.0\n"
SIGMA = {"horizontal": 0.01, "vertical": 0.03}


@pytest.fixture
def complete(client, wait_for):
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    return wait_for(made["id"], "complete")


@pytest.fixture
def dataset(client):
    body = {"name": "late", "csv": CSV, "epoch": "0 d", "sigma": SIGMA}
    answer = client.post("/v1/datasets", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def wait(client, inversion, *states):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        shown = client.get(f"/v1/inversions/{inversion}").json()
        if shown["state"] in states:
            return shown
        time.sleep(0.02)
    raise AssertionError(shown)


def test_inversion_on_a_complete_campaign(client, complete, dataset):
    body = {"campaign": complete["id"], "name": "i1", "datasets": ["late"]}
    made = client.post("/v1/inversions", json=body)
    assert made.status_code == 201, made.text
    shown = wait(client, made.json()["id"], "accepted")
    assert shown["summary"]["magnitude"] == 9.0
    assert shown["request"]["folds"] == 5
    assert client.get(shown["links"]["result"]).content == b"CDF tiny"
    fit = client.get(f"{shown['links']['self']}/fit")
    assert fit.content == b"station,observed"
    assert fit.headers["content-type"].startswith("text/csv")
    report = client.get(shown["links"]["report"])
    assert "tiny" in report.text
    assert "default-src 'none'" in report.headers["content-security-policy"]
    (plot,) = client.get(shown["links"]["plots"]).json()["items"]
    assert plot["name"] == "slip"
    assert client.get(plot["href"]).headers["content-type"] == "image/png"
    campaign = client.get(f"/v1/campaigns/{complete['id']}").json()
    assert campaign["inversions"] == [shown["id"]]
    listed = client.get("/v1/inversions", params={"campaign": complete["id"]}).json()
    assert [item["id"] for item in listed["items"]] == [shown["id"]]


def test_inversion_of_the_spec_waits_for_the_greens(client, worker):
    ref = client.post("/v1/files", content=CSV.encode()).json()["ref"]
    order = []
    real = worker._receipt

    def noted(envelope, *rest, **more):
        order.append(envelope.kind)
        return real(envelope, *rest, **more)

    worker._receipt = noted
    spec = tiny_worker.spec(
        datasets=[{"name": "gnss", "file": ref, "sigma": SIGMA}],
        inversions=[{"name": "first", "datasets": ["gnss"]}],
    )
    made = client.post("/v1/campaigns", json=spec).json()
    (identity,) = made["inversions"]
    shown = wait(client, identity, "accepted")
    assert shown["name"] == "first"
    assert order == ["model", "group", "group", "group", "inversion"]


def test_failed_inversion_leaves_the_campaign_complete(
    client, worker, complete, dataset
):
    worker.fail["inversion", 0] = ["bad_input"]
    body = {"campaign": complete["id"], "name": "i1", "datasets": [dataset["id"]]}
    made = client.post("/v1/inversions", json=body)
    # a data set may be named by its id only where a name is asked for by name
    shown = wait(client, made.json()["id"], "failed")
    assert shown["error"]["message"] == "a planned bad_input"
    campaign = client.get(f"/v1/campaigns/{complete['id']}").json()
    assert campaign["state"] == "complete"
    assert client.get(shown["links"]["result"]).status_code == 409
    assert client.get(shown["links"]["plots"]).json()["items"] == []
    client.post(f"/v1/campaigns/{complete['id']}/retry")
    wait(client, shown["id"], "accepted")


def test_request_that_is_wrong_says_where(client, complete, dataset):
    good = {"campaign": complete["id"], "name": "i1", "datasets": ["late"]}
    for changes, path in (
        ({"datasets": ["nothing"]}, "datasets[0]"),
        ({"datasets": []}, "datasets"),
        ({"campaign": None}, "campaign"),
        ({"folds": 1}, "folds"),
        ({"smothness": 1}, "smothness"),
        ({"prior": "laplace"}, "prior"),
        ({"prior": {"von_karman": {"hurst": 3}}}, "prior"),
        ({"prior": {}}, "prior"),
        ({"constraints": [{"fault": "none", "rake": [90]}]}, "constraints[0].fault"),
        (
            {"constraints": [{"bounds": {"dip": [1, 0]}}]},
            "constraints[0].bounds.dip",
        ),
        ({"moment": {"magnitude": 8, "error": 2, "rake": 90}}, "moment.error"),
        (
            {
                "sign": {"dip": "negative"},
                "moment": {"magnitude": 6, "error": 0.1, "rake": 90},
            },
            "moment",
        ),
    ):
        answer = client.post("/v1/inversions", json={**good, **changes})
        assert answer.status_code == 422
        assert [error["path"] for error in answer.json()["errors"]] == [path]


def test_inversion_of_an_unknown_campaign_is_not_found(client):
    body = {"campaign": "none", "name": "i1", "datasets": ["late"]}
    assert client.post("/v1/inversions", json=body).status_code == 404


def test_dataset_without_uncertainties_is_refused(client):
    answer = client.post("/v1/datasets", json={"name": "bare", "csv": CSV})
    assert answer.status_code == 422
    assert "sigma" in answer.text


def test_dataset_outside_the_domain_is_refused_by_the_inversion(client, complete):
    far = CSV.replace("9,3", "9000,3")
    body = {"name": "far", "csv": far, "sigma": SIGMA}
    assert client.post("/v1/datasets", json=body).status_code == 201
    body = {"campaign": complete["id"], "name": "i1", "datasets": ["far"]}
    answer = client.post("/v1/inversions", json=body)
    assert answer.status_code == 422
    assert "outside" in answer.json()["detail"]


def test_dataset_can_be_found_by_name_and_id(client, dataset):
    assert dataset["n_observations"] == 2
    assert dataset["epoch"] == "0 d"
    for name in (dataset["id"], "late"):
        assert client.get(f"/v1/datasets/{name}").json() == dataset
    assert client.get("/v1/datasets").json()["items"] == [dataset]


def test_same_upload_twice_is_one_file(client, settings):
    first = client.post("/v1/files", content=b"abc").json()
    assert client.post("/v1/files", content=b"abc").json() == first
    assert [p.name for p in (settings.store / "files").iterdir()] == [
        first["ref"].removeprefix("sha256:")
    ]
    assert client.post("/v1/files", content=b"").status_code == 422


def test_other_earths_must_be_complete_campaigns_of_the_same_sources(client, complete):
    def ask(*campaigns):
        body = {"campaign": complete["id"], "name": "i", "datasets": ["late"]}
        body["model_error"] = {"campaigns": list(campaigns)}
        return client.post("/v1/inversions", json=body)

    body = {"name": "late", "csv": CSV, "epoch": "0 d", "sigma": SIGMA}
    assert client.post("/v1/datasets", json=body).status_code == 201
    answer = ask("nobody", complete["id"])
    assert answer.status_code == 422
    (problem,) = answer.json()["errors"]
    assert problem["path"] == "model_error.campaigns[0][0]"
    assert "there is no campaign" in problem["message"]
    answer = ask([complete["id"]])
    assert answer.status_code == 422
    assert "is the same campaign" in answer.text


@pytest.mark.parametrize("route", ["campaigns", "plan"])
def test_other_earths_of_a_spec_are_checked_before_it_is_solved(
    client, complete, route
):
    """Green's functions would else be solved for an inversion that must fail."""
    ref = client.post("/v1/files", content=CSV.encode()).json()["ref"]

    def ask(identity, **changes):
        spec = tiny_worker.spec(
            datasets=[{"name": "gnss", "file": ref, "sigma": SIGMA}],
            inversions=[
                {"name": "i", "datasets": ["gnss"],
                 "model_error": {"campaigns": [identity]}}
            ],
            **changes,
        )  # fmt: skip
        return client.post(f"/v1/{route}", json=spec)

    sources = copy.deepcopy(tiny_worker.spec()["sources"])
    sources["along_strike"] += 1
    for answer, said in (
        (ask("nobody"), "there is no campaign"),
        (ask(complete["id"], sources=sources), "has other sources"),
    ):
        assert answer.status_code == 422, answer.text
        (problem,) = answer.json()["errors"]
        assert problem["path"] == "inversions[0].model_error.campaigns[0][0]"
        assert said in problem["message"]
    assert ask(complete["id"]).status_code < 300
    assert len(client.get("/v1/campaigns").json()["items"]) == (
        2 if route == "campaigns" else 1
    )
