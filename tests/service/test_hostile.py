"""Bodies, files and specs that are made to break, fill or read the machine."""

from __future__ import annotations

import io
import json
import os
import time
import zlib

import h5py
import httpx
import numpy as np
import pytest
import tiny_worker

# one is enough: nothing here depends on it
pytestmark = pytest.mark.databases("sqlite")

SECRET = "a secret of the machine"


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret.csv"
    path.write_text(f"station,x_km,y_km\n{SECRET},0,0\n")
    return path


def upload(client, content):
    answer = client.post("/v1/files", content=content)
    assert answer.status_code == 201, answer.text
    return answer.json()["ref"]


def refused(answer, *statuses):
    """Return the text of a refusal that tells nothing of the machine."""
    assert answer.status_code in (statuses or (422,)), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert SECRET not in answer.text
    assert "Traceback" not in answer.text
    return answer.json()["detail"]


def raw(client, body, path="/v1/campaigns"):
    headers = {"Content-Type": "application/json"}
    return client.post(path, content=body, headers=headers)


NO_JSON = [
    (b"[" * 100_000 + b"]" * 100_000, "nested"),
    (b'{"a":' * 200 + b"1" + b"}" * 200, "nested deeper than 64"),
    (b'{"name": NaN}', "NaN"),
    (b'{"name": -Infinity}', "Infinity"),
    (b'{"name": "a", "name": "b"}', "twice"),
    (b'{"name": ' + b"9" * 100_000 + b"}", "digits"),
    (b'{"name": "a\\u0000b"}', "NUL"),
    (b'{"name": "\\ud800"}', "surrogate"),
    (b'{"name": "\xff"}', "UTF-8"),
    (b'{"name": ', "not JSON"),
    (b"!!python/object/apply:os.system ['id']", "not JSON"),
    (b"a: &a [x]\nb: [*a, *a]", "not JSON"),
]


def test_body_that_is_not_plain_json_is_refused(client):
    for body, word in NO_JSON:
        assert word in refused(raw(client, body), 400), body[:40]


def test_body_of_another_kind_is_refused(client):
    body = json.dumps(tiny_worker.spec())
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/yaml",
        "",
    ):
        answer = client.post(
            "/v1/campaigns", content=body, headers={"Content-Type": kind}
        )
        assert "application/json" in refused(answer, 415)


def test_address_with_a_nul_is_refused(client):
    for path in ("/v1/campaigns/a%00b", "/v1/campaigns?digest=a%00b"):
        assert "NUL" in refused(client.get(path), 400)


def named(client, ref):
    """Submit a campaign whose stations are a file."""
    return client.post("/v1/campaigns", json=tiny_worker.spec(stations={"file": ref}))


@pytest.mark.parametrize("served", [False, True])
def test_no_reference_leads_out_of_the_folder(serve, secret, tmp_path, served):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link.csv").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    (folder / "pipe").symlink_to("/dev/zero")
    server = serve(files=folder if served else None)
    with httpx.Client(base_url=server.url, timeout=20) as client:
        for ref in (
            str(secret),
            "../secret.csv",
            "up/secret.csv",
            "link.csv",
            "pipe",
            f"file://{secret}",
            "..\\secret.csv",
            "C:\\secret.csv",
            "~/secret.csv",
            "sha256:../../secret.csv",
            "sha256:" + "0" * 64 + "/../../secret.csv",
            "folder\0/secret.csv",
        ):
            refused(named(client, ref), 400, 422)


def test_pipe_in_the_folder_of_files_is_refused_and_not_waited_for(serve, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(folder / "pipe.csv")
    server = serve(files=folder)
    with httpx.Client(base_url=server.url, timeout=5) as client:
        assert "not a file" in refused(named(client, "pipe.csv"))
        body = {"name": "d", "file": "pipe.csv",
                "sigma": {"horizontal": 1, "vertical": 1}}  # fmt: skip
        assert "not a file" in refused(client.post("/v1/datasets", json=body))


KEYS = (
    "../model.json", "..%2f..%2f..%2fdb.sqlite", "%2e%2e/%2e%2e/db.sqlite",
     "zarr.json/../../x", "/etc/passwd", "//etc/passwd", "c/0/../../../x",
)  # fmt: skip


def test_no_key_of_a_store_leads_out_of_it(client, wait_for):
    made = client.post("/v1/campaigns", json=tiny_worker.spec()).json()
    wait_for(made["id"], "complete")
    # a client would tidy the path up before it sends it
    for key in KEYS:
        path = f"{made['links']['greens']}/{key}".encode()
        answer = client.get(httpx.URL(client.server.url, raw_path=path))
        assert answer.status_code in (404, 422), (key, answer.text[:200])


def hdf(write):
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        for name in ("lon", "lat"):
            file[name] = np.arange(3.0)
            file[name].make_scale(name)
        write(file)
    return content.getvalue()


def bomb(file):
    file.create_dataset(
        "depth", shape=(10**6, 10**6), chunks=(1000, 1000), dtype="f8", compression=9
    )


def external_link(file):
    file["depth"] = h5py.ExternalLink("/etc/passwd", "/depth")


def external_file(file):
    file.create_dataset(
        "depth", shape=(64,), dtype="u1", external=[("/etc/passwd", 0, 64)]
    )


def virtual(file):
    layout = h5py.VirtualLayout(shape=(3, 3), dtype="f8")
    layout[:] = h5py.VirtualSource("/tmp/other.h5", "depth", shape=(3, 3))
    file.create_virtual_dataset("depth", layout)


def rings(file):
    group = file.create_group("a")
    for _ in range(40):
        group = group.create_group("b")


HDF = [
    (bomb, "8,000,000,000,000 bytes"), (external_link, "another file"),
    (external_file, "outside"), (virtual, "other files"), (rings, "deeper"),
]  # fmt: skip


def test_hdf5_that_is_more_than_it_looks_is_refused_unread(client):
    for write, word in HDF:
        ref = upload(client, hdf(write))
        meshed, layered = tiny_worker.spec(), tiny_worker.spec()
        meshed["model"]["mesh"] = {"file": ref}
        layered["model"]["bodies"] = [
            {"name": "slab", "below": ref, "thickness": 60, "vp": 7.8, "vs": 4.5,
             "rho": 3300}
        ]  # fmt: skip
        for spec in (meshed, layered):
            began = time.monotonic()
            assert word in refused(client.post("/v1/campaigns", json=spec))
            assert time.monotonic() - began < 5


def test_xml_definitions_in_a_mesh_are_refused(client):
    laughs = b"".join(
        b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 10)
    )
    content = (
        b'<?xml version="1.0"?><!DOCTYPE VTKFile [<!ENTITY l0 "ha">' + laughs + b"]>"
        b'<VTKFile type="UnstructuredGrid">&l9;</VTKFile>'
    )
    spec = tiny_worker.spec()
    spec["model"]["mesh"] = {"file": upload(client, content)}
    assert "XML definitions" in refused(client.post("/v1/campaigns", json=spec))


def test_deeply_nested_outline_is_refused(client):
    spec = tiny_worker.spec()
    outline = b'{"type":"Feature","geometry":' * 5000
    ref = upload(client, outline)
    surface = upload(client, b"x_km,y_km,depth_km\n0,0,1\n1,0,1\n0,1,2\n1,1,2\n")
    name = spec["model"]["faults"][0]["name"]
    spec["model"]["faults"] = [
        {"name": name, "surface": {"file": surface, "outline": ref}}
    ]
    refused(client.post("/v1/campaigns", json=spec))


def test_files_larger_than_the_limit_are_refused_unread(serve):
    server = serve(max_table=1000, max_mesh=2000)
    with httpx.Client(base_url=server.url, timeout=20) as client:
        ref = upload(client, b"station,x_km,y_km\n" + b"A,0,0\n" * 300)
        detail = refused(named(client, ref))
        assert "1,818 bytes" in detail
        assert "1,000" in detail
        body = {"name": "d", "file": ref, "sigma": {"horizontal": 1, "vertical": 1}}
        assert "1,000" in refused(client.post("/v1/datasets", json=body))
        spec = tiny_worker.spec()
        spec["model"]["mesh"] = {"file": upload(client, b"x" * 2001)}
        assert "2,000" in refused(client.post("/v1/campaigns", json=spec))


def test_huge_meshes_and_campaigns_are_refused_with_the_numbers(serve):
    server = serve(max_elements=10**6, max_sources=100)
    with httpx.Client(base_url=server.url, timeout=20) as client:
        spec = tiny_worker.spec()
        spec["model"]["mesh"]["size"] = {"fault": 0.001, "far": 0.001}
        detail = refused(client.post("/v1/campaigns", json=spec))
        assert "elements or more, and 1,000,000" in detail
        assert "mesh.size.far or the domain coarser" in detail
        spec = tiny_worker.spec()
        spec["sources"] |= {"along_strike": 60, "down_dip": 2}
        detail = refused(client.post("/v1/campaigns", json=spec))
        assert "unit sources, and 100" in detail


def test_compressed_body_is_not_unpacked(client):
    packed = zlib.compress(b" " * 10_000_000)
    headers = {"Content-Type": "application/json", "Content-Encoding": "deflate"}
    answer = client.post("/v1/campaigns", content=packed, headers=headers)
    refused(answer, 400)
