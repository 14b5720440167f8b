"""A campaign of waves of 54 M nodes through the service, on one GPU, in two ways.

    python benchmarks/waves_campaign.py [--direct 3 2] [--json FILE]
    python benchmarks/waves_campaign.py --whole FOLDER [--gpus K] [--kill S]
        [--json FILE]

240 x 240 x 60 km at 0.5 Hz with 15 voxels in the shortest wave, 30 stations, 372
sources through two minutes. All of them by reciprocity, whose 23 runs are measured
whole; and the sources themselves, as many patches as --direct says: the time of all
follows from that of the groups which find the voxels prepared, and the record says so.
The second form runs all sources themselves in a folder, and nothing else, with one
worker a GPU. After S seconds it kills itself; run again, it goes on, and the record has
the time of all runs.
"""

import argparse
import csv
import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import numpy as np

from afterslip.client import Client
from afterslip.spec import parse_campaign
from afterslip_common.record import Record, device_name, document, record

SOURCES = 31, 6
# of four sources, two components a patch
GROUPS = 93


def spec(options: argparse.Namespace, way: str) -> dict[str, object]:
    """Return the campaign; its stations are in a file beside it."""
    sources = SOURCES if way == "receivers" else options.direct
    rock = {"name": "rock", "bottom": 60, "vp": 5.2, "vs": 3.0, "rho": 2700}
    # patches of 6 by 12 km in both ways
    size = {"length": 6 * sources[0], "width": 12 * sources[1]}
    plane = {"x": 0, "y": 0, "top": 5, "strike": 0, "dip": 20, **size}
    return {
        "name": f"waves of a subduction zone by {way}",
        "physics": "waves",
        "model": {
            "frame": {"kind": "local"},
            "domain": {"x": [-120, 120], "y": [-120, 120], "depth": 60},
            "layers": [rock],
            "faults": [{"name": "slab", "plane": plane}],
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
            "frequency": options.frequency,
            "duration": f"{options.duration} s",
            "sampling": f"{0.2 / options.frequency:g} s",
            "source_time": {
                "kind": "smooth_step",
                "rise": f"{1.25 / options.frequency:g} s",
            },
            "solve": way,
            "backend": options.backend,
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


def solved(client: Client, options: argparse.Namespace, folder: Path, way: str):
    """Return wall time, times of groups and what was solved, of one campaign."""
    begin = time.perf_counter()
    name = f"waves of a subduction zone by {way}"
    # one that was killed goes on by itself
    found = [known for known in client.campaigns() if known.name == name]
    handle = (
        found[0] if found else client.submit(parse_campaign(spec(options, way), folder))
    )
    handle.wait(progress=False, timeout=options.timeout)
    wall = time.perf_counter() - begin
    seconds = np.sort([group["seconds"] for group in handle.groups()])
    print(way, f"{wall:.4g} s; of groups, s:", *(f"{s:.3g}" for s in seconds[-5:]))
    nodes = int(handle.refresh().data["model"]["n_unknowns"]) // 3
    greens = handle.greens()
    left = float(greens["energy_left"].max())
    size = (
        f"{nodes / 1e6:.3g} M nodes, {int(greens['steps'].max())} steps for "
        f"{options.duration:g} s, FP32; kinetic energy left {left:.1e}"
    )
    return wall, seconds, size


def _directly(
    client: Client, options: argparse.Namespace, folder: Path
) -> Iterator[Record]:
    """Solve some sources themselves; all of them follow from that."""
    wall, seconds, size = solved(client, options, folder, "sources")
    warm = float(np.median(seconds[:-1]))
    yield record(
        "waves_group_s",
        warm,
        "s",
        float(seconds[-1]),
        f"{size}; median of the groups of four sources but the slowest, which "
        "prepares the voxels and is the baseline",
    )
    rest = GROUPS - len(seconds)
    yield record(
        "waves_372_s",
        wall + rest * warm,
        "s",
        None,
        f"{size}; 372 sources: {wall:.4g} s measured from the request to the "
        f"closed store of {len(seconds)} groups, and {warm:.4g} s for each of "
        f"{rest} others",
    )


def whole(options: argparse.Namespace) -> Iterator[Record]:
    """Run all sources themselves, if need be in several runs."""
    folder = options.whole
    folder.mkdir(parents=True, exist_ok=True)
    write_stations(folder / "stations.csv")
    options.direct = SOURCES
    taken = folder / "seconds.txt"
    before = (
        [float(line) for line in taken.read_text().split()] if taken.exists() else []
    )
    begin = time.perf_counter()

    def kill() -> None:
        with taken.open("a") as stream:
            stream.write(f"{time.perf_counter() - begin}\n")
        os.killpg(0, signal.SIGKILL)

    timer = Timer(options.kill, kill)
    timer.daemon = True
    timer.start()
    with Client.embedded(folder / "out", workers=options.gpus) as client:
        wall, seconds, size = solved(client, options, folder, "sources")
        timer.cancel()
    ends = ", ".join(f"{some:.4g}" for some in before)
    killed = (
        f"killed with all its processes after {ends} s and run again; "
        if before
        else ""
    )
    some = "" if options.gpus == 1 else f"{options.gpus}_gpus_"
    yield record(
        f"waves_372_whole_{some}s",
        wall + sum(before),
        "s",
        float(seconds.sum()),
        f"{size}; 372 sources in {len(seconds)} groups, all measured, from the request "
        f"to the closed store, {options.gpus} workers of one GPU; {killed}baseline: "
        f"the sum of the groups' times, of which the median is "
        f"{np.median(seconds):.4g} s and the longest {seconds[-1]:.4g} s",
    )


def run(options: argparse.Namespace, folder: Path) -> Iterator[Record]:
    """Run the campaigns on an embedded service with one worker."""
    write_stations(folder / "stations.csv")
    with Client.embedded(folder / "out", workers=1) as client:
        if options.direct[0]:
            yield from _directly(client, options, folder)
        wall, seconds, size = solved(client, options, folder, "receivers")
        yield record(
            "waves_372_receivers_s",
            wall,
            "s",
            float(seconds[-1]),
            f"{size}; 372 sources by reciprocity with 30 stations, 23 runs, measured "
            "from the request to the closed store; baseline: the group that runs them",
        )


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--direct", type=int, nargs=2, default=(3, 2), help="0 0: none")
    parser.add_argument("--whole", type=Path, metavar="FOLDER")
    parser.add_argument("--gpus", type=int, default=1, help="with --whole")
    parser.add_argument("--kill", type=float, default=1e6, help="after so many s")
    parser.add_argument("--duration", type=float, default=120.0, help="s")
    parser.add_argument("--frequency", type=float, default=0.5, help="Hz")
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--timeout", type=float, default=3000.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(prefix="afterslip-bench-") as folder:
        made = whole(options) if options.whole else run(options, Path(folder))
        for item in made:
            print(item["metric"], f"{item['value']:.4g} s", item["note"], flush=True)
            found.append(item)
            if options.json:
                text = json.dumps(document(found, device_name()), indent=1)
                options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
