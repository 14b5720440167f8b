"""The GPU path end to end: one campaign on LocalCUDACluster and on the CPU.

    python benchmarks/gpu_path/run.py --out DIR [--model-cache MODELS] [--json FILE]

Runs the same campaign twice through the embedded service, on GPU workers
(dask-cuda) and on one CPU core, and compares the Green's functions. Solve seconds
are those of the groups themselves, side by side in one run. `--model-cache` takes
finished models from another store, for a machine that cannot run gmsh.
"""

import argparse
import json
import shutil
import time
from pathlib import Path

import numpy as np
import xarray as xr

from afterslip import Campaign, Client
from afterslip_common.record import device_name, document

HERE = Path(__file__).parent


def solve(out: Path, backend: str, cache: Path | None) -> tuple[xr.Dataset, dict]:
    """Run the campaign on a backend; returns Green's functions and timings."""
    shutil.rmtree(out, ignore_errors=True)
    if cache is not None:
        shutil.copytree(cache, out / "store" / "models")
    spec = Campaign.from_yaml(HERE / "campaign.yaml").to_dict()
    spec["name"] = f"gpu-path-{backend}"
    spec["solver"] = {"backend": backend}
    begin = time.perf_counter()
    with Client.embedded(out, workers=1) as client:
        campaign = client.submit(Campaign.from_dict(spec, base=HERE))
        campaign.wait(progress=False, timeout=540)
        groups = campaign.groups()
        workers = client.workers()
        greens = campaign.greens().load()
        unknowns = campaign.refresh().data["model"]["n_unknowns"]
    seconds = sorted(group["seconds"] for group in groups)
    return greens, {
        "wall": time.perf_counter() - begin,
        # the first group also sets the model up
        "group": float(np.median(seconds)),
        "first": seconds[-1],
        "groups": len(groups),
        "unknowns": unknowns,
        "iterations": int(greens.iterations.max()),
        "residual": float(greens.residual.max()),
        "workers": [worker["name"] for worker in workers],
    }


def main() -> None:
    """Run both and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model-cache", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    gpu, fast = solve(options.out / "gpu", "gpu", options.model_cache)
    cpu, slow = solve(options.out / "cpu", "cpu", options.model_cache)
    largest = float(np.abs(cpu.displacement).max())
    difference = float(np.abs(gpu.displacement - cpu.displacement).max()) / largest
    print(json.dumps({"gpu": fast, "cpu": slow, "difference": difference}, indent=1))
    note = f"{fast['unknowns']} unknowns, four lanes, ten-year curve"
    records = [
        {
            "metric": "greens_gpu_against_cpu",
            "value": difference,
            "unit": "of the largest displacement",
            "baseline": 1e-7,
            "ratio": difference / 1e-7,
            "note": note,
        },
        {
            "metric": "group_curve_10yr_s",
            "value": fast["group"],
            "unit": "s",
            "baseline": slow["group"],
            "ratio": fast["group"] / slow["group"],
            "note": f"{note}; LocalCUDACluster against one CPU core, same run",
        },
    ]
    if options.json:
        content = document(records, device_name())
        options.json.write_text(json.dumps(content, indent=1) + "\n")
    if difference > 1e-7:
        raise SystemExit(f"GPU and CPU differ by {difference:.1e}")


if __name__ == "__main__":
    main()
