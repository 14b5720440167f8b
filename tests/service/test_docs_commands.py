"""What the pages say to type is typed, against services that really answer."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest
import tiny_store
import tiny_worker

from afterslip_service.engine.access import Role

# one is enough: nothing here depends on it
pytestmark = pytest.mark.databases("sqlite")

ROOT = Path(__file__).parents[2]
CSV = "station,x_km,y_km,east,north,up\nA,0,0,1,1,1\n"
SIGMA = {"horizontal": 0.01, "vertical": 0.03}
# the command is the one of this environment
TOOLS = str(Path(sys.executable).parent)


def blocks(page, kind):
    """Return the texts of a page's blocks of a language, continued lines joined."""
    text = (ROOT / page).read_text()
    found = re.findall(rf"^```{kind}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [re.sub(r"\\\n\s*", "", one) for one in found]


def spec(name, ref):
    return tiny_worker.spec(
        name,
        datasets=[{"name": "gnss", "file": ref, "sigma": SIGMA}],
        inversions=[{"name": "slip", "datasets": ["gnss"], "smoothness": 1.0}],
    )


def typed(line, folder, **environment):
    """Run a line in a folder and return what it prints."""
    done = subprocess.run(
        ["bash", "-ec", line], cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}", **environment},
    )  # fmt: skip
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_a_campaign_goes_from_nothing_to_a_result_by_curl(client, tmp_path):
    (script,) = blocks("docs/api.md", "sh")
    (tmp_path / "offsets.csv").write_text(CSV)
    ref = f"sha256:{hashlib.sha256(CSV.encode()).hexdigest()}"
    (tmp_path / "campaign.json").write_text(json.dumps(spec("by-curl", ref)))
    first, *lines = script.replace("http://127.0.0.1:8000", client.server.url).split(
        "\n"
    )
    named = {"ID": "ID", "INVERSION": "INVERSION"}
    said = []
    for line in filter(None, lines):
        for word, value in named.items():
            line = re.sub(rf"\b{word}\b", value, line)
        if "/events" in line:
            # the stream goes on; its reader ends it
            # its data: an inversion's has a name, a group's of the same state has none
            end = r'"state": *"accepted".*"name": *"slip"'
            line = f"{line.partition('#')[0]} | grep -m 1 '{end}'"
        said.append(typed(f"{first}\n{line}", tmp_path))
        if line.partition("#")[0].strip().endswith("/campaigns"):
            named["ID"] = json.loads(said[-1])["id"]
        if "inversions?" in line:
            (found,) = json.loads(said[-1])["items"]
            named["INVERSION"] = found["id"]
    assert json.loads(said[0])["ref"] == ref
    assert json.loads(said[1])["sources"] > 0
    assert (tmp_path / "result.nc").read_bytes() == b"CDF tiny"


def test_xarray_opens_a_store_with_a_token(serve, new_token, wait_for):
    server = serve(auth=True)
    secret = new_token("ada", Role.SUBMITTER)[1]
    signed = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=server.url, headers=signed, timeout=20) as asked:
        made = asked.post("/v1/campaigns", json=tiny_worker.spec()).json()
        while asked.get(f"/v1/campaigns/{made['id']}").json()["state"] != "complete":
            time.sleep(0.05)
    (snippet,) = blocks("docs/api.md", "python")
    for word, value in (("http://host:8000", server.url), ("ID", made["id"]),
                        ("afs_...", secret)):  # fmt: skip
        assert word in snippet
        snippet = snippet.replace(word, value)
    names = {"xarray": __import__("xarray")}
    exec(compile(f"greens = {snippet.strip()}", "api.md", "exec"), names)
    expected = np.stack([tiny_store.response(source) for source in range(10)])
    np.testing.assert_array_equal(names["greens"].response.values, expected)


@contextmanager
def started(line, folder, **environment):
    """Run a line that does not end by itself; yield its process."""
    log = (folder / "output.txt").open("w")
    process = subprocess.Popen(
        ["bash", "-c", line], cwd=folder, stdout=log, stderr=log,
        start_new_session=True,
        env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}", **environment},
    )  # fmt: skip
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)
        log.close()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def placed(line, port, database):
    """Put what is here in the place of what the page has for the reader's machines."""
    for word, value in (
        ("postgresql://afterslip@db/afterslip", str(database)),
        ("--host 0.0.0.0", f"--host 127.0.0.1 --port {port} --dispatcher off"),
        ("afterslip.example.org:8000", f"localhost:{port}"),
    ):
        line = line.replace(word, value)
    return line


CERTIFICATE = (
    "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
    "-subj /CN=localhost -addext subjectAltName=DNS:localhost"
)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")
def test_authentication_is_switched_on_as_the_page_says(tmp_path):
    first, link = blocks("docs/security.md", "sh")
    port = free_port()
    here = {"HOME": str(tmp_path), "SSL_CERT_FILE": str(tmp_path / "cert.pem"),
            "AFTERSLIP_STORE": str(tmp_path / "store")}  # fmt: skip
    typed(CERTIFICATE, tmp_path)
    lines = [
        placed(line, port, tmp_path / "db.sqlite") for line in first.split("\n") if line
    ]
    setting, create, serve, *later = lines
    typed(f"{setting}\n{create}", tmp_path, **here)
    secret = (tmp_path / ".afterslip-token").read_text().strip()
    with started(f"{setting}\n{serve}", tmp_path, **here) as process:
        url = f"https://localhost:{port}"
        context = ssl.create_default_context(cafile=tmp_path / "cert.pem")
        signed = {"Authorization": f"Bearer {secret}"}
        with httpx.Client(
            base_url=url, verify=context, headers=signed, timeout=60
        ) as asked:
            wait_until_ready(asked, process, tmp_path)
            assert httpx.get(f"{url}/v1/campaigns", verify=context).status_code == 401
            made = asked.post("/v1/campaigns", json=tiny_worker.spec("tohoku-2011"))
            assert made.status_code == 201, made.text
            exports = [line for line in later if line.startswith("export ")]
            laptop, listed, revoke = [x for x in later if x not in exports]
            said = typed("\n".join([*exports, laptop]), tmp_path, **here)
            assert re.search(r"\bafs_\w+", said)
            rows = asked.get("/v1/tokens").json()["items"]
            (identity,) = [row["id"] for row in rows if row["name"] == "laptop"]
            assert identity in typed("\n".join([*exports, listed]), tmp_path, **here)
            typed(
                "\n".join([*exports, revoke.replace("ID", identity)]), tmp_path, **here
            )
            typed_link = typed("\n".join([*exports, link]), tmp_path, **here)
            shared = re.search(r"/#/shared/([\w-]+)/(afs_[\w-]+)", typed_link)
            assert shared
            assert shared[1] == made.json()["id"]
        reader = {"Authorization": f"Bearer {shared[2]}"}
        with httpx.Client(
            base_url=url, verify=context, headers=reader, timeout=60
        ) as asked:
            assert asked.get(f"/v1/campaigns/{shared[1]}").status_code == 200
            assert asked.get("/v1/campaigns").status_code == 403


def wait_until_ready(asked, process, folder):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, (folder / "output.txt").read_text()
        try:
            if asked.get("/healthz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError("the service never answered")
