"""A campaign of two checkouts of the project, in turn on the same mesh and machine.

    python benchmarks/commits.py MESH.npz OLD NEW [--repeat 3] [--json FILE]

OLD and NEW are folders, MESH.npz is written by `campaign.py --keep-mesh`. Each builds
the model, starts the service `--repeat` times, in turn with the other, up to the first
group's begin, and then runs the whole campaign. Nothing needs to be installed but what
the project depends on.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

FOLDERS = ("common", "api", "service", "solver", "workers", "migrations", "benchmarks")
FIRST = (
    "campaign_model_s",
    "service_start_s",
    "campaign_before_groups_s",
    "start_and_before_groups_s",
)
WHOLE = (
    "campaign_pace_s",
    "campaign_phase_solving_s",
    "campaign_phase_writing_s",
)


def environment(checkout: Path, out: Path) -> dict[str, str]:
    """Return variables with which Python imports a checkout, entry points too."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    about = out / "afterslip-0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Name: afterslip\nVersion: 0\n")
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    lines = []
    for group, points in groups.items():
        lines += [f"[{group}]", *(f"{name} = {at}" for name, at in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    places = [str(checkout / folder) for folder in FOLDERS]
    old = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(out), *places, *([old] if old else [])])
    return {**os.environ, "PYTHONPATH": path}


def step(name: str, options: argparse.Namespace, store: Path) -> dict[str, float]:
    """Do one step in the checkout that is imported."""
    sys.path.pop(0)  # the folder of this file, which may be another checkout's
    runner: Any = import_module("campaign")

    from afterslip import Campaign
    from afterslip.client import Client
    from afterslip_service.benchmarks import campaign

    along, down = options.sources
    content = Campaign.from_yaml(runner.SPEC).to_dict()
    spec = campaign.campaign_spec(content, options.refine, along, down, options.backend)
    stored: Any = getattr(runner, "StoredMesh", None) or runner.CacheScope
    if hasattr(runner, "StoredMesh"):
        spec["solver"]["space_error"] = False
    stored.path = options.mesh
    runner.builder.Mesher, runner.builder.quiet_gmsh = stored, nullcontext
    base = runner.SPEC.parent
    begin = time.perf_counter()
    if name == "model":
        return model(runner, spec, base, store, begin)
    if name == "whole":
        found = campaign.records(spec, base, store, options.timeout)
        return {item["metric"]: item["value"] for item in found}
    with Client.embedded(store, workers=1) as client:
        started = time.perf_counter()
        handle = client.submit(Campaign.from_dict(spec, base=base))
        for event in handle.events():
            print(f"{time.perf_counter() - started:7.2f} {event.kind} {event.data}")
            if event.data.get("job") == "group":
                break
        first = time.perf_counter()
        handle.cancel()
    return {
        "service_start_s": started - begin,
        "campaign_before_groups_s": first - started,
        "start_and_before_groups_s": first - begin,
    }


def model(
    runner: Any, spec: dict[str, Any], base: Path, store: Path, begin: float
) -> dict[str, float]:
    """Build the model by what the checkout's `campaign.py` imports."""
    parsed, files = runner.parse_campaign(spec), runner.LocalFiles(base)
    inputs = runner.resolve(parsed, files)
    backend = runner.open_store(store / "store")
    backend.prepare()
    runner.get_or_build(
        backend,
        runner.model_digest(parsed, files),
        runner.model_file,
        lambda: runner.build_model(parsed.model, inputs, files, lambda *_: None),
    )
    return {"campaign_model_s": time.perf_counter() - begin}


def main() -> None:
    """Run both in turn, or one step of one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mesh", type=Path)
    parser.add_argument("checkouts", type=Path, nargs=2, metavar="CHECKOUT")
    parser.add_argument("--refine", type=int, default=3)
    parser.add_argument("--sources", type=int, nargs=2, default=(12, 2))
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--commits", nargs=2, default=("old", "new"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step", nargs=2, metavar=("NAME", "STORE"))
    options = parser.parse_args()
    if options.step:
        found = step(options.step[0], options, Path(options.step[1]))
        print(json.dumps(found), flush=True)
        return
    figures: list[dict[str, list[float]]] = [{}, {}]
    with tempfile.TemporaryDirectory(prefix="afterslip-commits-") as folder:
        out = Path(folder)
        environments = [
            environment(checkout.resolve(), out / f"path-{k}")
            for k, checkout in enumerate(options.checkouts)
        ]
        for name in ["model", *["first"] * options.repeat, "whole"]:
            for k, variables in enumerate(environments):
                asked = [*sys.argv[1:], "--step", name, str(out / f"store-{k}")]
                done = subprocess.run(
                    [sys.executable, __file__, *asked],
                    env=variables,
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                print(done.stdout, flush=True)
                for key, value in json.loads(done.stdout.splitlines()[-1]).items():
                    figures[k].setdefault(key, []).append(value)
    write(options, figures)


def write(options: argparse.Namespace, figures: list[dict[str, list[float]]]) -> None:
    """Print and write medians of both."""
    from afterslip_common.record import device_name, document, record

    old, new = figures
    records = []
    count = 2 * options.sources[0] * options.sources[1]
    for key in [*FIRST, f"campaign_{count}_s", *WHOLE]:
        before, after = old.get(key), new[key]
        base = float(np.median(before)) if before else None
        value = float(np.median(after))
        each = [", ".join(f"{x:.2f}" for x in found or ()) for found in (after, before)]
        note = (
            f"median of {each[0]}; baseline: {options.commits[0]}, in turn: {each[1]}"
        )
        records.append(record(key, value, "s", base, note))
        print(f"{key:28} {value:9.3f} {base or 0:9.3f} {note}")
    if options.json:
        content = document(records, device_name())
        content["commit"] = options.commits[1]
        options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
