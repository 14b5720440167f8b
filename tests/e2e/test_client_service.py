"""The client against the real service, from a spec to a report."""

import numpy as np
import pytest

from afterslip import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SPEC = """
name: small thrust
model:
  domain: {x: [-150, 150], y: [-150, 150], depth: 120}
  layers:
    - {name: crust, bottom: 30, vp: 6.0, vs: 3.5, rho: 2700}
    - {name: mantle, bottom: 120, vp: 8.0, vs: 4.5, rho: 3300,
       rheology: {maxwell: {viscosity: 1.0e19}}}
  faults:
    - name: main
      plane: {x: 0, y: 0, top: 3, strike: 0, dip: 30, length: 50, width: 30}
  mesh: {size: {fault: 10, far: 60}}
sources: {fault: main, along_strike: 3, down_dip: 2}
times: {until: 5 yr, output: [0 d, 1 yr, 5 yr]}
solver: {time_tolerance: 1.0e-4}
stations: {file: stations.csv}
"""
PLACES = {
    "A": (10, 0), "B": (30, 10), "C": (-20, 5),
    "D": (5, -25), "E": (40, -20), "F": (-5, 30),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("campaign")
    (folder / "small.yaml").write_text(SPEC)
    lines = [f"{name},{x},{y}" for name, (x, y) in PLACES.items()]
    (folder / "stations.csv").write_text("\n".join(["station,x_km,y_km", *lines]))
    return folder


@pytest.fixture(scope="module")
def client(folder):
    with Client.embedded(folder / "service", workers=1) as client:
        yield client


@pytest.fixture(scope="module")
def campaign(client, folder):
    return client.submit(folder / "small.yaml").wait(timeout=500)


def test_greens_are_read_over_http_and_agree_with_samples(campaign):
    greens = campaign.greens()
    sampled = campaign.sample(PLACES, ["0 d", "1 yr", "5 yr"])
    assert sampled.shape == greens["displacement"].shape
    # the store keeps the surface in single precision
    np.testing.assert_allclose(greens["displacement"].values, sampled, atol=1e-7)
    assert float(greens["residual"].max()) <= 1.0e-8


def test_events_tell_the_whole_story(campaign):
    states = [e.data["state"] for e in campaign.events() if e.kind == "campaign.state"]
    assert states[0] == "waiting"
    assert states[-1] == "complete"


def test_known_slip_comes_back_from_its_displacements(client, campaign, folder):
    greens = campaign.greens()
    truth = np.where(greens["source_component"].values == 1, 2.0, 0.3)
    sampled = campaign.sample(PLACES, ["0 d"]).values[:, 0]
    motion = np.einsum("s,spc->pc", truth, sampled)
    motion += 0.005 * np.random.default_rng(0).standard_normal(motion.shape)
    lines = ["station,x_km,y_km,east,north,up,sigma_e,sigma_n,sigma_u,type"]
    for (name, (x, y)), row in zip(PLACES.items(), motion, strict=True):
        values = ",".join(f"{v:.5f}" for v in row)
        lines.append(f"{name},{x},{y},{values},0.005,0.005,0.005,gnss")
    (folder / "offsets.csv").write_text("\n".join(lines))
    client.add_dataset("offsets", folder / "offsets.csv")
    found = campaign.invert(["offsets"], folds=3, sign={"dip": "positive"}, timeout=300)
    area = greens["source_area"].values * greens["source_rigidity"].values
    moment = np.hypot(*(area * truth).reshape(-1, 2).sum(axis=0))
    assert found.moment == pytest.approx(moment, rel=0.1)
    assert found.variance_reduction > 0.99
    np.testing.assert_allclose(found.slip, truth, atol=0.6)
    saved = found.save(folder / "saved")
    assert (saved / "report.html").stat().st_size > 100_000
    copied = campaign.fetch(folder / "copy")
    (one,) = (copied / "inversions").iterdir()
    assert (one / "result.nc").read_bytes() == (saved / "result.nc").read_bytes()
