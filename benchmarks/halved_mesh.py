"""Slip of the same data with two meshes, the second with elements half as large.

    python benchmarks/halved_mesh.py --json benchmarks/halved-mesh-2core.json

The fault, the true slip, the stations and their noise are those of `twin_slip.py`. The
data come from rectangles of Okada (1985); both campaigns run from spec to result with
`afterslip run`, defaults throughout, 5 by 4 unit sources of both components. The
largest slip is taken on the same grid of cells, from the slip chosen and from each
draw; how much it changes is given in widths of its own 68 % interval.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import twin_slip as twin
import xarray as xr

from afterslip_common.record import Record, document, record
from afterslip_solver.inversion import interval
from afterslip_solver.model import Float

FAULT_KM, FAR_KM = 3.0, 24.0


def spec(factor: float) -> dict:
    """Return the campaign with a mesh whose edges are multiplied by a factor."""
    size = {"fault": FAULT_KM * factor, "far": FAR_KM * factor}
    plane = {"x": 0, "y": 0, "top": twin.TOP / 1e3, "strike": 0, "dip": twin.DIP,
             "length": twin.LENGTH / 1e3, "width": twin.WIDTH / 1e3}  # fmt: skip
    return {
        "name": f"twin {size['fault']:g} km",
        "model": {
            "frame": {"kind": "local"},
            "domain": {"x": [-150, 150], "y": [-150, 150], "depth": 120},
            # Poisson's ratio of 0.25, as the rectangles have, and 30 GPa
            "layers": [{"name": "rock", "bottom": 120, "vp": 5.7735, "vs": 3.33333,
                        "rho": 2700}],
            "faults": [{"name": "main", "plane": plane}],
            "mesh": {"size": size},
        },
        "sources": {"fault": "main", "along_strike": twin.GRID[0],
                    "down_dip": twin.GRID[1], "components": ["strike", "dip"]},
        "times": {"until": "1 d", "output": ["0 d"]},
        "datasets": [{"name": "gnss", "file": "data.csv"}],
        "inversions": [{"name": "twin", "datasets": ["gnss"]}],
    }  # fmt: skip


def write_data(path: Path, seed: int) -> None:
    """Write the offsets of twenty stations with noise."""
    rng = np.random.default_rng(0)
    xy = rng.uniform([-25e3, -25e3], [30e3, 25e3], (twin.STATIONS, 2))
    clean = -np.einsum("rij,ij->r", twin.responses(xy)[:, 1], twin.truth())
    noise = twin.SIGMA * np.random.default_rng(seed).standard_normal(len(clean))
    values = (clean + noise).reshape(-1, 3)
    errors = twin.SIGMA.reshape(-1, 3)
    lines = ["station,x_km,y_km,east,north,up,sigma_east,sigma_north,sigma_up"]
    for k, (place, value, error) in enumerate(zip(xy, values, errors, strict=True)):
        numbers = [*(place / 1e3), *value, *error]
        lines.append(f"S{k:02d}," + ",".join(f"{number:.6f}" for number in numbers))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def peak(slip: Float, values: Float) -> Float:
    """(n,) m, largest slip over the cells of (n, n_source) slips."""
    half = len(values) // 2
    parts = [
        np.einsum("nk,kij->nij", slip[:, k], values[k])
        for k in (slice(0, half), slice(half, None))
    ]
    return np.hypot(*parts).max(axis=(1, 2))


def run(factor: float, folder: Path, workers: int) -> tuple[xr.Dataset, float]:
    """Run a campaign; return its result and the seconds it took."""
    path = folder / f"campaign-{factor:g}.json"
    path.write_text(json.dumps(spec(factor)), encoding="utf-8")
    begun, out = time.perf_counter(), folder / f"out-{factor:g}"
    command = [sys.executable, "-m", "afterslip", "run", str(path), "--out", str(out)]
    subprocess.run([*command, "--workers", str(workers)], check=True)
    (found,) = [*out.glob("result.nc"), *out.glob("twin*/result.nc")]
    return xr.load_dataset(found), time.perf_counter() - begun


def study(seed: int, workers: int) -> list[Record]:
    """Run both campaigns; return records."""
    grid, values = twin.shapes("free")
    records: list[Record] = []
    found = []
    with TemporaryDirectory() as name:
        write_data(Path(name) / "data.csv", seed)
        for factor in (1.0, 0.5):
            result, seconds = run(factor, Path(name), workers)
            place = np.column_stack(
                (result["source_component"].values, result["source_patch"].values)
            )
            order = [np.flatnonzero((place == row[1:]).all(axis=1))[0] for row in grid]
            slip = peak(result["slip"].values[None, order], values)[0]
            draws = peak(result["slip_draws"].values[:, order], values)
            low, high = interval(draws, 0.68)
            note = (
                f"elements of {FAULT_KM * factor:g} km on the fault; 68 % interval "
                f"{low:.3f} to {high:.3f} m; Mw {result.attrs['magnitude']:.3f}; "
                f"{seconds:.0f} s"
            )
            records.append(record("halved_mesh_peak", slip, "m", twin.SLIP, note))
            found.append((slip, high - low))
    (first, width), (second, _) = found
    note = "change of the largest slip with elements half as large"
    change = abs(second - first) / width
    unit = "widths of the 68 % interval"
    return [*records, record("halved_mesh_change", change, unit, 1.0, note)]


def main() -> None:
    """Print and write the records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    records = study(arguments.seed, arguments.workers)
    for item in records:
        print(
            f"{item['metric']:20s} {item['value']:8.3f} {item['unit']} {item['note']}"
        )
    if arguments.json:
        whole = document(records, f"{os.cpu_count()} cores")
        arguments.json.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
