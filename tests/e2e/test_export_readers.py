"""Exports give other programs the displacements that the result predicted.

pyrocko, in an environment of its own (its extensions want another NumPy), computes them
with Okada's half-space from the subfaults of FSP, and takes them from its stores; BEAT
stacks them from its libraries; what AlTar's static model does with its files is done
here as documented.
"""

import csv
import subprocess
import sys

import h5py
import numpy as np
import pytest

from afterslip import Client, open_result
from afterslip.errors import SpecError
from afterslip.exports import (
    Event,
    write_altar,
    write_beat,
    write_fsp,
    write_pyrocko,
)

SPEC = """
name: half-space
model:
  frame: {kind: geographic, lon0: 13.25, lat0: 42.8}
  layers: [{name: rock, bottom: 60, vp: 6.0, vs: 3.4641016, rho: 2700}]
  faults:
    - name: main
      plane: {x: 0, y: 0, top: 3, strike: 155, dip: 45, length: 20, width: 14}
  mesh: {size: {fault: 1.7, far: 25}}
sources: {fault: main, along_strike: 2, down_dip: 1, shape: patch}
times: {until: 1 d, output: [0 d]}
datasets: [{name: gnss, file: data.csv, sigma: {horizontal: 0.003, vertical: 0.01}}]
inversions:
  - {name: only, datasets: [gnss], smoothness: 1.0e-6, model_error: {mesh: false}}
"""


def data():
    """Twelve stations around the fault; any displacements, for they are not judged."""
    rng = np.random.default_rng(3)
    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    reach = np.tile([0.12, 0.25, 0.4], 4)
    lines = ["station,lon,lat,east,north,up"]
    for number, (a, r) in enumerate(zip(angle, reach, strict=True)):
        lon, lat = 13.2 + r * np.cos(a), 42.77 + 0.7 * r * np.sin(a)
        motion = ",".join(f"{v:.4f}" for v in rng.normal(scale=0.05, size=3))
        lines.append(f"S{number},{lon:.4f},{lat:.4f},{motion}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readers")
    (folder / "data.csv").write_text(data())
    (folder / "campaign.yaml").write_text(SPEC)
    with Client.embedded(folder / "service", workers=1) as client:
        campaign = client.submit(folder / "campaign.yaml").wait(timeout=500)
        campaign.fetch(folder / "out")
        campaign.inversions()[0].save(folder / "out")
    result = open_result(next((folder / "out").rglob("result.nc")))
    return result, folder / "out" / "greens.zarr"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_altar_finds_the_predictions_from_its_files(finished, tmp_path):
    result, greens = finished
    folder = write_altar(result, greens, tmp_path / "altar")
    arrays = {}
    for name in ("gf", "data", "Cd"):
        with h5py.File(folder / f"static.{name}.h5") as file:
            # AlTar takes the first data set of the file
            arrays[name] = np.asarray(file[next(iter(file))])
    n, m = result.sizes["obs"], result.sizes["source"]
    assert [a.shape for a in arrays.values()] == [(n, m), (n,), (n, n)]
    with (folder / "parameters.csv").open() as file:
        names = [row["component"] for row in csv.DictReader(file)]
    assert names == ["strike"] * (m // 2) + ["dip"] * (m // 2)
    slip = result["slip"].values
    component = result["source_component"].values
    theta = np.concatenate([slip[component == 0], slip[component == 1]])
    predicted = arrays["gf"] @ theta
    np.testing.assert_allclose(predicted, result["predicted"], atol=1e-6)
    misfit = arrays["data"] - predicted
    own = np.sum((result["residual"].values / result["sigma"].values) ** 2)
    assert misfit @ np.linalg.solve(arrays["Cd"], misfit) == pytest.approx(
        own, rel=1e-4
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_altar_cannot_have_is_refused(finished, tmp_path):
    result, greens = finished
    wrong = result.copy()
    wrong["slip"] = result["slip"] * 1.01
    with pytest.raises(SpecError, match="miss the result's predictions"):
        write_altar(wrong, greens, tmp_path / "a")
    correlated = result.copy()
    text = '[{"name": "gnss", "correlated": true}]'
    correlated.attrs = {**result.attrs, "datasets": text}
    with pytest.raises(SpecError, match="correlated errors"):
        write_altar(correlated, greens, tmp_path / "a")
    assert not (tmp_path / "a").exists()


PYROCKO = """
import re, sys
import numpy as np
from pyrocko.modelling import okada_ext
from pyrocko.orthodrome import latlon_to_ne_numpy

# the layout of SRCMOD: keys in comments, the last of them names the columns
lines = open(sys.argv[1]).read().splitlines()
heads = [line for line in lines if line.startswith("%")]
keys = {}
for key, value in re.findall(r"(\\w+)\\s*=\\s*([-+\\d.eE]+)", "\\n".join(heads)):
    keys.setdefault(key, float(value))
names = heads[-2].lstrip("% ").split()
rows = [dict(zip(names, map(float, x.split()))) for x in lines if x[0] != "%"]
origin = 42.8, 13.25
along, down = 500 * keys["Dx"], 500 * keys["Dz"]
patches, slips = [], []
for row in rows:
    north, east = latlon_to_ne_numpy(*origin, row["LAT"], row["LON"])
    patches.append([float(north), float(east), 1e3 * row["Z"], keys["STRK"],
                    keys["DIP"], -along, along, -down, down])
    rake = np.radians(row["RAKE"])
    slips.append([row["SLIP"] * np.cos(rake), row["SLIP"] * np.sin(rake), 0.0])
lat, lon = np.loadtxt(sys.argv[2])
north, east = latlon_to_ne_numpy(*origin, lat, lon)
places = np.column_stack([north, east, np.zeros(len(north))])
moved = okada_ext.okada(np.array(patches), np.array(slips), places, 3.24e10, 3.24e10,
                        nthreads=1, rotate_sdn=0, stack_sources=1)
moved = moved.reshape(len(north), -1)[:, :3]
np.savetxt(sys.argv[3], moved[:, [1, 0, 2]] * [1, 1, -1])
"""


def reader(packages, module, script, *args):
    """Run a script in an environment of another program; skip where none is made."""
    wanted = [word for name in packages for word in ("--with", name)]
    base = [sys.executable, "-m", "uv", "run", "--quiet", "--no-project", "--isolated",
            *wanted, "python", "-c"]  # fmt: skip
    try:
        subprocess.run([*base, f"import {module}"], check=True, timeout=500, cwd="/")
    except subprocess.SubprocessError:
        pytest.skip(f"{packages[0]} cannot be installed here")
    subprocess.run([*base, script, *map(str, args)], check=True, timeout=300)


def pyrocko(script, *args):
    reader(("pyrocko==2026.6.2", "numpy<2"), "pyrocko", script, *args)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_pyrocko_computes_our_displacements_from_the_subfaults(finished, tmp_path):
    result, _ = finished
    path = write_fsp(result, tmp_path / "slip.fsp", Event("made up", "01/01/2020"))
    stations = [result["station_lat"].values, result["station_lon"].values]
    np.savetxt(tmp_path / "stations.txt", stations)
    pyrocko(PYROCKO, path, tmp_path / "stations.txt", tmp_path / "moved.txt")
    moved = np.loadtxt(tmp_path / "moved.txt")
    own = result["predicted"].values
    theirs = moved[result["obs_station"].values, result["obs_component"].values]
    # slip of patches falls to zero over an element of 1.7 km at their edges, and the
    # mesh has an error of some per cent: see docs/verification.md
    assert np.abs(own - theirs).max() < 0.06 * np.abs(theirs).max()


STATICS = """
import csv, sys
import numpy as np
from pyrocko import gf

rows = lambda name: list(csv.DictReader(open(f"{sys.argv[1]}/{name}")))
lat, lon = map(float, sys.argv[2:4])
slip = np.loadtxt(sys.argv[4])
engine = gf.LocalEngine(store_superdirs=[sys.argv[1]])
terms = "mnn", "mee", "mdd", "mne", "mnd", "med"
moved = []
for station in rows("stations.csv"):
    place = engine.get_store(station["store"]).config.receiver
    target = gf.StaticTarget(lats=np.array([place.lat]), lons=np.array([place.lon]),
                             interpolation="nearest_neighbor",
                             store_id=station["store"])
    total = np.zeros(3)
    for row in rows("sources.csv"):
        one = slip[int(row["source"])]
        source = gf.MTSource(lat=lat, lon=lon, depth=float(row["depth"]),
                             north_shift=float(row["north_shift"]),
                             east_shift=float(row["east_shift"]),
                             **{m: one * float(row[m]) for m in terms})
        found = engine.process(source, [target]).results_list[0][0].result
        total += [found[f"displacement.{c}"][0] for c in "end"]
    moved.append(total * [1, 1, -1])
np.savetxt(sys.argv[5], moved)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_pyrocko_has_our_predictions_from_its_stores(finished, tmp_path):
    result, greens = finished
    folder = write_pyrocko(result, greens, tmp_path / "stores")
    np.savetxt(tmp_path / "slip.txt", result["slip"].values)
    pyrocko(STATICS, folder, 42.8, 13.25, tmp_path / "slip.txt", tmp_path / "moved.txt")
    moved = np.loadtxt(tmp_path / "moved.txt")
    theirs = moved[result["obs_station"].values, result["obs_component"].values]
    own = result["predicted"].values
    # stores are in single precision
    np.testing.assert_allclose(theirs, own, atol=1e-5 * np.abs(own).max())


BEAT = """
import sys
import numpy as np
from beat.ffi import load_gf_library

rows = np.genfromtxt(f"{sys.argv[1]}/data.csv", delimiter=",", names=True)
total = np.zeros(len(rows))
for name in ("uparr", "uperp"):
    library = load_gf_library(sys.argv[1], f"geodetic_{name}_static_0")
    slip = np.loadtxt(f"{sys.argv[2]}/{name}.txt")
    assert (library.npatches, library.nsamples) == (len(slip), len(rows))
    total += library.stack_all(slip)
np.savetxt(f"{sys.argv[2]}/stacked.txt", total)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_beat_stacks_our_predictions_from_its_libraries(finished, tmp_path):
    result, greens = finished
    folder = write_beat(result, greens, tmp_path / "beat")
    slip, component = result["slip"].values, result["source_component"].values
    np.savetxt(tmp_path / "uperp.txt", slip[component == 0])
    np.savetxt(tmp_path / "uparr.txt", slip[component == 1])
    reader(("beat==2.0.5", "numpy<2"), "beat.ffi", BEAT, folder, tmp_path)
    stacked = np.loadtxt(tmp_path / "stacked.txt")
    np.testing.assert_allclose(stacked, result["predicted"], atol=1e-6)
    with (folder / "uparr.csv").open() as file:
        assert {row["component"] for row in csv.DictReader(file)} == {"dip"}
    with (folder / "data.csv").open() as file:
        values = [float(row["value_m"]) for row in csv.DictReader(file)]
    np.testing.assert_allclose(values, result["observed"], atol=1e-6)
