"""What flow alone does to stations after one smooth slip, in each rheology.

    python examples/tohoku2011/relaxation.py --out DIR [MODEL...]

No data and no inversion: 45 m of reverse slip at the trench off Miyagi, which falls off
like a Gaussian, in the models of ``postseismic.py``. Prints the motion of stations from
the 20th day to 2.85 years, cm to the east.
"""

import argparse
import csv
import subprocess
from pathlib import Path

import numpy as np
import xarray as xr
import yaml
from postseismic import HERE, MODELS, PROGRAM, spec_of
from scipy.interpolate import griddata

POINTS = {
    "MYGI": (142.917, 38.081), "MYGW": (142.433, 38.149), "KAMS": (143.263, 38.636),
    "KAMN": (143.362, 38.888), "FUKU": (142.081, 37.166), "CHOS": (141.670, 35.503),
    "J550": (141.501, 38.301), "J188": (140.234, 39.658),
}  # fmt: skip
PEAK, MIDDLE, WIDTH = 45.0, (143.9, 38.05), (0.75, 0.8)  # m, degrees


def write_slip(path: Path) -> None:
    """Write a table of reverse slip on the interface."""
    rows = np.genfromtxt(HERE / "interface.csv", delimiter=",", skip_header=1)
    lon, lat = (a.ravel() for a in np.mgrid[140.5:145.0:0.1, 34.8:41.2:0.1])
    depth = griddata(rows[:, :2], rows[:, 2], (lon, lat))
    off = ((lon - MIDDLE[0]) / WIDTH[0]) ** 2 + ((lat - MIDDLE[1]) / WIDTH[1]) ** 2
    dip = PEAK * np.exp(-0.5 * off)
    lines = [
        f"{x:.2f},{y:.2f},{z:.3f},0,{d:.4f}"
        for x, y, z, d in zip(lon, lat, depth, dip, strict=True)
        if np.isfinite(z)
    ]
    text = "\n".join(["lon,lat,depth_km,strike,dip", *lines])
    path.write_text(text + "\n", "utf-8")


def motion(name: str, out: Path) -> xr.DataArray:
    """Solve one model; return (station,) m east since the first time after slip."""
    whole = spec_of(name)
    spec = {key: whole[key] for key in ("name", "model", "solver")}
    spec["slip"], spec["points"] = {"file": "slip.csv"}, {"file": "points.csv"}
    spec["times"] = {"until": "1041 d", "output": ["0 d", "20 d", "1041 d"]}
    path = out / f"flow-{name}.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False), "utf-8")
    command = [*PROGRAM, "forward", path, "--out", path.with_suffix(".nc")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with xr.open_dataset(path.with_suffix(".nc"), engine="h5netcdf") as found:
        east = found["displacement"].load()[..., 0]
    return east[-1] - east[-2]


def main() -> None:
    """Run; print a table of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--out", type=Path, default=Path("relaxation-out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in ("interface.csv", "outline.csv"):
        (options.out / name).write_bytes((HERE / name).read_bytes())
    write_slip(options.out / "slip.csv")
    with (options.out / "points.csv").open("w", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(["station", "lon", "lat"])
        table.writerows([name, *place] for name, place in POINTS.items())
    print("| cm east | " + " | ".join(POINTS) + " |")
    print("|---" * (1 + len(POINTS)) + "|")
    for name in options.models or [key for key in MODELS if key != "elastic"]:
        cells = [f"{100 * float(value):+.0f}" for value in motion(name, options.out)]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
