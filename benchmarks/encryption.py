"""What TLS between the processes of a local cluster costs.

    python benchmarks/encryption.py [--rounds 3] [--json FILE]

Plain and encrypted in turns, in one run: the start of cluster and workers, a task that
does nothing, and a small campaign on an embedded service, from its first accepted
group to the last.
"""

import argparse
import json
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import distributed

from afterslip.client import Client
from afterslip_common.record import Record, device_name, document, record
from afterslip_service.benchmarks import phases
from afterslip_service.placement import cluster
from afterslip_service.placement.local import LocalCluster

WORKERS = 2
TASKS = 300
STATIONS = "station,x_km,y_km\n" + "".join(
    f"S{number:02d},{10 * number - 75},{7 * number - 50}\n" for number in range(16)
)
LAYERS = [
    {"name": "crust", "bottom": 30, "vp": 6.4, "vs": 3.7, "rho": 2800},
    {"name": "mantle", "bottom": 150, "vp": 8.0, "vs": 4.6, "rho": 3300,
     "rheology": {"maxwell": {"viscosity": 1e19}}},
]  # fmt: skip
PLANE = {"x": 0, "y": 0, "top": 0, "strike": 0, "dip": 30, "length": 80, "width": 50}
SPEC = {
    "name": "encryption",
    "model": {
        "frame": {"kind": "local"},
        "domain": {"x": [-200, 200], "y": [-200, 200], "depth": 150},
        "layers": LAYERS,
        "faults": [{"name": "main", "plane": PLANE}],
        "mesh": {"size": {"fault": 20, "far": 100}},
    },
    "sources": {"fault": "main", "along_strike": 6, "down_dip": 4},
    "times": {"until": "10 yr", "output": ["0 d", "30 d", "10 yr"]},
    "stations": {"file": "stations.csv"},
}


def start_and_tasks(security: distributed.Security | None) -> tuple[float, float]:
    """Return the seconds of a start, and of a task that does nothing."""
    begin = time.perf_counter()
    made = LocalCluster(WORKERS, security)
    try:
        with distributed.Client(made.dask, set_as_default=False) as client:
            client.wait_for_workers(WORKERS)
            started = time.perf_counter() - begin
            client.submit(abs, -1).result()
            begin = time.perf_counter()
            for number in range(TASKS):
                client.submit(abs, number, pure=False).result()
            return started, (time.perf_counter() - begin) / TASKS
    finally:
        made.close()


def groups_per_second(security: distributed.Security | None) -> float:
    """Return the rate of accepted groups of a small campaign."""
    cluster.LocalCluster = partial(LocalCluster, security=security)
    with tempfile.TemporaryDirectory() as out:
        (Path(out) / "stations.csv").write_text(STATIONS)
        with Client.embedded(Path(out) / "run", workers=WORKERS) as client:
            handle = client.submit(SPEC, files_base=out)
            handle.wait(progress=False, timeout=600)
            accepted = sorted(phases.accepted_at(handle.events()).values())
    return (len(accepted) - 1) / (accepted[-1] - accepted[0])


def beside(name: str, unit: str, plain: list[float], tls: list[float]) -> Record:
    """Return the median with TLS beside that without."""
    spread = ", ".join(
        f"{what} {min(found):.4g} to {max(found):.4g}"
        for what, found in (("plain", plain), ("TLS", tls))
    )
    median = statistics.median
    return record(
        name, median(tls), unit, median(plain), f"{len(tls)} rounds: {spread}"
    )


def main() -> None:
    """Measure, print and write the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    starts, tasks, rates = ([], []), ([], []), ([], [])
    # the first campaign compiles kernels
    groups_per_second(None)
    for _ in range(options.rounds):
        # a Security without certificates is plain TCP; None makes keys
        for kind, security in enumerate((distributed.Security(), None)):
            start, task = start_and_tasks(security)
            starts[kind].append(start)
            tasks[kind].append(1e3 * task)
            rates[kind].append(groups_per_second(security))
    records = [
        beside("local_cluster_start", "s", *starts),
        beside("empty_task", "ms", *tasks),
        beside("small_campaign", "groups/s", *rates),
    ]
    for item in records:
        print(f"{item['metric']:20} {item['value']:9.4g} {item['unit']:9}"
              f" plain {item['baseline']:9.4g}  ratio {item['ratio']:.3f}"
              f"  {item['note']}")  # fmt: skip
    if options.json:
        text = json.dumps(document(records, device_name()), indent=1)
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
