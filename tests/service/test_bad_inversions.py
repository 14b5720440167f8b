"""Inversions that cannot be made are refused when they are sent, with path and hint.

Each on both routes: with the spec of a campaign, and on a campaign that is there.
Nothing is recorded, so that no Green's function is solved for it.
"""

import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import tiny_worker

# what is refused is not recorded
pytestmark = pytest.mark.databases("sqlite")

HEAD = "station,x_km,y_km,east,north,up"
PLACES = [(0, 0), (5, 3), (-4, 6), (8, -5), (2, 9), (-7, -2)]
LINES = [f"S{k},{x},{y},0.{k}1,0.2{k},0.1" for k, (x, y) in enumerate(PLACES)]
SIGMA = {"horizontal": 0.01, "vertical": 0.03}


def table(lines=LINES, head=HEAD):
    return "\n".join([head, *lines])


def matrix(n, off):
    """Return the text of a covariance with one number off the diagonal."""
    rows = [[0.01 if i == j else off for j in range(n)] for i in range(n)]
    return "\n".join(" ".join(map(str, row)) for row in rows)


def small_faults(*places):
    """Return changes of the spec: faults of 8 km by 6 km, all of which slip."""
    model = copy.deepcopy(tiny_worker.spec()["model"])
    plane = {**model["faults"][0]["plane"], "length": 8, "width": 6}
    names = ["main", "other"][: len(places)]
    model["faults"] = [
        {"name": name, "plane": {**plane, "x": x, "y": y}}
        for name, (x, y) in zip(names, places, strict=True)
    ]
    grid = {"along_strike": 2, "down_dip": 1}
    return {"model": model, "sources": [{"fault": name, **grid} for name in names]}


class Case(NamedTuple):
    """What is wrong, and what the answer says: end of the path, words, hint."""

    path: str
    words: str
    hint: str
    request: Mapping[str, Any] = MappingProxyType({})
    dataset: Mapping[str, Any] = MappingProxyType({})
    csv: str = table()
    spec: Mapping[str, Any] = MappingProxyType({})


CASES = {
    "fewer stations than folds": Case(
        "folds", "number of stations with data, 6", "fewer folds", {"folds": 9}
    ),
    "one station": Case(
        "folds", "number of stations with data, 1", "fewer folds", csv=table(LINES[:1])
    ),
    "bounds fall": Case(
        "constraints[0].bounds.dip", "must grow", "smaller one first",
        {"constraints": [{"bounds": {"dip": [2, 1]}}]},
    ),
    "bounds against a sign": Case(
        "constraints[0].bounds.dip", "contradicts sign.dip", "move the bounds",
        {"sign": {"dip": "positive"}, "constraints": [{"bounds": {"dip": [-2, -1]}}]},
    ),
    "a moment that no slip has": Case(
        "moment", "no slip along it is allowed", "widen them",
        {"sign": {"dip": "negative"},
         "moment": {"magnitude": 6, "error": 0.1, "rake": 90}},
    ),
    "increments in an uncertain earth": Case(
        "increments", "cannot be used with model_error.campaigns", "leave one",
        {"increments": {"ends": ["30 d"]}, "model_error": {"campaigns": ["other"]}},
    ),
    "a sparse slip in an uncertain earth": Case(
        "sparsity", "cannot be used with model_error.campaigns", "leave one",
        {"sparsity": "auto", "model_error": {"campaigns": ["other"]}},
    ),
    "a covariance that is none": Case(
        "covariance.file", "not positive definite", "to the diagonal",
        dataset={"covariance": {"file": matrix(18, 0.02)}},
    ),
    "a covariance of other data": Case(
        "covariance.file", "is 4 x 4, and there are 18 data", "18 lines",
        dataset={"covariance": {"file": matrix(4, 0.0)}},
    ),
    "NaN in a covariance": Case(
        "covariance.file", "not finite in line 1, column 2", "leave out",
        dataset={"covariance": {"file": matrix(18, "nan")}},
    ),
    "a data set before the event": Case(
        "epoch", "must be zero or more", "from the event", dataset={"epoch": "-3 d"}
    ),
    "a datum before the event": Case(
        "column time", "before the event", "count from it",
        csv=table([f"{line},{-(k == 2)}" for k, line in enumerate(LINES)],
                  f"{HEAD},time"),
    ),
    "a datum after the end": Case(
        "", "later than times.until (1 yr)", "make times.until later",
        csv=table([f"{line},{3 * (k == 2)}" for k, line in enumerate(LINES)],
                  f"{HEAD},time"),
    ),
    "NaN": Case(
        "line 2, column east", "not a finite number", "leave the field empty",
        csv=table([LINES[0].replace("0.01", "nan"), *LINES[1:]]),
    ),
    "an error that is infinite": Case(
        "sigma.horizontal", "is not a number", "write e.g.",
        dataset={"sigma": {"horizontal": "inf", "vertical": 1}},
    ),
    "an error of zero": Case(
        "column sigma_e", "more than zero", "leave it empty",
        csv=table([f"{line},0" for line in LINES], f"{HEAD},sigma_e"),
    ),
    "data of another earthquake": Case(
        "datasets", "no station within", "another earthquake?",
        spec=small_faults((80, 80)),
    ),
    "a fault that no datum is near": Case(
        "datasets", "km of the fault other", "leave other out of sources",
        spec=small_faults((0, 0), (80, 80)),
    ),
}  # fmt: skip


def dataset_of(client, case):
    """Return the data set without its lines; its covariance is uploaded."""
    found = {"name": "d", "sigma": SIGMA, **case.dataset}
    if "covariance" in found:
        text = found["covariance"]["file"].encode()
        ref = client.post("/v1/files", content=text).json()["ref"]
        found["covariance"] = {"file": ref}
    return found


def check(answer, case):
    assert answer.status_code == 422, answer.text
    errors = answer.json()["errors"]
    matching = [
        error
        for error in errors
        if error["path"].endswith(case.path)
        and case.words in error["message"]
        and case.hint in error["hint"]
    ]
    assert matching, errors
    assert all(error["path"] for error in errors)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_bad_inversion_is_refused_with_the_spec(client, worker, case):
    ref = client.post("/v1/files", content=case.csv.encode()).json()["ref"]
    spec = tiny_worker.spec(
        datasets=[{**dataset_of(client, case), "file": ref}],
        inversions=[{"name": "i", "datasets": ["d"], **case.request}],
        **case.spec,
    )
    check(client.post("/v1/campaigns", json=spec), case)
    assert client.get("/v1/campaigns").json()["items"] == []
    assert not worker.ran


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_bad_inversion_is_refused_on_a_campaign(client, worker, case):
    worker.gate.clear()  # the campaign is still without Green's functions
    made = client.post("/v1/campaigns", json=tiny_worker.spec(**case.spec))
    assert made.status_code == 201, made.text
    body = {**dataset_of(client, case), "csv": case.csv}
    answer = client.post("/v1/datasets", json=body)
    if answer.status_code == 201:
        asked = {"campaign": made.json()["id"], "name": "i", "datasets": ["d"]}
        answer = client.post("/v1/inversions", json={**asked, **case.request})
    check(answer, case)
    assert client.get("/v1/inversions").json()["items"] == []


@pytest.mark.parametrize("there", [False, True], ids=["spec", "campaign"])
def test_inversion_that_needs_more_memory_than_is_allowed_is_refused(
    client, worker, there
):
    worker.gate.clear()
    client.server.app.state.service.settings.max_inversion = 10_000
    ref = client.post("/v1/files", content=table().encode()).json()["ref"]
    dataset = {"name": "d", "file": ref, "sigma": SIGMA}
    asked = {"name": "i", "datasets": ["d"]}
    if there:
        made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()["id"]
        client.post("/v1/datasets", json={"name": "d", "csv": table(), "sigma": SIGMA})
        answer = client.post("/v1/inversions", json={**asked, "campaign": made})
    else:
        spec = tiny_worker.spec(datasets=[dataset], inversions=[asked])
        answer = client.post("/v1/campaigns", json=spec)
        assert client.get("/v1/campaigns").json()["items"] == []
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["path"] == ("" if there else "inversions[0]")
    assert "18 data and 10 unknowns, and 0.0 GB are allowed here" in error["message"]
    assert "most is for unknowns: ask for fewer sources" in error["hint"]


def test_the_errors_of_the_mesh_in_a_long_series_count_in_the_memory(client):
    lines = [f"A,0,0,0.1,0.2,0.1,{day / 700}" for day in range(600)]
    lines += [f"{line},0" for line in LINES[1:]]
    text = table(lines, f"{HEAD},time")
    ref = client.post("/v1/files", content=text.encode()).json()["ref"]

    def said(mesh):
        asked = {"name": "i", "datasets": ["d"], "model_error": {"mesh": mesh}}
        spec = tiny_worker.spec(
            datasets=[{"name": "d", "file": ref, "sigma": SIGMA}], inversions=[asked]
        )
        answer = client.post("/v1/plan", json=spec)
        assert answer.status_code == 200, answer.text
        (found,) = answer.json()["inversions"]
        return found["bytes"]

    # three components, each a matrix of 600 by 600 numbers
    assert said(True) - said(False) >= 3 * 8 * 600**2
