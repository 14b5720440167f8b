"""Whatever happens to a file of the store, no path gives a wrong number or a gap."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import pytest
import xarray as xr

from afterslip_common.terms import YEAR

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "workers"))
from damager import Damager
from small_campaign import NAMES, SPEC, X_KM, Y_KM, observations

from afterslip.archive import GreensStore, open_greens
from afterslip.client import Client
from afterslip.client.errors import ApiError
from afterslip.client.transport import Transport
from afterslip.errors import ArchiveError
from afterslip.exports import write_surface
from afterslip.integrity import ROOT, is_document
from afterslip.spec import parse_campaign
from afterslip.spec.files import StoredFiles
from afterslip.spec.inputs import read_dataset
from afterslip_service.main import create_app
from afterslip_service.placement.inprocess import InProcess
from afterslip_service.server import Server
from afterslip_service.settings import Settings
from afterslip_workers import entry
from afterslip_workers.inverting import predict
from afterslip_workers.store import paths, reading

pytestmark = pytest.mark.timeout(600)

SEED = 20110311


class Served:
    """A service on loopback, from a thread."""

    def __init__(self, settings, placement):
        self.server = Server(create_app(settings, placement), "127.0.0.1", 0)
        self.thread = threading.Thread(target=self.server.serve_here)
        self.thread.start()
        end = time.monotonic() + 60
        while not self.server.started:
            assert self.thread.is_alive()
            assert time.monotonic() < end
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self.server.port}"

    def stop(self):
        self.server.should_exit = True
        self.thread.join(30)


def write_spec(folder, name, **changes):
    folder.mkdir()
    lines = [f"{n},{x},{y}\n" for n, x, y in zip(NAMES, X_KM, Y_KM, strict=True)]
    (folder / "stations.csv").write_text("station,x_km,y_km\n" + "".join(lines))
    rng = np.random.default_rng(3)
    (folder / "obs.csv").write_text(observations(rng.normal(size=(len(NAMES), 3))))
    return {
        **SPEC,
        "name": name,
        "sources": {**SPEC["sources"], "along_strike": 5},
        "datasets": [{"name": "gnss", "file": "obs.csv"}],
        **changes,
    }


@dataclass
class Store:
    """A real store of two campaigns, every byte of which is known.

    Attributes
    ----------
    files : content of all files of the first campaign, by path below the store.
    others : of the second's.
    """

    root: Path
    url: str
    campaign: str
    other: str
    inversion: str
    spec: dict
    files: dict[str, bytes] = field(default_factory=dict)
    others: dict[str, bytes] = field(default_factory=dict)

    def restore(self, keys):
        for key in keys:
            path = self.root / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.files[key])

    @property
    def greens(self):
        return self.root / paths.greens(self.campaign)


def contents(root, campaign):
    folder = root / paths.campaign(campaign)
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and ("greens.zarr" in path.parts or "inversion" in str(path.parent) + path.name)
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage")
    root = folder / "store"
    entry.prepare(root)
    # who damages files here must not have them computed again meanwhile
    settings = Settings(
        database=str(folder / "db.sqlite"), store=root, tick=0.02, scrub_rate=0
    )
    served = Served(settings, lambda _: InProcess(entry.execute, 1))
    with Client(served.url) as client:
        inverted = [{"name": "co", "datasets": ["gnss"], "folds": 2}]
        # the second has the sources of the first: nothing is solved for it
        output = {"times": {"until": "10 yr", "output": ["0 d", "60 d", "9 yr"]}}
        made = []
        for name, changes in (("one", {"inversions": inverted}), ("two", output)):
            spec = write_spec(folder / name, name, **changes)
            campaign = client.submit(spec, folder / name)
            made.append(campaign.wait(timeout=280, inversions=True))
        spec = made[0].refresh().data["spec"]
        (inversion,) = made[0].inversions()
        ids = [campaign.id for campaign in made]
    served.stop()
    entry.close_children()
    # without a dispatcher: nothing repairs what is damaged here
    served = Served(settings, None)
    first, second = ids
    found = Store(root, served.url, first, second, inversion.id, spec)
    found.files, found.others = contents(root, ids[0]), contents(root, ids[1])
    yield found
    served.stop()


def fingerprint(*values):
    """Hash arrays and texts, bit for bit."""
    total = hashlib.sha256()
    for value in values:
        found = np.asarray(value)
        total.update(f"{found.shape}{found.dtype}".encode())
        plain = found.dtype.kind in "OUT"
        total.update(repr(found.tolist()).encode() if plain else found.tobytes())
    return total.hexdigest()


def of_dataset(data):
    attributes = json.dumps(data.attrs, sort_keys=True)
    names = sorted(map(str, data.variables))
    arrays = [data[name].values for name in names]
    return fingerprint(names, attributes, *arrays)


class Readers:
    """Every path by which stored numbers leave the store."""

    def __init__(self, store, folder):
        self.store, self.folder = store, folder
        self.http = httpx.Client(base_url=store.url, timeout=30)
        self.transport = Transport(store.url, tries=1)
        self.client = Client(store.url)
        self.campaign = self.client.campaign(store.campaign)
        self.backend = entry.open_store(store.root)
        spec = parse_campaign(store.spec)
        files = StoredFiles(store.root)
        self.rows = read_dataset(spec.datasets[0], spec.model, spec.end, files)
        name = f"{paths.inversion(store.campaign, store.inversion)}/result.nc"
        self.result = xr.load_dataset(io.BytesIO(store.files[name]))

    def close(self):
        self.http.close()
        self.transport.close()
        self.client.close()

    def local(self):
        with open_greens(self.store.greens) as data:
            return of_dataset(data)

    def evaluated(self):
        greens = GreensStore(self.store.greens)
        return fingerprint(greens.evaluate([0.0, YEAR, 10 * YEAR]).values)

    def sampled(self):
        where = X_KM * 1e3, Y_KM * 1e3, [0.0, YEAR]
        return fingerprint(entry.sample(self.store.root, self.store.campaign, *where))

    def design(self):
        greens = GreensStore(reading.greens(self.backend, self.store.campaign))
        return fingerprint(predict.design_matrix(greens, self.rows))

    def exported(self):
        path = self.folder / "ground.vtu"
        write_surface(self.result, self.store.greens, [YEAR], path)
        return fingerprint(path.read_text())

    def posted(self):
        stations = [{"name": "A", "x_km": 3.0, "y_km": 4.0}]
        body = {"stations": stations, "times": ["0 d", "1 yr"]}
        path = f"/v1/campaigns/{self.store.campaign}/sample"
        return fingerprint(json.dumps(self.transport.post(path, body)))

    def over_http(self):
        url = f"{self.store.url}/v1/campaigns/{self.store.campaign}/greens.zarr"
        with open_greens(url) as data:
            return of_dataset(data)

    def fetched(self):
        target = self.folder / "copy"
        shutil.rmtree(target, ignore_errors=True)
        self.campaign._transport = self.transport
        self.campaign.fetch(target)
        files = [path for path in sorted(target.rglob("*")) if path.is_file()]
        others = [path for path in files if path.name != "campaign.json"]
        return fingerprint(*(_plain(path.name, path.read_bytes()) for path in others))

    def paths(self, requests):
        """Return readers by name; those with ``requests`` make dozens of them."""
        found = {
            "open_greens": self.local,
            "GreensStore": self.evaluated,
            "sample": self.sampled,
            "design matrix": self.design,
            "export": self.exported,
            "POST sample": self.posted,
        }
        if requests:
            found |= {"open_greens over HTTP": self.over_http, "fetch": self.fetched}
        return found

    def url_of(self, key):
        """Address of a file; None: it is not served."""
        root = paths.greens(self.store.campaign)
        if key.startswith(root):
            return f"/v1/campaigns/{self.store.campaign}{key[len(root) - 12 :]}"
        here = f"/v1/inversions/{self.store.inversion}"
        known = {
            "result.nc": "result",
            "slip.csv": "slip",
            "data_fit.csv": "fit",
            "slip.geojson": "geojson",
            "report.html": "report",
        }
        name = key.rpartition("/")[2]
        if name.endswith(".png"):
            return f"{here}/plots/{name}"
        return f"{here}/{known[name]}" if name in known else None

    def wrong_answers(self, keys):
        """Yield what a file's GET gave that is neither its content nor an error."""
        for key in keys:
            url = self.url_of(key)
            if url is None:
                continue
            answer = self.http.get(url)
            explained = answer.headers.get("content-type") == "application/problem+json"
            if answer.status_code == 503 and explained and answer.json()["detail"]:
                yield key, True
            elif answer.status_code != 200 or _plain(key, answer.content) != _plain(
                key, self.store.files[key]
            ):
                yield f"{key} ({answer.status_code})", False


def _plain(name, content):
    """Return a file's content; of a description what it says, not its blanks."""
    described = name.endswith(ROOT) or is_document(name)
    return json.dumps(json.loads(content)) if described else content.hex()


def run(store, folder, count, seed, often):
    """Harm the store, read it by every path, restore it; count the outcomes.

    Parameters
    ----------
    often : every which time the whole store is read through the server as well; the
        files that were harmed are asked for each time.
    """
    readers, damager = Readers(store, folder), Damager(store, seed)
    expected = {name: read() for name, read in readers.paths(True).items()}
    assert not list(readers.wrong_answers(store.files))
    outcomes, silent = Counter(), []
    for number in range(count):
        what, keys = damager.harm()
        noticed = 0
        for name, read in readers.paths(number % often == 0).items():
            try:
                found = read()
            except ArchiveError:
                noticed += 1
                continue
            except ApiError as error:
                if error.status != 503:
                    silent.append((what, name, str(error)))
                noticed += 1
                continue
            if found != expected[name]:
                silent.append((what, name, ""))
        for key, refused in readers.wrong_answers([*keys, *_beside(store, keys)]):
            noticed += refused
            if not refused:
                silent.append((what, f"GET {key}", ""))
        outcomes["noticed" if noticed else "equal"] += 1
        store.restore(keys)
    readers.close()
    sys.stderr.write(f"{count} damages, seed {seed}: {dict(outcomes)}, {silent=}\n")
    assert not silent, silent
    return outcomes


def _beside(store, keys):
    """Some files that a harmed description may speak of."""
    described = any(key.endswith(".json") for key in keys)
    return list(store.files)[:: 1 + len(store.files) // 8] if described else []


def test_a_plot_that_was_deleted_is_an_error_and_not_left_out(store, tmp_path):
    readers = Readers(store, tmp_path)
    for key in [key for key in store.files if key.endswith(".png")]:
        (store.root / key).unlink()
        with pytest.raises((ApiError, ArchiveError), match=key.rpartition("/")[2]):
            readers.fetched()
        store.restore([key])
    readers.fetched()
    readers.close()


def test_no_damage_is_silent(store, tmp_path):
    outcomes = run(store, tmp_path, 30, SEED, often=10)
    assert outcomes["noticed"] > 20, outcomes


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_damage_of_a_thousand_is_silent(store, tmp_path):
    count = int(os.environ.get("AFTERSLIP_DAMAGES", "1000"))
    outcomes = run(store, tmp_path, count, SEED + 1, often=10)
    assert outcomes["noticed"] > 0.75 * count, outcomes
