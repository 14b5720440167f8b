"""A branch, slip through time and options of data, through the service.

On both databases, with the solver: slip that is known comes back through the request
with which users would ask for it.
"""

from __future__ import annotations

import json
from contextlib import ExitStack

import numpy as np
import pytest
import yaml

from afterslip import Client
from afterslip_service.embedded import Embedded
from afterslip_service.main import create_app
from afterslip_service.placement.inprocess import InProcess
from afterslip_workers import entry

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# the lower edge of the branch lies on the main fault, 12 km down dip of its top edge
SPEC = """
name: thrust and branch
model:
  domain: {x: [-150, 150], y: [-150, 150], depth: 120}
  layers:
    - {name: crust, bottom: 25, vp: 6.0, vs: 3.5, rho: 2700}
    - {name: mantle, bottom: 120, vp: 8.0, vs: 4.6, rho: 3300,
       rheology: {maxwell: {viscosity: 1.0e19}}}
  faults:
    - name: main
      plane: {x: 0, y: 0, top: 4, strike: 0, dip: 30, length: 60, width: 30}
    - name: branch
      plane: {x: 8.39046856, y: 0, top: 4.5, strike: 0, dip: 70, length: 48,
              width: 5.85297775}
  mesh: {size: {fault: 7, far: 60}}
sources:
  - {fault: main, along_strike: 2, down_dip: 1, shape: patch, components: [dip]}
  - {fault: branch, along_strike: 2, down_dip: 1, shape: patch, components: [dip]}
times: {until: 3 yr, output: [0 d, 1 yr, 3 yr]}
solver: {time_tolerance: 1.0e-4}
stations: {file: stations.csv}
"""
TRUTH = np.array([2.0, 1.0, 0.5, 1.5])
RNG = np.random.default_rng(11)
X, Y = np.round(RNG.uniform(-45, 55, (2, 24)), 2)
NAMES = [f"S{k:02d}" for k in range(len(X))]
LOOK = np.array([-0.6, -0.1, np.sqrt(1 - 0.37)])
SHARED = {"sigma": 0.03, "length": 12.0, "nugget": 0.01}  # m, km, m
KARMAN = {"von_karman": {"hurst": 0.5, "along_km": 40, "down_km": 20}}
HEAD = "station,x_km,y_km,east,north,up,sigma_e,sigma_n,sigma_u,type"


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


def lines_of(motion, sigma, tag="gnss", more=""):
    return [
        f"{name},{x},{y},{e:.6f},{n:.6f},{u:.6f},{sigma},{sigma},{sigma},{tag}{more}"
        for name, x, y, (e, n, u) in zip(NAMES, X, Y, motion, strict=True)
    ]


def dataset(folder, name, head, lines, **options):
    """Write a data set, and return it with its options as a spec has them."""
    (folder / f"{name}.csv").write_text("\n".join([head, *lines]))
    return {"name": name, "file": f"{name}.csv", **options}


def moved(campaign, x, y, times):
    """(n_time, n_place, 3) m, of the true slip."""
    places = {f"P{k}": place for k, place in enumerate(zip(x, y, strict=True))}
    found = campaign.sample(places, [f"{when!r} yr" for when in times]).values
    return np.einsum("s,stpc->tpc", TRUTH, found)


def land_with_a_datum(campaign, folder):
    """Offsets of another reference, with half of their true errors stated."""
    rng = np.random.default_rng(1)
    land = moved(campaign, X, Y, [0.0])[0] + [0.3, -0.2, 0.15]
    land += 0.004 * rng.standard_normal(land.shape)
    return dataset(folder, "land", HEAD, lines_of(land, 0.002, "GPS-A"),
                   translation=True, scale=2.0,
                   floor={"vertical": 0.003, "relative": 0.01},
                   types={"GPS-A": "gnss"})  # fmt: skip


def scene_with_a_ramp(campaign, folder):
    """A scene on a ramp, with errors that pixels share and three that are wrong."""
    rng = np.random.default_rng(2)
    x, y = np.round(rng.uniform(-45, 55, (2, 70)), 3)
    scene = moved(campaign, x, y, [1.0])[0] @ LOOK
    scene += 0.2 + 0.1 * (x - x.mean()) / 100 - 0.3 * (y - y.mean()) / 100
    scene += 0.004 * rng.standard_normal(70)
    scene[[4, 9, 50]] += [0.8, -0.7, 0.9]
    look = ",".join(f"{c:.6f}" for c in LOOK)
    lines = [f"{a},{b},{v:.5f},{look}" for a, b, v in zip(x, y, scene, strict=True)]
    return dataset(folder, "scene", "x_km,y_km,los,los_e,los_n,los_u", lines,
                   epoch="1 yr", ramp="linear", sigma={"los": 0.004}, robust=True,
                   covariance={"exponential": {"sigma": 0.003, "length": 10}},
                   weight=1.0)  # fmt: skip


def points_with_a_matrix(campaign, folder):
    """Offsets after 3 yr, with the matrix of their errors."""
    rng = np.random.default_rng(3)
    late = moved(campaign, X, Y, [3.0])[0]
    n = late.size
    shared = 0.5 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    matrix = 0.003**2 * shared
    late += (np.linalg.cholesky(matrix) @ rng.standard_normal(n)).reshape(late.shape)
    path = folder / "matrix.txt"
    path.write_text("\n".join(" ".join(f"{v:.9e}" for v in row) for row in matrix))
    return dataset(folder, "late", HEAD, lines_of(late, 0.003), epoch="3 yr",
                   covariance={"file": "matrix.txt"})  # fmt: skip


def series_of_afterslip(campaign, folder):
    """Half of the slip at once, half at a steady rate through a year; rates beside."""
    rng = np.random.default_rng(4)
    epochs = [0.0, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0]
    rate = 0.02 * rng.standard_normal((len(X), 3))
    lines = []
    for epoch in epochs:
        now = 0.5 * moved(campaign, X, Y, [epoch])[0]
        done = min(epoch, 1.0)
        if done > 0:
            at = (np.arange(20) + 0.5) * done / 20
            past = moved(campaign, X, Y, (epoch - at).tolist())
            now = now + 0.5 * done * past.mean(axis=0)
        now = now + rate * epoch + 0.002 * rng.standard_normal(now.shape)
        lines += lines_of(now, 0.002, more=f",{epoch}")
    return rate, dataset(folder, "series", f"{HEAD},time", lines, terms=["rate"])


def wide_scene(campaign, folder):
    """A scene on land that hardly moved for the most part, with errors that fade."""
    rng = np.random.default_rng(5)
    x, y = np.round(rng.uniform(-140, 140, (2, 700)), 3)
    scene = moved(campaign, x, y, [0.0])[0] @ LOOK
    apart = np.hypot(*(np.subtract.outer(axis, axis) for axis in (x, y)))
    shared = SHARED["sigma"] ** 2 * np.exp(-apart / SHARED["length"])
    scene += np.linalg.cholesky(shared) @ rng.standard_normal(len(x))
    scene += SHARED["nugget"] * rng.standard_normal(len(x))
    look = ",".join(f"{c:.6f}" for c in LOOK)
    lines = [f"{a},{b},{v:.5f},{look}" for a, b, v in zip(x, y, scene, strict=True)]
    still = {"x": [-70, 80], "y": [-70, 70]}
    return dataset(folder, "wide", "x_km,y_km,los,los_e,los_n,los_u", lines,
                   sigma={"los": SHARED["nugget"]},
                   covariance={"variogram": still})  # fmt: skip


def series_with_seasons(campaign, folder):
    """The relaxation of three years, offsets and yearly motion of each station."""
    rng = np.random.default_rng(6)
    epochs = np.arange(0.0, 3.01, 0.2)
    motion = moved(campaign, X, Y, epochs.tolist())
    # m, cosine and sine, and the same twice a year
    yearly, twice = rng.normal(0.0, 0.01, (2, 2, len(X), 3))
    lines = []
    for epoch, now in zip(epochs, motion, strict=True):
        angle = 2.0 * np.pi * epoch
        for times, (cosine, sine) in ((1.0, yearly), (2.0, twice)):
            part = cosine * np.cos(times * angle) + sine * np.sin(times * angle)
            now = now + part
        now = now + 0.001 * rng.standard_normal(now.shape)
        lines += lines_of(now, 0.001, more=f",{epoch:.1f}")
    # unknowns of a component of a station stand together
    parts = np.stack([*yearly, *twice], axis=-1)
    made = dataset(folder, "seasons", f"{HEAD},time", lines,
                   terms=["annual", "semiannual"])  # fmt: skip
    return parts, made


def write(folder, **more):
    """Write the spec with more keys."""
    path = folder / "branch.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(SPEC) | more))
    return path


def test_a_branch_options_of_data_and_slip_through_time(client, tmp_path):
    places = [f"{n},{x},{y}" for n, x, y in zip(NAMES, X, Y, strict=True)]
    (tmp_path / "stations.csv").write_text("\n".join(["station,x_km,y_km", *places]))
    first = client.submit(write(tmp_path)).wait(timeout=500)
    made = [f(first, tmp_path) for f in (land_with_a_datum, scene_with_a_ramp,
                                         points_with_a_matrix)]  # fmt: skip
    rate, series = series_of_afterslip(first, tmp_path)
    seasons, yearly = series_with_seasons(first, tmp_path)
    made += [wide_scene(first, tmp_path), yearly]
    increments = {"ends": ["1 yr"], "smoothness": 0.0, "amplitude": 1.0}
    asked = [
        {"name": "slip", "datasets": ["land", "scene", "late"], "folds": 3},
        {"name": "after", "datasets": ["series"], "folds": 3, "increments": increments},
        {
            "name": "karman",
            "datasets": ["wide", "seasons"],
            "folds": 3,
            "prior": KARMAN,
        },
    ]
    more = {"datasets": [*made, series], "inversions": asked}
    campaign = client.submit(write(tmp_path, **more)).wait(timeout=500)
    # nothing is solved again
    assert campaign.explain()["reuse"]["reused"] == 4
    ids = client.campaign(campaign.id).data["inversions"]
    found, after, karman = (client.inversion(i).wait(timeout=300).result for i in ids)
    _check_slip(found)
    steps = after["slip_increment"].values
    np.testing.assert_allclose(steps, [0.5 * TRUTH] * 2, atol=0.1)
    # m/yr of each component of each station
    beside = after["unknown_value"].values
    np.testing.assert_allclose(beside, rate.ravel(), atol=0.01)
    _check_seasons(karman, seasons)


def _check_seasons(found, seasons):
    """A von Kármán prior, a variogram of the scene itself, and yearly terms."""
    assert json.loads(found.attrs["request"])["prior"] == KARMAN
    np.testing.assert_allclose(found["slip"].values, TRUTH, atol=0.1)
    beside = found["unknown_value"].values
    # sixteen epochs with errors of 1 mm: 0.4 mm each
    np.testing.assert_allclose(beside, seasons.ravel(), atol=0.002)
    (wide,) = [d for d in json.loads(found.attrs["datasets"]) if d["name"] == "wide"]
    # one scene of some twenty lengths, of which the inner part is left out: other
    # draws of the same errors give lengths of 9 to 22 km, and much the same sum
    made = wide["variogram"]
    total = np.hypot(SHARED["sigma"], SHARED["nugget"])
    assert np.hypot(made["sigma"], made["nugget"]) == pytest.approx(total, rel=0.25)
    assert made["length"] / 1e3 == pytest.approx(SHARED["length"], rel=0.5)


def _check_slip(found):
    np.testing.assert_allclose(found["slip"].values, TRUTH, atol=0.1)
    beside = found["unknown_value"].values
    np.testing.assert_allclose(beside[:3], [0.3, -0.2, 0.15], atol=0.02)
    np.testing.assert_allclose(beside[3:], [0.2, 0.1, -0.3], atol=0.02)
    name = found["obs_dataset"].values
    weight = found["obs_weight"].values[name == "scene"]
    assert (weight[[4, 9, 50]] < 0.05).all()
    assert np.median(weight) == 1.0
    # twice the stated error, and one per cent of a datum; up has a floor of its own
    land = found["sigma"].values[name == "land"].reshape(-1, 3)
    data = found["observed"].values[name == "land"].reshape(-1, 3)
    floor = np.hypot(0.01 * data, [0.0, 0.0, 0.003])
    np.testing.assert_allclose(land, np.hypot(0.004, floor), rtol=1e-6)
