"""A whole campaign whose every file lies in a bucket."""

import copy
import functools
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "workers"))

import buckets
import small_campaign

from afterslip import Client
from afterslip_service import embedded
from afterslip_service.placement.inprocess import InProcess
from afterslip_workers import entry

pytestmark = [pytest.mark.timeout(120)]


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv("AFTERSLIP_SPOOL", str(tmp_path / "spool"))
    with buckets.server(monkeypatch) as running:
        yield running
    entry.close_children()


def small():
    """Return a spec of two sources, 600 unknowns."""
    spec = copy.deepcopy(small_campaign.SPEC)
    spec["model"]["mesh"]["size"] = {"fault": 30, "far": 150}
    spec["sources"] |= {"along_strike": 2, "components": ["dip"]}
    spec["solver"] = {"time_tolerance": 1e-3}
    return spec


@pytest.mark.slow
def test_campaign_in_a_bucket_is_read_over_http(server, tmp_path):
    address = server.bucket()
    places = zip(
        small_campaign.NAMES, small_campaign.X_KM, small_campaign.Y_KM, strict=True
    )
    lines = [f"{name},{x},{y}" for name, x, y in places]
    (tmp_path / "stations.csv").write_text("\n".join(["station,x_km,y_km", *lines]))
    start = functools.partial(
        embedded.start,
        placement=lambda settings: InProcess(entry.execute, 1),
        store=address,
        tick=0.1,
    )
    with start(tmp_path / "service") as service, Client(service.url) as client:
        campaign = client.submit(small(), files_base=tmp_path).wait(timeout=90)
        greens = campaign.greens()
        times = ["0 d", "30 d", "10 yr"]
        stations = dict(
            zip(
                small_campaign.NAMES,
                zip(small_campaign.X_KM, small_campaign.Y_KM, strict=True),
                strict=True,
            )
        )
        sampled = campaign.sample(stations, times)
        np.testing.assert_allclose(greens["displacement"].values, sampled, atol=1e-7)
        assert float(greens["residual"].max()) <= 1e-8

        base = f"{service.url}/v1/campaigns/{campaign.id}/greens.zarr"
        key = "response/c/0/0/0/0"
        whole = httpx.get(f"{base}/{key}").content
        assert whole == entry.open_store(address).read(
            f"campaigns/{campaign.id}/greens.zarr/{key}"
        )
        for header, part in (
            ("bytes=8-15", whole[8:16]),
            (f"bytes={len(whole) - 4}-", whole[-4:]),
            ("bytes=-12", whole[-12:]),
        ):
            answer = httpx.get(f"{base}/{key}", headers={"Range": header})
            assert (answer.status_code, answer.content) == (206, part)
        beyond = httpx.get(f"{base}/{key}", headers={"Range": f"bytes={len(whole)}-"})
        assert beyond.status_code == 416
        assert httpx.head(f"{base}/{key}").headers["content-length"] == str(len(whole))
        assert httpx.get(f"{base}/response/c/9").status_code == 404
        assert httpx.get(f"{base}/../model.json").status_code == 404

    names = entry.open_store(address).names("attempts")
    assert names == [], "what was accepted is swept"
    log = (tmp_path / "service" / "service.log").read_text()
    assert buckets.SECRET not in log
    assert not (tmp_path / "service" / "store").exists()
