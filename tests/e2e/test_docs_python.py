"""Python and shell of the pages, with a small campaign by the names that they use."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from afterslip import Client

ROOT = Path(__file__).parents[2]
# the pages' campaigns take minutes: this one has their names, stations and times
SPEC = """
name: tohoku-2011
model:
  frame: {kind: geographic, lon0: 142.5, lat0: 38.2}
  domain: {x: [-150, 150], y: [-150, 150], depth: 120}
  layers:
    - {name: crust, bottom: 30, vp: 6.0, vs: 3.5, rho: 2700}
    - {name: mantle, bottom: 120, vp: 8.0, vs: 4.5, rho: 3300,
       rheology: {maxwell: {viscosity: 1.0e18}}}
  faults:
    - name: main
      plane: {x: 0, y: 0, top: 3, strike: 20, dip: 30, length: 50, width: 30}
  mesh: {size: {fault: 15, far: 60}}
sources: {fault: main, along_strike: 2, down_dip: 1}
times: {until: 1 yr, output: [0 d, 1 yr]}
datasets: [{name: gnss, file: offsets.csv, sigma: {horizontal: 0.003, vertical: 0.01}}]
inversions:
  - {name: coseismic, datasets: [gnss], smoothness: 1.0}
"""
OFFSETS = """station,lon,lat,east,north,up
MYGI,142.92,38.08,0.02,0.01,0.01
J550,141.90,38.30,-0.08,0.04,0.20
C,142.55,38.50,-0.03,0.05,-0.02
D,142.10,38.40,0.03,-0.01,0.00
E,142.70,38.00,-0.05,0.02,0.12
F,143.00,38.45,-0.04,0.02,-0.05
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def blocks(page, kind="python"):
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    example = folder / "examples" / "tohoku2011"
    example.mkdir(parents=True)
    for place, name in ((folder, "tohoku.yaml"), (folder, "campaign.yaml"),
                        (example, "campaign.yaml")):  # fmt: skip
        (place / name).write_text(SPEC.replace("tohoku-2011", "tohoku"))
        (place / "offsets.csv").write_text(OFFSETS)
    # data that are sent to a campaign bring their own errors
    head, *lines = OFFSETS.replace("0.20", "0.21").splitlines()
    rows = [f"{head},sigma_e,sigma_n,sigma_u", *(f"{x},.01,.01,.03" for x in lines)]
    (folder / "new_offsets.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    """A service in which the first page's snippets already find their campaign."""
    with Client.embedded(folder / "service", workers=1) as client:
        client.submit(folder / "tohoku.yaml").wait(timeout=500)
        yield client.url


def run(snippet, names):
    exec(compile(snippet, "page", "exec"), names)


def test_snippets_of_the_python_page_run_one_after_the_other(
    folder, server, monkeypatch
):
    monkeypatch.chdir(folder)
    first, own_service, motion, asynchronous, figures, interactive, exports = blocks(
        "docs/python.md"
    )
    here = ("http://127.0.0.1:8000", server)
    names = {}
    run(first.replace(*here), names)
    assert names["g"].response.dims[0] == "source"
    assert len(names["r"].magnitude_interval) == 2
    run(motion, names)
    motion_of = names["motion"]
    assert motion_of.shape == (2, 1, 3)
    assert np.abs(motion_of).max() > 0
    # the page says of itself what it is: a file that is run
    run(own_service, {**names, "__name__": "imported"})
    run(asynchronous.replace(*here), names)
    found = names["asyncio"].run(names["magnitudes"](["tohoku.yaml"]))
    assert found == [pytest.approx(names["c"].inversions()[0].magnitude)]
    run(figures, names)
    run(exports, names)
    made = ["slip.png", "result/report.html", "slip.pdf", "series.png", "slip.vtu",
            "slip.fsp"]  # fmt: skip
    # of an extra of its own, as .ci/extras.py runs its tests
    if importlib.util.find_spec("plotly"):
        shutil.copytree(
            names["c"].fetch("fetched") / "greens.zarr", "result/greens.zarr"
        )
        run(interactive, names)
        made += ["greens.html", "slip.html", "fit.html"]
    assert [name for name in made if not (folder / name).stat().st_size] == []


def test_the_readme_s_snippet_opens_green_s_functions(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (snippet,) = blocks("README.md")
    names: dict[str, Any] = {"__name__": "__main__"}
    run(snippet, names)
    assert names["greens"].sizes["source"] == 4


def test_a_server_elsewhere_is_used_as_the_page_says(folder, server):
    (block,) = (t for t in blocks("docs/start.md", "text") if "ssh -N" in t)
    serve, tunnel, *verbs = block.strip().split("\n")
    # the service is the one of this test, and no tunnel leads to it
    assert serve.startswith("afterslip serve --store ")
    assert tunnel.startswith("ssh -N -L 8000:127.0.0.1:8000 ")
    place = folder / "elsewhere"
    place.mkdir()
    (place / "campaign.yaml").write_text(SPEC)
    for name in ("offsets.csv", "new_offsets.csv"):
        (place / name).write_bytes((folder / name).read_bytes())
    for verb in verbs:
        line = verb.replace("afterslip", f'"{sys.executable}" -m afterslip', 1)
        done = subprocess.run(
            ["bash", "-ec", line], cwd=place, capture_output=True, text=True,
            env={**os.environ, "AFTERSLIP_SERVER": server}, timeout=500,
        )  # fmt: skip
        assert done.returncode == 0, (verb, done.stderr)
    assert (place / "new" / "result.nc").stat().st_size > 10_000
    assert (place / "result" / "greens.zarr").is_dir()


def test_one_given_slip_is_computed_as_the_readme_says(tmp_path):
    lines = "\n".join(blocks("README.md", "sh")).split("\n")
    (line,) = (line for line in lines if "forward examples/planar" in line)
    command = line.replace(".venv/bin/afterslip", f'"{sys.executable}" -m afterslip')
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    subprocess.run(["bash", "-ec", command], cwd=tmp_path, check=True, timeout=600)
    assert (tmp_path / "planar.nc").stat().st_size > 10_000
