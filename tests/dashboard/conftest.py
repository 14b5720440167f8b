from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "service"))

import slip_page
import tiny_worker
import wave_page
from browser import Browser, find

from afterslip import Client, open_result
from afterslip_service import embedded
from afterslip_service.placement.inprocess import InProcess

# what takes a minute to compute, in every process that tests need it in
_SHARED = ("slip_client", "wave_client")


def pytest_collection_modifyitems(items):
    """Let one process have all tests of what is computed once, or of a file."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            shared = [name for name in _SHARED if name in item.fixturenames]
            group = shared[0] if shared else item.path.name
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def browser():
    path = find()
    if path is None:
        pytest.skip("no chromium here")
    with Browser(path) as browser:
        yield browser


@pytest.fixture
def worker():
    return tiny_worker.TinyWorker()


@pytest.fixture
def service(tmp_path, worker):
    def placement(_):
        return InProcess(worker, 2)

    with embedded.start(tmp_path / "d", placement=placement, tick=0.02) as service:
        yield service
        worker.gate.set()


@pytest.fixture
def opening(browser):
    """Open pages until something is there; no page may complain."""
    opened = []

    def open_page(url, *until, **options):
        shown = browser.page(url, **options)
        opened.append(shown)
        for condition in until:
            shown.until(condition)
        return shown

    yield open_page
    for shown in opened:
        complaints = shown.complaints()
        shown.close()
        assert complaints == []


@pytest.fixture
def page(service, opening):
    """Open pages of the service; no page may complain.

    The service comes first: fixtures end in reverse order, and a page that
    outlives its service complains about refused connections.
    """
    return lambda path="#/", **options: opening(f"{service.url}/{path}", **options)


@pytest.fixture(scope="session")
def wave_client(tmp_path_factory):
    with Client.embedded(tmp_path_factory.mktemp("waves"), workers=1) as client:
        yield client


@pytest.fixture(scope="session")
def wave_campaigns(wave_client, tmp_path_factory):
    """One with the motion of the ground, one of stations alone."""
    folder = tmp_path_factory.mktemp("spec")
    rows = [f"{name},{x},{y}" for name, (x, y) in wave_page.STATIONS.items()]
    (folder / "stations.csv").write_text("\n".join(["station,x_km,y_km", *rows]) + "\n")
    found = []
    for name, more in {"ground": "  surface: {spacing: 0.9}\n", "stations": ""}.items():
        path = folder / f"{name}.yaml"
        path.write_text(wave_page.SPEC.replace("NAME", name) + more)
        found.append(wave_client.submit(path).wait(timeout=500))
    return found


@pytest.fixture(scope="session")
def waves(wave_campaigns):
    return wave_campaigns[0].greens().load()


@pytest.fixture
def wave_view(opening, wave_client, wave_campaigns):
    """Open the view; it may not complain."""

    def open_view(query="", row=0, **options):
        where = f"#/campaigns/{wave_campaigns[row].id}/waves{query}"
        drawn = wave_page.DRAWN, wave_page.GROUND
        return opening(f"{wave_client.url}/{where}", *drawn, **options)

    return open_view


@pytest.fixture(scope="session")
def slip_client(tmp_path_factory):
    with Client.embedded(tmp_path_factory.mktemp("slip"), workers=1) as client:
        yield client


@pytest.fixture(scope="session")
def slip_results(slip_client, tmp_path_factory):
    """Return the inversions by name, each with its data set."""
    folder = tmp_path_factory.mktemp("spec")
    (folder / "data.csv").write_text(slip_page.DATA)
    spec = folder / "campaign.yaml"
    spec.write_text(slip_page.SPEC)
    slip_client.submit(spec).wait(timeout=500)
    answer = httpx.get(slip_client.url + "/v1/inversions").json()["items"]
    found = {}
    for inversion in answer:
        path = folder / f"{inversion['name']}.nc"
        path.write_bytes(
            httpx.get(slip_client.url + inversion["links"]["result"]).content
        )
        found[inversion["name"]] = inversion["id"], open_result(path)
    return found


@pytest.fixture
def slip_view(opening, slip_client, slip_results):
    """Open the view; it may not complain."""

    def open_view(query="", name="smooth", **options):
        where = f"#/inversions/{slip_results[name][0]}?{query}"
        return opening(f"{slip_client.url}/{where}", slip_page.DRAWN, **options)

    return open_view
