"""A campaign of waves of 54 M nodes through the service, on one GPU.

    python benchmarks/waves_campaign.py [--sources 31 6] [--duration 120] [--json FILE]

240 x 240 x 60 km at 0.5 Hz with 15 voxels in the shortest wave, 30 stations. The
default is all of it: 372 sources through two minutes. With fewer sources the time of
all of them follows from that of the groups which find the voxels prepared, and the
record says so.
"""

import argparse
import csv
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from afterslip.client import Client
from afterslip.spec import parse_campaign
from afterslip_common.record import Record, device_name, document, record

SOURCES, DURATION = (31, 6), 120.0
# of four sources, two components a patch
GROUPS = 93


def spec(sources: tuple[int, int], duration: float, backend: str) -> dict[str, object]:
    """Return the campaign; its stations are in a file beside it."""
    rock = {"name": "rock", "bottom": 60, "vp": 5.2, "vs": 3.0, "rho": 2700}
    plane = {"x": 0, "y": 0, "top": 5, "strike": 0, "dip": 20, "length": 186}
    return {
        "name": "waves of a subduction zone",
        "physics": "waves",
        "model": {
            "frame": {"kind": "local"},
            "domain": {"x": [-120, 120], "y": [-120, 120], "depth": 60},
            "layers": [rock],
            "faults": [{"name": "slab", "plane": {**plane, "width": 72}}],
        },
        "sources": {
            "fault": "slab",
            "along_strike": sources[0],
            "down_dip": sources[1],
            "shape": "patch",
            "components": ["strike", "dip"],
        },
        "stations": {"file": "stations.csv"},
        "waves": {
            "frequency": 0.5,
            "duration": f"{duration} s",
            "sampling": "0.4 s",
            "source_time": {"kind": "smooth_step", "rise": "2.5 s"},
            "backend": backend,
        },
    }


def write_stations(path: Path) -> None:
    """Write 30 stations."""
    places = np.random.default_rng(1).uniform(-90.0, 90.0, (30, 2))
    with path.open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["station", "x_km", "y_km"])
        rows = [(f"S{n:02}", *map(float, xy)) for n, xy in enumerate(places)]
        table.writerows(rows)


def run(options: argparse.Namespace, folder: Path) -> list[Record]:
    """Run the campaign on an embedded service with one worker."""
    write_stations(folder / "stations.csv")
    sources = tuple(options.sources)
    content = spec(sources, options.duration, options.backend)
    with Client.embedded(folder / "out", workers=1) as client:
        begin = time.perf_counter()
        handle = client.submit(parse_campaign(content, folder))
        handle.wait(progress=False, timeout=options.timeout)
        wall = time.perf_counter() - begin
        groups = handle.groups()
        seconds = np.sort([group["seconds"] for group in groups])
        nodes = int(handle.refresh().data["model"]["n_unknowns"]) // 3
        greens = handle.greens()
        steps, left = int(greens["steps"].max()), float(greens["energy_left"].max())
    size = (
        f"{nodes / 1e6:.1f} M nodes, {steps} steps for {options.duration:g} s, FP32, "
        f"{len(groups)} groups of four sources; kinetic energy left {left:.1e}"
    )
    print("groups, s:", *(f"{value:.3g}" for value in seconds), flush=True)
    warm = float(np.median(seconds[:-1] if len(seconds) > 1 else seconds))
    whole = sources == SOURCES and options.duration == DURATION
    total = wall + (GROUPS - len(groups)) * warm
    measured = "measured" if whole else f"{wall:.4g} s of these groups and {warm:.4g} s"
    return [
        record(
            "waves_372_s",
            total,
            "s",
            None,
            f"{size}; from the request to the closed store; {measured}"
            + ("" if whole else f" for each of {GROUPS - len(groups)} others"),
        ),
        record(
            "waves_group_s",
            warm,
            "s",
            float(seconds[-1]),
            f"{size}; median of the groups but the slowest, which prepares the voxels "
            "and is the baseline",
        ),
    ]


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, nargs=2, default=SOURCES)
    parser.add_argument("--duration", type=float, default=DURATION, help="s")
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--timeout", type=float, default=3000.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="afterslip-bench-") as folder:
        found = run(options, Path(folder))
    for item in found:
        print(f"{item['metric']:20} {item['value']:.4g} s  {item['note']}", flush=True)
    if options.json:
        content = document(found, device_name())
        options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
