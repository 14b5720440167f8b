"""Repeat the inversion of a finished campaign with the complete published tables.

    AFTERSLIP_DATA=... python examples/tohoku2011/full_sets.py DIR

DIR is what ``demo.py --out DIR`` or ``afterslip run --out DIR`` left behind. No Green's
function is computed again: responses are known on the whole ground surface.
"""

import argparse
import csv
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pyproj import Geod

from afterslip import AfterslipError, Campaign, Client
from afterslip.client.inversion import Inversion
from afterslip.result import fit_by_type
from afterslip.spec import load
from afterslip_service.errors import ServiceError

HERE = Path(__file__).parent
GEOD = Geod(ellps="WGS84")
DISPLACEMENT = ["east", "north", "up"]
SIGMA = ["sigma_e", "sigma_n", "sigma_u"]
COLUMNS = ["station", "lon", "lat", *DISPLACEMENT, *SIGMA, "type"]
# floors of sigma, horizontal and vertical, m, and the model's error: see README.md
FLOORS = {"gnss": (0.02, 0.04), "gnssa": (0.3, 0.5)}
MODEL_ERROR = 0.02
# farther away the model's flat earth and its slab mean nothing
REACH_KM = 600.0
SETS = {
    "ozawa": "coseismic_gnss_ozawa2011.csv",
    "zhang": "coseismic_gnss_zhang.csv",
}
SEA_FLOOR = "coseismic_seafloor_sato2011.csv"


def read(path: Path, kind: str) -> Iterator[dict[str, str]]:
    """Rows of a table with our uncertainty; an empty field stays missing."""
    with path.open() as stream:
        for row in csv.DictReader(stream):
            values = [float(row[k] or "nan") for k in DISPLACEMENT]
            size = np.sqrt(np.nansum(np.square(values)))
            horizontal, vertical = (
                np.hypot(f, MODEL_ERROR * size) for f in FLOORS[kind]
            )
            sigma = zip(SIGMA, (horizontal, horizontal, vertical), strict=True)
            found = zip(DISPLACEMENT, values, strict=True)
            yield (
                {k: row[k] for k in ("station", "lon", "lat")}
                | {k: f"{v:.4f}" if np.isfinite(v) else "" for k, v in found}
                | {k: f"{v:.3f}" for k, v in sigma}
                | {"type": kind}
            )


def near(row: dict[str, str], frame: dict[str, float]) -> bool:
    """Whether a site is near enough to the origin of the model."""
    origin = frame["lon0"], frame["lat0"]
    *_, distance = GEOD.inv(*origin, float(row["lon"]), float(row["lat"]))
    return distance < 1e3 * REACH_KM


def build(folder: Path, name: str, work: Path) -> Path:
    """Write one set with the sea floor, and say how many sites it has."""
    frame = load(HERE / "campaign.yaml")["model"]["frame"]
    land = list(read(folder / SETS[name], "gnss"))
    chosen = [row for row in land if near(row, frame)]
    sea = list(read(folder / SEA_FLOOR, "gnssa"))
    path = work / f"{name}.csv"
    with path.open("w", newline="") as stream:
        out = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        out.writeheader()
        out.writerows(chosen + sea)
    print(
        f"{name}: {len(chosen)} of {len(land)} sites within {REACH_KM:.0f} km, "
        f"{len(sea)} on the sea floor"
    )
    return path


def dataset(client: Client, name: str, path: Path) -> str:
    """Name under which the server holds this very table."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    unique = f"{name}-{digest}"
    if all(known["name"] != unique for known in client.datasets()):
        client.add_dataset(unique, path, epoch="0 d")
    return unique


def line(name: str, inversion: Inversion, seconds: float) -> str:
    """One line of the comparison."""
    result = inversion.result
    slip = (result["fault_slip"] ** 2).sum("slip_component")
    peak = result.isel(fault_node=int(np.argmax(slip.values)))
    rows = {row.name: row.variance_reduction for row in fit_by_type(result)}
    fit = " ".join(f"{100 * value:6.2f}" for value in rows.values())
    return (
        f"{name:<8} {inversion.magnitude:5.2f} {inversion.peak_slip:6.1f} "
        f"{float(peak['fault_lon']):7.2f} {float(peak['fault_lat']):6.2f} "
        f"{max(0.0, -float(peak['fault_z']) / 1e3):5.1f}  {fit}  "
        f"{inversion.score:5.2f} {seconds:6.1f}"
    )


def compare(directory: Path, folder: Path) -> None:
    """Invert each set and print the table, the example's own selection first."""
    work = directory / "full-sets"
    work.mkdir(parents=True, exist_ok=True)
    tables = {name: build(folder, name, work) for name in SETS}
    spec = Campaign.from_yaml(HERE / "campaign.yaml")
    with Client.embedded(directory) as client:
        campaigns = [c for c in client.campaigns("complete") if c.name == spec.name]
        if not campaigns:
            sys.exit(f"full_sets: {directory} holds no finished campaign {spec.name}")
        campaign = campaigns[0]
        own = campaign.inversions()[0]
        kinds = ", ".join(row.name for row in fit_by_type(own.result))
        print("\nset         Mw  peak,m     lon    lat depth  variance reduction, %: ")
        print(f"{'':42}{kinds}; score; seconds")
        print(line("example", own, 0.0))
        for name, path in tables.items():
            begun = time.monotonic()
            inversion = campaign.invert(
                [dataset(client, name, path)], name=name, sign={"dip": "positive"}
            )
            print(line(name, inversion, time.monotonic() - begun), flush=True)
            inversion.save(work / name)


def main() -> None:
    """Run; a failure is one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="left behind by a finished run")
    arguments = parser.parse_args()
    data = os.environ.get("AFTERSLIP_DATA")
    if not data:
        sys.exit("full_sets: set AFTERSLIP_DATA to the folder that holds tohoku_gnss/")
    try:
        compare(arguments.directory, Path(data) / "tohoku_gnss")
    except (AfterslipError, ServiceError, TimeoutError, OSError) as error:
        sys.exit(f"full_sets: {error}")


if __name__ == "__main__":
    main()
