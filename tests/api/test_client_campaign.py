"""A campaign through the client, against a server that keeps to the contract."""

import hashlib
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import xarray as xr
from example_result import example_result

from afterslip import ApiError, Campaign, CampaignError, Client, SpecError
from afterslip.client.download import chunk_keys

SPEC = """
name: small
model:
  frame: {kind: local}
  domain: {x: [-100, 100], y: [-100, 100], depth: 80}
  layers:
    - {name: crust, bottom: 30, vp: 6.0, vs: 3.5, rho: 2700}
    - {name: mantle, bottom: 80, vp: 8.0, vs: 4.5, rho: 3300,
       rheology: {maxwell: {viscosity: 1.0e19}}}
  faults:
    - name: main
      plane: {x: 0, y: 0, top: 2, strike: 0, dip: 30, length: 40, width: 20}
  mesh: {size: {fault: 8, far: 40}}
sources: {fault: main, along_strike: 2, down_dip: 2}
times: {until: 1 yr, output: [0 d, 1 yr]}
stations: {file: stations.csv}
datasets: [{name: gnss, file: data/offsets.csv, epoch: 0 d}]
"""


class Server:
    """Keeps to the JSON shapes of the service; groups finish one per look."""

    def __init__(self):
        self.files = {}
        self.posts = []
        self.campaigns = []
        self.results = {}
        self.inversions = {}
        self.greens = None
        self.fail = False

    def __call__(self, request):
        path, method = request.url.path, request.method
        routes: list[tuple[str, str, Callable[..., Any]]] = [
            ("POST", r"/v1/files", self.upload),
            ("POST", r"/v1/campaigns", self.create),
            ("GET", r"/v1/campaigns", self.list),
            ("GET", r"/v1/campaigns/(\w+)", self.show),
            ("POST", r"/v1/campaigns/(\w+)/(cancel|retry|pause|resume)", self.act),
            ("GET", r"/v1/campaigns/(\w+)/groups", self.groups),
            ("GET", r"/v1/campaigns/(\w+)/greens.zarr/(.+)", self.chunk),
            ("POST", r"/v1/campaigns/(\w+)/sample", self.sample),
            ("GET", r"/v1/inversions", self.list_inversions),
            ("POST", r"/v1/inversions", self.invert),
            ("GET", r"/v1/inversions/(\w+)", self.inversion),
            ("GET", r"/v1/inversions/(\w+)/(\w+)", self.part),
            ("GET", r"/v1/inversions/(\w+)/plots/(\w+).png", self.part),
        ]
        for wanted, pattern, route in routes:
            match = re.fullmatch(pattern, path)
            if match and wanted == method:
                if method == "POST":
                    self.posts.append(path)
                return route(request, *match.groups())
        return self.problem(404, f"there is nothing at {path}")

    def problem(self, status, detail):
        return httpx.Response(status, json={"title": "no", "detail": detail})

    def upload(self, request):
        ref = "sha256:" + hashlib.sha256(request.content).hexdigest()
        self.files[ref] = request.content
        return httpx.Response(201, json={"ref": ref, "size": len(request.content)})

    def create(self, request):
        spec = json.loads(request.content)
        data = {
            "id": f"c{len(self.campaigns)}", "name": spec["name"], "spec": spec,
            "state": "waiting", "n_sources": 8, "inversions": [], "error": None,
            "progress": {"total": 2, "accepted": 0},
        }  # fmt: skip
        self.campaigns.append(data)
        return httpx.Response(201, json=data)

    def find(self, which):
        return next((c for c in self.campaigns if c["id"] == which), None)

    def list(self, request):
        # one item a page, so that paging is exercised
        at = int(request.url.params.get("cursor") or 0)
        items = self.campaigns[at : at + 1]
        after = str(at + 1) if at + 1 < len(self.campaigns) else None
        return httpx.Response(200, json={"items": items, "next": after})

    def show(self, _request, which):
        found = self.find(which)
        if found is None:
            return self.problem(404, f"no campaign {which}")
        self.step(found)
        return httpx.Response(200, json=found)

    def step(self, campaign):
        counts = campaign["progress"]
        if campaign["state"] in ("waiting", "running"):
            campaign["state"] = "running"
            counts["accepted"] += 1
        if counts["accepted"] >= counts["total"] and campaign["state"] == "running":
            campaign["state"] = "failed" if self.fail else "complete"
            if self.fail:
                campaign["error"] = {"class": "mesh", "message": "element 7 inverted"}

    def act(self, _request, which, verb):
        campaign = self.find(which)
        campaign["state"] = {"cancel": "cancelled", "pause": "paused"}.get(
            verb, "running"
        )
        return httpx.Response(200, json=campaign)

    def groups(self, _request, _which):
        items = [{"index": 0, "state": "accepted", "sources": [0, 1, 2, 3]}]
        return httpx.Response(200, json={"items": items, "next": None})

    def chunk(self, _request, _which, key):
        path = self.greens / key
        if not path.is_file():
            return self.problem(404, f"no {key}")
        return httpx.Response(200, content=path.read_bytes())

    def sample(self, request, _which):
        body = json.loads(request.content)
        east = np.array([s.get("x_km", s.get("lon")) for s in body["stations"]])
        shape = (8, len(body["times"]), east.size, 3)
        data = np.broadcast_to(east[None, None, :, None], shape)
        answer = {
            "dims": ["source", "time", "station", "component"], "shape": shape,
            "time_yr": list(range(shape[1])), "data": data.tolist(),
            "stations": [s["name"] for s in body["stations"]],
        }  # fmt: skip
        return httpx.Response(200, json=answer)

    def invert(self, request):
        data = {"id": f"i{len(self.inversions)}", "state": "queued", "summary": None,
                "error": None, "name": "x"}  # fmt: skip
        data |= json.loads(request.content)
        self.inversions[data["id"]] = data
        return httpx.Response(201, json=data)

    def list_inversions(self, _request):
        items = list(self.inversions.values())
        return httpx.Response(200, json={"items": items, "next": None})

    def inversion(self, _request, which):
        self.inversions[which]["state"] = "failed" if self.fail else "accepted"
        return httpx.Response(200, json=self.inversions[which])

    def part(self, _request, _which, name):
        if name == "plots":
            return httpx.Response(200, json={"items": [{"name": "slip_map"}]})
        return httpx.Response(200, content=self.results.get(name, b"png"))


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def client(server, monkeypatch):
    monkeypatch.setattr("afterslip.client.handle.POLL_S", (0.0, 0.0))
    with Client("http://server", transport=httpx.MockTransport(server)) as client:
        yield client


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "stations.csv").write_text("station,x_km,y_km\nA,1,2\n")
    (tmp_path / "data" / "offsets.csv").write_text("station,x_km,y_km,east\n")
    (tmp_path / "campaign.yaml").write_text(SPEC)
    return tmp_path / "campaign.yaml"


def test_files_are_sent_and_named_by_their_content(client, server, spec):
    campaign = client.submit(Campaign.from_yaml(spec))
    sent = campaign.data["spec"]
    refs = [sent["stations"]["file"], sent["datasets"][0]["file"]]
    assert [server.files[ref] for ref in refs] == [
        (spec.parent / "stations.csv").read_bytes(),
        (spec.parent / "data" / "offsets.csv").read_bytes(),
    ]


def test_nothing_is_sent_when_a_file_is_missing(client, server, spec):
    (spec.parent / "stations.csv").unlink()
    with pytest.raises(SpecError, match=r"stations\.file = stations\.csv"):
        client.submit(spec)
    assert server.posts == []


def test_files_already_uploaded_need_no_folder(client, server, spec):
    first = client.submit(spec)
    count = len(server.files)
    client.submit(first.data["spec"])
    assert len(server.files) == count


def test_waiting_ends_with_the_campaign(client, spec):
    campaign = client.submit(spec)
    assert campaign.wait(timeout=10).state == "complete"
    assert campaign.progress["accepted"] == 2


def test_a_failed_campaign_says_why(client, server, spec):
    server.fail = True
    with pytest.raises(CampaignError, match="element 7 inverted"):
        client.submit(spec).wait()


def test_waiting_gives_up_in_time(client, spec):
    campaign = client.submit(spec).pause()
    with pytest.raises(TimeoutError, match="small"):
        campaign.wait(timeout=0.05)


def test_operator_verbs_reach_the_server(client, server, spec):
    campaign = client.submit(spec)
    states = [getattr(campaign, v)().state for v in ("pause", "resume", "cancel")]
    assert states == ["paused", "running", "cancelled"]
    assert campaign.retry().state == "running"


def test_campaigns_are_found_by_id_beginning_or_name(client, spec):
    for _ in range(2):
        client.submit(spec)
    assert [c.id for c in client.campaigns()] == ["c0", "c1"]
    assert client.campaign("c1").id == "c1"
    with pytest.raises(
        ApiError, match=r"campaign = small: is the name of several: c0 \(.*give the id"
    ) as ended:
        client.campaign("small")
    assert ended.value.exit_code == 2
    with pytest.raises(ApiError, match="no campaign zzz"):
        client.campaign("zzz")


def test_sampling_in_parts_gives_the_same_as_at_once(client, spec):
    campaign = client.submit(spec)
    stations = {f"S{i}": (float(i), 0.0) for i in range(7)}
    whole = campaign.sample(stations, ["0 d", "1 yr"])
    parts = campaign.sample(stations, ["0 d", "1 yr"], most=150)
    assert whole.dims == ("source", "time", "station", "component")
    xr.testing.assert_identical(whole, parts)
    assert whole.sel(station="S5", component="east").values[0, 0] == 5.0


def test_sampling_reads_stations_from_csv(client, spec):
    campaign = client.submit(spec)
    found = campaign.sample(spec.parent / "stations.csv", ["0 d"])
    assert found["station"].values.tolist() == ["A"]


def test_a_single_time_is_no_list_of_letters(client, spec):
    campaign = client.submit(spec)
    one = campaign.sample({"A": (1.0, 2.0)}, "30 d")
    xr.testing.assert_identical(one, campaign.sample({"A": (1.0, 2.0)}, ["30 d"]))


@pytest.mark.parametrize(
    ("stations", "times", "message"),
    [
        ({"A": (1, 2)}, [30.0], "has no unit"),
        ({"A": "north"}, ["0 d"], "is not a pair"),
        ([{"name": "A", "lon": 1}], ["0 d"], "is not a station"),
        ([], ["0 d"], "are none"),
        ("missing.csv", ["0 d"], "file not found"),
    ],
)
def test_bad_samples_are_refused_before_they_are_sent(
    client, server, spec, stations, times, message
):
    campaign = client.submit(spec)
    server.posts.clear()
    with pytest.raises(SpecError, match=message):
        campaign.sample(stations, times)
    assert server.posts == []


def netcdf(result):
    with tempfile.TemporaryDirectory() as folder:
        result.to_netcdf(Path(folder) / "r.nc", engine="h5netcdf")
        return (Path(folder) / "r.nc").read_bytes()


def test_an_inversion_gives_numbers_arrays_and_a_folder(client, server, spec, tmp_path):
    expected = example_result()
    server.results["result"] = netcdf(expected)
    inversion = client.submit(spec).invert(["gnss"], sign={"dip": "positive"})
    assert inversion.state == "accepted"
    assert inversion.data["datasets"] == ["gnss"]
    assert inversion.magnitude == pytest.approx(expected.attrs["magnitude"])
    assert inversion.moment == pytest.approx(expected.attrs["moment"])
    np.testing.assert_array_equal(inversion.slip, expected["slip"])
    np.testing.assert_array_equal(inversion.predicted, expected["predicted"])
    assert {"slip_component", "along", "down", "x"} <= set(inversion.slip.coords)


def test_an_inversion_draws_its_slip(client, server, spec, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    server.results["result"] = netcdf(example_result())
    inversion = client.submit(spec).invert(["gnss"], sign={"dip": "positive"})
    inversion.plot_slip(tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_saving_a_result_copies_what_the_server_holds(client, server, spec, tmp_path):
    server.results |= {"result": b"nc", "report": b"<html>", "slip": b"lon"}
    server.results["geojson"] = b"{}"
    inversion = client.submit(spec).invert("gnss")
    (tmp_path / "result.nc").write_bytes(b"an earlier one")
    folder = inversion.save(tmp_path)
    assert (folder / "result.nc").read_bytes() == b"nc"
    assert (folder / "report.html").read_bytes() == b"<html>"
    assert (folder / "slip.csv").read_bytes() == b"lon"
    assert (folder / "slip.geojson").read_bytes() == b"{}"
    assert (folder / "slip_map.png").read_bytes() == b"png"


def test_a_failed_inversion_says_why(client, server, spec):
    campaign = client.submit(spec)
    server.fail = True
    with pytest.raises(CampaignError, match="inversion inversion failed"):
        campaign.invert("gnss")


def small_store(folder):
    data = xr.Dataset(
        {
            "response": (("source", "node"), np.arange(20.0).reshape(5, 4)),
            "empty": (("source",), np.full(5, np.nan)),
            "whole": ((), 3.0),
        }
    )
    encoding = {"response": {"chunks": (2, 4)}, "empty": {"chunks": (2,)}}
    data.to_zarr(folder, zarr_format=3, consolidated=True, encoding=encoding)
    # chunks of fill values are not stored, and must not be missed
    assert not (folder / "empty" / "c").exists()
    return data


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_fetch_copies_the_store_and_results_and_is_repeatable(
    client, server, spec, tmp_path
):
    server.greens = tmp_path / "source.zarr"
    expected = small_store(server.greens)
    server.results |= {"result": b"nc", "report": b"<html>"}
    server.results |= {"slip": b"lon,lat", "fit": b"station", "geojson": b"{}"}
    campaign = client.submit(spec)
    campaign.invert("gnss")
    target = campaign.fetch(tmp_path / "copy")
    xr.testing.assert_identical(xr.open_zarr(target / "greens.zarr").load(), expected)
    (folder,) = (target / "inversions").iterdir()
    assert {p.name for p in folder.iterdir()} == {
        "result.nc", "report.html", "slip.csv", "data_fit.csv", "slip_map.png",
        "slip.geojson",
    }  # fmt: skip
    shutil_time = (target / "greens.zarr/response/c/0/0").stat().st_mtime_ns
    campaign.fetch(target)
    assert (target / "greens.zarr/response/c/0/0").stat().st_mtime_ns == shutil_time


def test_chunk_keys_follow_the_store_s_grid():
    node = {
        "shape": [5, 3],
        "chunk_grid": {"configuration": {"chunk_shape": [4, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    }
    assert list(chunk_keys(node)) == ["c/0/0", "c/1/0"]
    scalar = node | {
        "shape": [],
        "chunk_grid": {"configuration": {"chunk_shape": []}},
    }
    assert list(chunk_keys(scalar)) == ["c"]


def test_an_empty_file_is_named_before_anything_is_sent(client, server, tmp_path):
    (tmp_path / "offsets.csv").touch()
    with pytest.raises(SpecError, match=r"offsets\.csv: is an empty file"):
        client.add_dataset("gnss", tmp_path / "offsets.csv")
