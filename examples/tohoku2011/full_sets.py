"""Repeat the inversion of a finished campaign with the complete published tables.

    AFTERSLIP_DATA=... python examples/tohoku2011/full_sets.py DIR

DIR is what ``demo.py --out DIR`` or ``afterslip run --out DIR`` left behind. No Green's
function is computed again: responses are known on the whole ground surface.
"""

import argparse
import csv
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pyproj import Geod

from afterslip import Client
from afterslip.result import fit_by_type
from afterslip.spec import load

HERE = Path(__file__).parent
GEOD = Geod(ellps="WGS84")
COLUMNS = "station,lon,lat,east,north,up,sigma_e,sigma_n,sigma_u,type".split(",")
# floors of sigma, horizontal and vertical, m, and the model's error: see README.md
FLOORS = {"gnss": (0.02, 0.04), "gnssa": (0.3, 0.5)}
MODEL_ERROR = 0.02
# nearer to the sides of the box than this share of it, the sides are felt
INNER = 0.8
SETS = {
    "ozawa": "coseismic_gnss_ozawa2011.csv",
    "zhang": "coseismic_gnss_zhang.csv",
}
SEA_FLOOR = "coseismic_seafloor_sato2011.csv"


def read(path: Path, kind: str) -> Iterator[dict[str, str]]:
    """Rows of a table with our uncertainty; an empty field stays missing."""
    with path.open() as stream:
        for row in csv.DictReader(stream):
            values = [float(row[k]) if row[k] else np.nan for k in COLUMNS[3:6]]
            size = np.sqrt(np.nansum(np.square(values)))
            horizontal, vertical = (
                f"{np.hypot(floor, MODEL_ERROR * size):.3f}" for floor in FLOORS[kind]
            )
            out = dict(
                zip(COLUMNS[6:], [horizontal] * 2 + [vertical, kind], strict=True)
            )
            names = zip(COLUMNS[3:6], values, strict=True)
            out |= {k: f"{v:.4f}" if np.isfinite(v) else "" for k, v in names}
            yield out | {k: row[k] for k in COLUMNS[:3]}


def inside(row: dict[str, str], model: dict) -> bool:
    """Whether a site is in the inner part of the model's box."""
    frame, domain = model["frame"], model["domain"]
    azimuth, _, distance = GEOD.inv(
        frame["lon0"], frame["lat0"], float(row["lon"]), float(row["lat"])
    )
    east = distance / 1e3 * np.sin(np.radians(azimuth))
    north = distance / 1e3 * np.cos(np.radians(azimuth))
    return all(
        INNER * low < value < INNER * high
        for value, (low, high) in ((east, domain["x"]), (north, domain["y"]))
    )


def build(folder: Path, name: str, work: Path) -> Path:
    """Write one set with the sea floor, and say how many sites it has."""
    model = load(HERE / "campaign.yaml")["model"]
    land = list(read(folder / SETS[name], "gnss"))
    kept = [row for row in land if inside(row, model)]
    sea = list(read(folder / SEA_FLOOR, "gnssa"))
    path = work / f"{name}.csv"
    with path.open("w", newline="") as stream:
        out = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        out.writeheader()
        out.writerows(kept + sea)
    print(
        f"{name}: {len(kept)} of {len(land)} sites inside, {len(sea)} on the sea floor"
    )
    return path
