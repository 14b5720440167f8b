"""Several faults through the service, on both databases."""

import re
from contextlib import ExitStack

import numpy as np
import pytest

from afterslip import Client
from afterslip.exports import write_fsp
from afterslip_service.embedded import Embedded
from afterslip_service.main import create_app
from afterslip_service.placement.inprocess import InProcess
from afterslip_workers import entry

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SPEC = """
name: two thrusts
model:
  frame: {kind: geographic, lon0: 142.4, lat0: 38.3}
  domain: {x: [-150, 150], y: [-150, 150], depth: 120}
  layers:
    - {name: crust, bottom: 120, vp: 6.0, vs: 3.5, rho: 2700}
  faults:
    - name: main
      plane: {x: -30, y: 0, top: 3, strike: 0, dip: 30, length: 60, width: 30}
    - name: idle
      plane: {x: -20, y: 70, top: 5, strike: 90, dip: 80, length: 20, width: 10}
    - name: back
      plane: {x: 50, y: 10, top: 2, strike: 180, dip: 60, length: 40, width: 20}
  mesh: {size: {fault: 10, far: 60}}
sources:
  - {fault: back, along_strike: 2, down_dip: 1, shape: patch, components: [dip]}
  - {fault: main, along_strike: 3, down_dip: 2, edges: {bottom: zero}}
times: {until: 1 yr, output: [0 d, 1 yr]}
solver: {time_tolerance: 1.0e-4}
stations: {file: stations.csv}
"""
RNG = np.random.default_rng(1)
PLACES = {
    f"S{k:02d}": (float(x), float(y))
    for k, (x, y) in enumerate(np.round(RNG.uniform(-60, 80, (40, 2)), 2))
}


@pytest.fixture
def client(settings, tmp_path):
    chosen = settings.model_copy(update={"auth": False, "host": "127.0.0.1"})
    app = create_app(chosen, lambda _: InProcess(entry.execute, 1))
    with (
        Embedded(app, 0, tmp_path, ExitStack()) as service,
        Client(service.url) as made,
    ):
        yield made
    entry.close_children()


def observations(folder, motion):
    lines = ["station,x_km,y_km,east,north,up,sigma_e,sigma_n,sigma_u,type"]
    for (name, (x, y)), row in zip(PLACES.items(), motion, strict=True):
        values = ",".join(f"{v:.5f}" for v in row)
        lines.append(f"{name},{x},{y},{values},0.005,0.005,0.005,gnss")
    (folder / "offsets.csv").write_text("\n".join(lines))
    return folder / "offsets.csv"


def test_slip_of_several_faults_comes_back(client, tmp_path):
    (tmp_path / "two.yaml").write_text(SPEC)
    places = [f"{name},{x},{y}" for name, (x, y) in PLACES.items()]
    (tmp_path / "stations.csv").write_text("\n".join(["station,x_km,y_km", *places]))
    campaign = client.submit(tmp_path / "two.yaml").wait(timeout=500)
    greens = campaign.greens()
    # numbers are those of model.faults; the order is that of sources
    fault = greens["source_fault"].values
    assert fault.tolist() == [2] * 2 + [0] * 12
    dip = greens["source_component"].values == 1
    truth = np.where(fault == 2, 1.5, np.where(dip, 2.0, 0.3))
    stored = greens["displacement"].isel(time=0).values
    motion = np.einsum("s,spc->pc", truth, stored)
    motion += 0.005 * np.random.default_rng(0).standard_normal(motion.shape)
    client.add_dataset("offsets", observations(tmp_path, motion))
    found = campaign.invert(["offsets"], folds=3, sign={"dip": "positive"}, timeout=300)
    assert found.variance_reduction > 0.99
    np.testing.assert_allclose(found.slip, truth, atol=0.6)
    saved = found.save(tmp_path / "saved")
    result = found.result
    assert result["fault_edge"].values.tolist() == [
        ["free", "zero", "free", "free"], ["none"] * 4, ["free"] * 4,
    ]  # fmt: skip
    on = result["fault_index"].values
    size = np.hypot(*result["fault_slip"].values.T)
    assert size[on == 1].max() == 0.0
    assert size[on == 2].max() == pytest.approx(1.5, abs=0.4)
    page = (saved / "report.html").read_text()
    assert "sources on fault main: 3 x 2 B-splines" in page
    assert "sources on fault back: 2 x 1 patches of 20 x 20 km" in page
    text = write_fsp(result, tmp_path / "slip.fsp").read_text()
    assert "Nsg = 2" in text
    rows = [line.split() for line in text.splitlines() if line[:1] not in ("%", "")]
    assert len(rows) == 3 * 2 + 2 * 1
    assert text.index("SEGMENT # 1") < text.index("[main]") < text.index("SEGMENT # 2")
    (total,) = map(float, re.findall(r"Mo = (\S+)", text))
    assert sum(float(row[-1]) for row in rows) == pytest.approx(total, rel=1e-3)
