"""Afterslip and flow after the 2011 Tohoku-oki earthquake, in several rheologies.

    AFTERSLIP_DATA=... python examples/tohoku2011/postseismic.py --out DIR [MODEL...]
        [--json benchmarks/postseismic-2core.json]

For each model of the mantle: Green's functions through 1,344 days, then coseismic slip
and increments of afterslip together, from land and sea floor. `afterslip
compare-rheologies` scores them. A table says for each how far the sea floor and the
land move, and how much of that is flow; figures lie in DIR.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import yaml
from postseismic_data import MissingDataError, folder_of, write
from postseismic_figures import RELATIVE, Parts, motion, parts_of, shares, table

from afterslip import plot
from afterslip.spec import load
from afterslip_common.record import Record, device_name, document, record
from afterslip_solver.inversion import magnitude_of

HERE = Path(__file__).parent
PROGRAM = [sys.executable, "-m", "afterslip"]
# fewer than of the demo: each increment has as many unknowns
SOURCES = {"along_strike": 8, "down_dip": 4}
# ends of the increments, which begin at the event
ENDS = ["60 d", "1 yr", "1344 d"]
# afterslip of metres after slip of tens of metres; `auto` takes nine times as long
PRIOR = {"amplitude": 0.1, "smoothness": 0.01}
# errors: of the measurements, and as a share of each datum those of the model
FLOORS = {
    "land": (0.02, 0.04, 0.02),
    "land-total": (0.01, 0.02, 0.05),
    "land-series": (0.01, 0.02, 0.05),
    "sea": (0.30, 0.50, 0.02),
    "sea-series": (0.05, 0.08, 0.05),
}


def maxwell(viscosity: float) -> dict[str, Any]:
    """Rheology of a layer or body."""
    return {"maxwell": {"viscosity": viscosity}}


def burgers(viscosity: float, kelvin: float) -> dict[str, Any]:
    """Rheology of a layer or body whose transient is as stiff as its spring."""
    return {
        "burgers": {
            "viscosity": viscosity,
            "kelvin_viscosity": kelvin,
            "kelvin_ratio": 1,
        }
    }


# rheology of the mantle above the slab, of that below the plate (None: the same), and
# whether there is an elastic plate
MODELS: dict[str, tuple[Any, Any, bool]] = {
    "uniform-1e19": (maxwell(1e19), None, True),
    "uniform-3e18": (maxwell(3e18), None, True),
    "weak-wedge": (maxwell(2e18), maxwell(1e19), True),
    "weak-ocean": (maxwell(1e19), maxwell(2e18), True),
    "burgers": (burgers(1e19, 1e18), None, True),
    "no-plate": (maxwell(1e19), None, False),
    "elastic": (None, None, True),
}
OCEAN = 220  # km below the interface to which the oceanic mantle has its own viscosity


def spec_of(name: str) -> dict[str, Any]:
    """Campaign of one model, which differs from the others in its model alone."""
    spec = deepcopy(load(HERE / "campaign.yaml"))
    mantle, ocean, plate = MODELS[name]
    model = spec["model"]
    layers = {layer["name"]: layer for layer in model["layers"]}
    layers["mantle"].pop("rheology")
    if mantle is None:
        layers["lower-mantle"].pop("rheology")
    else:
        layers["mantle"]["rheology"] = mantle
    if not plate:
        model["bodies"] = []
    if ocean is not None:
        whole = {"name": "ocean", "below": "interface.csv", "thickness": OCEAN}
        rock = {key: layers["mantle"][key] for key in ("vp", "vs", "rho")}
        model["bodies"].insert(0, {**whole, **rock, "rheology": ocean})
    spec["name"] = name
    spec["sources"].update(SOURCES)
    spec["times"] = {"until": "1350 d", "output": ["0 d", *ENDS]}
    del spec["stations"]
    spec["datasets"] = [data_set(key) for key in FLOORS]
    spec["inversions"] = [
        {
            "name": "slip",
            "datasets": list(FLOORS),
            "sign": {"dip": "positive"},
            "increments": {"ends": ENDS, **PRIOR},
        }
    ]
    return spec


def data_set(name: str) -> dict[str, Any]:
    """Describe a data set with its errors."""
    horizontal, vertical, relative = FLOORS[name]
    made: dict[str, Any] = {
        "name": name,
        "file": f"{name}.csv",
        "sigma": {"horizontal": horizontal, "vertical": vertical},
        "floor": {"relative": relative},
    }
    if name in RELATIVE:
        made["terms"] = ["offset"]
    return made


def run(name: str, out: Path) -> Path:
    """Solve and invert one model; what is there already is not solved again."""
    path, folder = out / f"{name}.yaml", out / name
    path.write_text(yaml.safe_dump(spec_of(name), sort_keys=False), "utf-8")
    subprocess.run([*PROGRAM, "run", path, "--out", folder], check=True)
    return folder


def study(folder: Path, out: Path, names: list[str], json_path: Path | None) -> None:
    """Run all models, compare them, print the tables, draw and write a record."""
    frame = load(HERE / "campaign.yaml")["model"]["frame"]
    for name in ("interface.csv", "outline.csv"):
        shutil.copy(HERE / name, out)
    counted = write(folder, (frame["lon0"], frame["lat0"]), out)
    print(", ".join(f"{n} lines of {name}" for name, n in counted.items()), flush=True)
    runs = {name: run(name, out) for name in names}
    found = {name: parts_of(path) for name, path in runs.items()}
    print("\n".join(table(found)), flush=True)
    plot.save(motion(found), out / "motion.png")
    plot.save(shares(found), out / "shares.png")
    if len(runs) > 1:
        command = [*PROGRAM, "compare-rheologies", *map(str, runs.values())]
        subprocess.run([*command, "--out", str(out / "comparison")], check=True)
        if json_path:
            write_record(found, out / "comparison", json_path)


def write_record(found: dict[str, Parts], comparison: Path, path: Path) -> None:
    """Write evidence, score, magnitudes and fit of each model."""
    with xr.open_dataset(comparison / "comparison.nc", engine="h5netcdf") as opened:
        compared = opened.load()
    rows: list[Record] = []
    for name, parts in found.items():
        one = compared.sel(model=name)
        moment = np.diff(parts.result["moment_history"].values[[0, -1]])
        numbers = {
            "log_evidence": float(one["log_evidence"]),
            "score": float(one["score"]),
            "mw_afterslip": magnitude_of(float(moment[0])),
        } | {f"chi_{key}": value for key, value in parts.chi.items()}
        rows += [
            record(f"postseismic_{key}", value, "1", note=name)
            for key, value in numbers.items()
        ]
    text = json.dumps(document(rows, device_name()), indent=1)
    path.write_text(text + "\n", "utf-8")


def main() -> None:
    """Run; a failure is one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--out", type=Path, default=Path("postseismic-out"))
    parser.add_argument("--json", type=Path, help="write a record of the comparison")
    options = parser.parse_args()
    names = options.models or list(MODELS)
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        sys.exit(f"postseismic: {unknown[0]} is none of {', '.join(MODELS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        folder = folder_of(os.environ.get("AFTERSLIP_DATA"))
        study(folder, options.out, names, options.json)
    except MissingDataError as error:
        sys.exit(f"postseismic: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"postseismic: {' '.join(map(str, error.cmd))} failed")


if __name__ == "__main__":
    main()
