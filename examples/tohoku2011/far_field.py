"""Invert all 1,295 offsets of a table, on a sphere and on a flat Earth.

    AFTERSLIP_DATA=... python examples/tohoku2011/far_field.py --out DIR [--json FILE]

The elastic campaign of this folder in a box that reaches 6,000 km from the earthquake
and down to the core, so that every site from China to Guam is in it, once with ``shape:
sphere`` and once flat. Prints what is left of the data by distance, and how far the two
Earths move sites apart for one slip, that which was found on the sphere.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from far_field_figure import Fit, bands, draw, table
from postseismic_data import GEOD, MissingDataError, folder_of

from afterslip.archive import GreensStore
from afterslip.plot import save
from afterslip.result import open_result, vectors
from afterslip.spec import load
from afterslip_common.record import Record, device_name, document, record

HERE = Path(__file__).parent
PROGRAM = (sys.executable, "-m", "afterslip")
SHAPES = ("sphere", "flat")
REACH, CORE = 6000, 2890  # km
NEAR = 600.0
DISPLACEMENT = ("east", "north", "up")
# floors of errors, horizontal and vertical, m, and the share of a displacement: beyond
# `NEAR` no hours of afterslip of centimetres are in an offset, but noise
FLOORS = {"near": (0.02, 0.04), "far": (0.004, 0.010), "sea": (0.3, 0.5)}
SHARE = 0.02


def spec_of(shape: str) -> dict[str, Any]:
    """Return the campaign of one Earth; nothing flows in it."""
    spec = deepcopy(load(HERE / "campaign.yaml"))
    model = spec["model"]
    model["frame"]["shape"] = shape
    model["domain"] = {"x": [-REACH, REACH], "y": [-REACH, REACH], "depth": CORE}
    for layer in model["layers"]:
        layer.pop("rheology", None)
    model["layers"][-1] |= {"bottom": CORE, "vp": 12.6, "vs": 6.9, "rho": 5000}
    model["mesh"] = {"size": {"fault": 22, "far": 700, "growth": 0.4}}
    model["boundary"] = {"sides": "fixed", "bottom": "fixed"}
    spec["name"] = f"tohoku-2011-{shape}"
    spec["times"] = {"until": "0 d", "output": ["0 d"]}
    spec["stations"] = {"file": "offsets.csv"}
    spec["datasets"][0]["file"] = "offsets.csv"
    return spec


def distances(lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
    """(n,) km from the origin of the model."""
    frame = load(HERE / "campaign.yaml")["model"]["frame"]
    start = np.full(len(lon), frame["lon0"]), np.full(len(lon), frame["lat0"])
    return np.asarray(GEOD.inv(*start, lon, lat)[2]) / 1e3


def write_offsets(folder: Path, path: Path) -> dict[str, int]:
    """Write all sites on land and those of the sea floor, with errors."""
    tables = {
        "land": "coseismic_gnss_zhang.csv",
        "sea": "coseismic_seafloor_sato2011.csv",
    }
    errors = ["sigma_e", "sigma_n", "sigma_u"]
    counted = {}
    with path.open("w", newline="") as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(["station", "lon", "lat", *DISPLACEMENT, *errors, "type"])
        for kind, name in tables.items():
            with (folder / name).open() as table:
                rows = list(csv.DictReader(table))
            counted[kind] = len(rows)
            lon, lat = (np.array([float(r[k]) for r in rows]) for k in ("lon", "lat"))
            for row, far in zip(rows, distances(lon, lat), strict=True):
                where = "sea" if kind == "sea" else "near" if far < NEAR else "far"
                values = [float(row[key] or "nan") for key in DISPLACEMENT]
                size = SHARE * float(np.sqrt(np.nansum(np.square(values))))
                level, up = (np.hypot(floor, size) for floor in FLOORS[where])
                cells = ["" if np.isnan(v) else f"{v:.5f}" for v in values]
                said = [f"{level:.4f}", f"{level:.4f}", f"{up:.4f}"]
                label = "gnssa" if kind == "sea" else "gnss"
                place = [row["station"], row["lon"], row["lat"]]
                out.writerow([*place, *cells, *said, label])
    return counted


def fit_of(folder: Path, flat: Path) -> Fit:
    """Read what one Earth makes of the data, and what a flat one makes of its slip."""
    result = open_result(folder / "result.nc")
    found = vectors(result)
    lon, lat = (
        result[f"station_{axis}"].values[found.station] for axis in ("lon", "lat")
    )
    x, y = (result[f"station_{axis}"].values[found.station] for axis in "xy")
    slip = result["slip"].values
    here, there = (
        np.einsum("s,spc->pc", slip, GreensStore(path / "greens.zarr").sampler(x, y)(
            np.zeros(1)
        )[:, 0])
        for path in (folder, flat)
    )  # fmt: skip
    model = json.loads(result.attrs["model"])
    return Fit(
        magnitude=float(result.attrs["magnitude"]),
        interval=tuple(map(float, result.attrs["magnitude_interval"])),
        peak=float(result.attrs["peak_slip"]),
        n_unknowns=int(model["n_unknowns"]),
        distance=distances(lon, lat),
        observed=found.observed,
        predicted=here,
        on_flat=there,
        sigma=found.sigma,
        land=found.kind == "gnss",
    )


def run(shape: str, out: Path) -> Path:
    """Solve and invert one Earth; what is there already is not solved again."""
    path, folder = out / f"{shape}.yaml", out / shape
    path.write_text(yaml.safe_dump(spec_of(shape), sort_keys=False), "utf-8")
    subprocess.run([*PROGRAM, "run", path, "--out", folder], check=True)
    return folder


def study(folder: Path, out: Path, json_path: Path | None) -> None:
    """Run both Earths, print the tables, draw and write a record."""
    for name in ("interface.csv", "outline.csv"):
        shutil.copy(HERE / name, out)
    counted = write_offsets(folder, out / "offsets.csv")
    print(f"{counted['land']} sites on land, {counted['sea']} on the sea floor")
    runs = {shape: run(shape, out) for shape in SHAPES}
    found = {shape: fit_of(path, runs["flat"]) for shape, path in runs.items()}
    print("\n".join(table(found)), flush=True)
    save(draw(found["sphere"], found["flat"]), out / "far-field.png")
    if json_path:
        text = json.dumps(document(records(found), device_name()), indent=1)
        json_path.write_text(text + "\n", "utf-8")


def records(found: dict[str, Fit]) -> list[Record]:
    """Return magnitudes, and misfit and effect of curvature by distance."""
    rows = []
    for shape, fit in found.items():
        size = f"{fit.n_unknowns:,} unknowns, {len(fit.distance):,} sites"
        low, high = fit.interval
        mw = f"largest slip {fit.peak:.1f} m; interval {low:.2f} to {high:.2f}; {size}"
        rows.append(record(f"far_field_{shape}_mw", fit.magnitude, "1", note=mw))
        for band in bands(fit):
            note = f"{band.name} km; {band.count} sites; rms observed {band.size:.5f} m"
            key = f"far_field_{shape}_{band.name}"
            rows.append(record(f"{key}_rms", band.rms, "m", note=note))
            rows.append(record(f"{key}_chi", band.chi, "1", note=note))
            if shape == "sphere":
                rows.append(record(f"{key}_curvature", band.curvature, "1", note=note))
    return rows


def main() -> None:
    """Run; a failure is one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("far-field-out"))
    parser.add_argument("--json", type=Path, help="write a record")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        folder = folder_of(os.environ.get("AFTERSLIP_DATA"))
        study(folder, options.out, options.json)
    except MissingDataError as error:
        sys.exit(f"far_field: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"far_field: {' '.join(map(str, error.cmd))} failed")


if __name__ == "__main__":
    main()
