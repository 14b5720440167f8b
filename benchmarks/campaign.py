"""A campaign of many Green's functions end to end through the service.

    python benchmarks/campaign.py --keep-mesh MESH.npz          # where gmsh is
    python benchmarks/campaign.py --mesh MESH.npz [--json FILE] # where a GPU is
    python benchmarks/campaign.py --mesh MESH.npz --gpus 1,4    # where several are

The GPU machine may lack gmsh: the first form keeps the unrefined mesh that gmsh makes
of the campaign, the others refine that. The model is built before the clock of the
campaign starts, with the memory settings of a service's computing processes; what that
took is a record of its own. Before that everything is compiled, as a worker does from
its start on, while gmsh works; what that took, on a machine that had compiled nothing,
is a record too.

The third form measures the same groups on each number of GPUs, whose workers have set
the model up before; without a GPU it starts as many processes. With and without
`--without-space-error`, one after the other, the second form's records show what
estimating the mesh's error costs.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from afterslip import Campaign
from afterslip.identity import model_digest
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_common.record import Record, record, write_records
from afterslip_service.benchmarks import campaign, fleet
from afterslip_solver.mesh import builder
from afterslip_solver.mesh.mesher import RawMesh
from afterslip_workers.engines.models import get_or_build
from afterslip_workers.engines.viscoelastic import model_file
from afterslip_workers.engines.viscoelastic.building import build_model
from afterslip_workers.machine import heap
from afterslip_workers.store.open import open_store

SPEC = Path(__file__).parents[1] / "examples" / "tohoku2011" / "campaign.yaml"


class StoredMesh:
    """Stands for the mesher: gives the mesh that a file holds."""

    path = Path()

    def __init__(self, box: object, size: object) -> None:
        self.box, self.size = box, size
        self.surfaces: tuple[str, ...] = ()

    def add_spline(self, *shape: object) -> None:
        """Take the surface, which the mesh holds already."""

    def add_horizon(self, depth: float) -> None:
        """Take the bottom of a layer, which the mesh holds, or not, already."""

    def mesh(self, layers: object) -> RawMesh:
        """Read the mesh."""
        del layers
        with np.load(self.path) as stored:
            names = [key[2:] for key in stored if key.startswith("s_")]
            surfaces = {name: stored[f"s_{name}"] for name in names}
            return RawMesh(stored["vertices"], stored["cells"], surfaces)


def keep_mesh(path: Path, campaign: Campaign, folder: Path) -> None:
    """Write the unrefined mesh of a campaign.

    Parameters
    ----------
    folder : of its files.
    """
    made = builder.Mesher.mesh
    path.unlink(missing_ok=True)

    def mesh(self: builder.Mesher, layers: object) -> RawMesh:
        raw = made(self, layers)
        if path.exists():  # a coarser one, for the error of the mesh
            return raw
        surfaces = {f"s_{name}": value for name, value in raw.surfaces.items()}
        np.savez(path, vertices=raw.vertices, cells=raw.cells, **surfaces)
        return raw

    builder.Mesher.mesh = mesh
    content = campaign.to_dict()
    # to refine it is left to its reader
    content["model"]["mesh"] = {**content["model"]["mesh"], "refine": 0}
    spec, files = parse_campaign(content), LocalFiles(folder)
    build_model(spec.model, resolve(spec, files), files, lambda _phase: None)
    print(f"wrote {path}, {path.stat().st_size / 1e6:.1f} MB")


def start_again_as_computing() -> None:
    """Do all in a process whose memory is that of those which build models.

    The C library reads its settings when a process starts.
    """
    if not heap.VARIABLES.items() <= os.environ.items():
        program, settings = [sys.executable, *sys.argv], os.environ | heap.VARIABLES
        sys.exit(subprocess.run(program, env=settings, check=False).returncode)


def main() -> None:
    """Keep the mesh, or run the campaign on it."""
    start_again_as_computing()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep-mesh", type=Path)
    parser.add_argument("--mesh", type=Path)
    parser.add_argument("--refine", type=int, default=3)
    sizes = "km and growth of the mesh before it is refined"
    names = ("FAULT", "FAR", "GROWTH")
    parser.add_argument("--size", type=float, nargs=3, metavar=names, help=sizes)
    parser.add_argument("--sources", type=int, nargs=2, default=(31, 6))
    parser.add_argument("--gpus", help="numbers of them, one of which is 1")
    parser.add_argument("--groups", type=int, default=16, help="with --gpus")
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--without-space-error", action="store_true")
    parser.add_argument("--timeout", type=float, default=900.0)
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.mesh:
        StoredMesh.path = options.mesh
        builder.Mesher, builder.quiet_gmsh = StoredMesh, nullcontext
    content = Campaign.from_yaml(SPEC).to_dict()
    if options.size:
        size = dict(zip(("fault", "far", "growth"), options.size, strict=True))
        content["model"]["mesh"] = {"size": size}
    if options.keep_mesh:
        keep_mesh(
            options.keep_mesh, Campaign.from_dict(content, SPEC.parent), SPEC.parent
        )
        return
    spec = campaign.campaign_spec(
        content, options.refine, *options.sources, options.backend
    )
    spec["solver"]["space_error"] = not options.without_space_error
    with tempfile.TemporaryDirectory(prefix="afterslip-bench-") as folder:
        out = Path(folder)
        begin = time.perf_counter()
        if options.backend == "gpu":
            program = [sys.executable, "-m", "afterslip_workers.compiling"]
            subprocess.run([*program, str(os.getpid())], check=True)
        compile_s = time.perf_counter() - begin
        begin = time.perf_counter()
        parsed, files = parse_campaign(spec), LocalFiles(SPEC.parent)
        inputs = resolve(parsed, files)
        backend = open_store(out / "store")
        backend.prepare()
        get_or_build(
            backend,
            model_digest(parsed, files),
            model_file,
            lambda: build_model(parsed.model, inputs, files, print),
        )
        model_s = time.perf_counter() - begin
        print(f"model {model_s:.1f} s", flush=True)
        if options.gpus:
            counts = [int(count) for count in options.gpus.split(",")]
            sizes = (counts, options.groups)
            more = options.timeout, lambda found: write(options, found)
            records = fleet.records(spec, SPEC.parent, out, *sizes, *more)
        else:
            records = campaign.records(spec, SPEC.parent, out, options.timeout)
        note = "refined, numbered, materials, written; gmsh's part is not in it"
        records.append(record("campaign_model_s", model_s, "s", None, note))
        note = "kernels, by the process that a worker starts; nothing if there are all"
        records.append(record("campaign_compile_s", compile_s, "s", None, note))
    for item in records:
        value = f"{item['value']:12.4g} {item['unit']}"
        print(f"{item['metric']:28} {value}  {item['note']}")
    write(options, records)


def write(options: argparse.Namespace, records: list[Record]) -> None:
    """Write what there is."""
    write_records(options.json, records, options.commit)


if __name__ == "__main__":
    main()
