"""Green's functions over HTTP, and what was made from them."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import pytest
import tiny_store
import tiny_worker
import xarray as xr

from afterslip import integrity
from afterslip_service.routes.store_files import inside

# one is enough: nothing here depends on it
pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
def complete(client, wait_for):
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    return wait_for(made["id"], "complete")


def test_xarray_opens_the_store_by_its_address(client, complete):
    url = client.server.url + complete["links"]["greens"]
    with xr.open_zarr(url) as greens:
        assert greens.attrs["status"] == "complete"
        assert greens.response.dims == ("source", "mode", "node", "component")
        expected = np.stack([tiny_store.response(source) for source in range(10)])
        np.testing.assert_array_equal(greens.response.values, expected)
        # one source of a shard: only a part of the file goes over the line
        np.testing.assert_array_equal(greens.response[5, 1], expected[5, 1])


def test_half_finished_store_opens_with_gaps(client, worker):
    last = threading.Event()

    def fail_last(_):
        last.wait(20)
        return "bad_input"

    worker.fail["group", 1] = [fail_last]
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        shown = client.get(f"/v1/campaigns/{made['id']}").json()
        if shown["progress"]["accepted"] == 2:
            last.set()
        if shown["state"] == "failed":
            break
        time.sleep(0.02)
    with xr.open_zarr(client.server.url + shown["links"]["greens"]) as greens:
        known = np.isfinite(greens.response.values).all(axis=(1, 2, 3))
    assert known.tolist() == [True] * 4 + [False] * 4 + [True] * 2


def test_byte_ranges(client, complete):
    url = complete["links"]["greens"] + "/response/c/0/0/0/0"
    whole = client.get(url).content
    head = client.head(url)
    assert int(head.headers["content-length"]) == len(whole)
    assert head.content == b""
    assert head.headers["accept-ranges"] == "bytes"
    for spec, expected in (
        ("bytes=0-9", whole[:10]),
        ("bytes=10-", whole[10:]),
        ("bytes=-16", whole[-16:]),
    ):
        part = client.get(url, headers={"Range": spec})
        assert part.status_code == 206
        assert part.content == expected
    beyond = client.get(url, headers={"Range": f"bytes={len(whole)}-"})
    assert beyond.status_code == 416


def test_nothing_outside_the_store_is_read(client, complete):
    for key in (
        "../model.json",
        "..%2fmodel.json",
        "%2e%2e/model.json",
        "response/../../model.json",
        "/etc/passwd",
        "response",
        "",
        "response/c",
        "no/such/key",
        "a%00b",
    ):
        answer = client.get(f"{complete['links']['greens']}/{key}")
        # a path with a NUL is refused before anybody looks for it
        assert answer.status_code == (400 if "%00" in key else 404), key
        assert answer.headers["content-type"] == "application/problem+json"


def test_links_out_of_the_store_are_not_followed(tmp_path):
    root = tmp_path / "greens.zarr"
    (root / "real").mkdir(parents=True)
    (tmp_path / "secret").write_text("s")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "folder").symlink_to(tmp_path)
    (root / "real" / "chunk").write_text("c")
    assert inside(root, "real/chunk") == root / "real" / "chunk"
    assert inside(root, "link") is None
    assert inside(root, "folder/secret") is None


def test_sample_before_the_end_is_a_conflict(client, worker):
    worker.gate.clear()
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    body = {"stations": [{"name": "A", "x_km": 0, "y_km": 0}], "times": ["0 d"]}
    answer = client.post(f"/v1/campaigns/{made['id']}/sample", json=body)
    assert answer.status_code == 409


def test_sample_request_that_is_wrong_says_where(client, complete):
    point = {"name": "A", "x_km": 0, "y_km": 0}
    for body, path in (
        ({"stations": [], "times": ["0 d"]}, "stations"),
        ({"stations": [{"name": "A"}], "times": ["0 d"]}, "stations[0]"),
        ({"stations": [point], "times": [3]}, "times[0]"),
        ({"stations": [point]}, "times"),
        (
            {"stations": [{**point, "x_km": 1e154}], "times": ["0 d"]},
            "stations[0].x_km",
        ),
    ):
        answer = client.post(f"/v1/campaigns/{complete['id']}/sample", json=body)
        assert answer.status_code == 422
        assert [error["path"] for error in answer.json()["errors"]] == [path]


def test_sample_with_degrees_in_a_local_frame_is_refused(client, complete):
    body = {"stations": [{"name": "A", "lon": 1, "lat": 2}], "times": ["0 d"]}
    answer = client.post(f"/v1/campaigns/{complete['id']}/sample", json=body)
    assert answer.status_code == 422
    assert "x_km" in answer.json()["errors"][0]["hint"]


def test_key_that_is_no_chunk_of_an_accepted_group_is_not_found(client, complete):
    greens = complete["links"]["greens"]
    assert client.get(f"{greens}/response/c/0/0/0/0").status_code == 200
    for key in ("response/c/0/0/9/0", "response/c/0", "displacement/c/0/0/0/0"):
        assert client.get(f"{greens}/{key}").status_code == 404, key


def test_sample_at_a_node_is_what_the_store_has_there(client, complete):
    stations = [
        {"name": "A", "x_km": x, "y_km": y} for x, y in tiny_store.NODES[3:] / 1e3
    ]
    body = {"stations": stations, "times": ["0 d"]}
    answer = client.post(f"/v1/campaigns/{complete['id']}/sample", json=body)
    assert answer.status_code == 200, answer.text
    expected = [tiny_store.response(source)[0, 3:] for source in range(10)]
    # weights of second-order triangles, rounded
    np.testing.assert_allclose(
        np.array(answer.json()["data"])[:, 0], expected, rtol=1e-12
    )


@pytest.mark.parametrize(
    "lost",
    ["until_yr", "mode_count", "node_x"],
)
def test_sample_of_a_store_that_lacks_something_names_it(
    client, complete, settings, lost
):
    """What another program wrote, signed, but without what every store has."""
    path = settings.store / "campaigns" / complete["id"] / "greens.zarr/zarr.json"
    root = json.loads(path.read_text())
    root["attributes"].pop(lost, None)
    root["consolidated_metadata"]["metadata"].pop(lost, None)
    path.write_text(json.dumps(integrity.signed(root)))
    body = {"stations": [{"name": "A", "x_km": 1.0, "y_km": 2.0}], "times": ["0 d"]}
    answer = client.post(f"/v1/campaigns/{complete['id']}/sample", json=body)
    assert answer.status_code == 503
    assert answer.headers[integrity.PROBLEM] == integrity.DAMAGED
    assert lost in answer.json()["detail"]
    assert "fsck" in answer.json()["detail"]
