"""The verification suite on a machine without gmsh, items side by side.

    python benchmarks/verify_suite.py --meshes DIR --record      # here, with gmsh
    python benchmarks/verify_suite.py --meshes DIR --backend gpu --json FILE   # there

Each item is a process of its own with its own time limit; an item that runs out of
time or fails is written down as such.
"""

import argparse
import importlib
import json
import multiprocessing as mp
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from afterslip_solver.mesh import builder
from afterslip_solver.mesh.mesher import RawMesh
from afterslip_solver.model import GroupResult
from afterslip_solver.verification import names, run

# meshed by gmsh, and solved nowhere else in between
MESHED = ("patch", "conservation", "reciprocity", "halfspace", "curved", "strata")


def play(folder: Path, item: str) -> None:
    """Let meshes of this item come from files."""
    number = iter(range(1000))

    class Player:
        """Stands in for the mesher."""

        def __init__(self, box, size):
            self.box, self.size, self.surfaces = box, size, ()

        def mesh(self, layers=()):
            data = np.load(folder / f"{item}-{next(number)}.npz")
            surfaces = {k[2:]: data[k].astype(np.int64) for k in data if k[:2] == "s_"}
            return RawMesh(data["vertices"], data["cells"].astype(np.int64), surfaces)

        def __getattr__(self, name):
            return lambda *_, **__: None

    builder.Mesher, builder.quiet_gmsh = Player, nullcontext


def record(folder: Path, item: str, size: str) -> None:
    """Mesh what the item needs, and solve nothing."""
    number = iter(range(1000))
    mesher = builder.Mesher

    class Writer(mesher):
        """Keeps what it meshed."""

        def mesh(self, layers=()):
            raw = mesher.mesh(self, layers)
            parts = {f"s_{k}": v.astype(np.int32) for k, v in raw.surfaces.items()}
            np.savez_compressed(
                folder / f"{item}-{next(number)}.npz",
                vertices=raw.vertices,
                cells=raw.cells.astype(np.int32),
                **parts,
            )
            return raw

    class Unsolved:
        def __init__(self, model, settings):
            del model, settings

        def solve(self, slip, trace):
            lanes = np.shape(slip)[2]
            one, none = np.ones(lanes, dtype=np.int64), np.zeros(lanes)
            zeros = np.zeros((lanes, 1, len(trace), 3))
            pair = np.zeros((lanes, 1, 2))
            return GroupResult(
                "converged",
                "",
                zeros,
                pair,
                none,
                none,
                one,
                none[:0],
                none,
                none,
                0,
                1,
            )

    builder.Mesher = Writer
    module = importlib.import_module(f"afterslip_solver.verification.{item}")
    if item in ("halfspace", "curved", "strata"):
        module.prepared = Unsolved
        for name in ("dislocation_surface", "surface_displacement"):
            if hasattr(module, name):
                setattr(module, name, lambda points, *_: np.ones((len(points), 3)))
        if item == "strata":
            module.layered_displacement = lambda points, *_: np.ones(
                (4, len(points), 3)
            )
    with np.errstate(all="ignore"):
        list(module.run(size))


def child(folder, item, size, backend, out):
    """Run one item and leave its records."""
    begin = time.perf_counter()
    if item in MESHED:
        play(folder, item)
    try:
        checks = [c.record() for c in run(item, size, backend)]
        said = ""
    except Exception as error:  # noqa: BLE001
        checks, said = [], f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - begin
    text = {"item": item, "size": size, "seconds": seconds, "error": said}
    out.put({**text, "checks": checks})


def main() -> None:
    """Mesh, or run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--meshes", type=Path, required=True)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--items", nargs="*", default=names())
    parser.add_argument("--small", nargs="*", default=[], help="items at small size")
    parser.add_argument("--limit", type=float, default=150.0, help="seconds in all")
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = {i: "small" if i in options.small else "full" for i in options.items}
    if options.record:
        options.meshes.mkdir(exist_ok=True)
        for item in options.items:
            if item in MESHED:
                record(options.meshes, item, sizes[item])
                importlib.reload(builder)
        return
    spawn = mp.get_context("spawn")
    out, begin = spawn.Queue(), time.perf_counter()
    running = {}
    for item, size in sizes.items():
        arguments = (options.meshes, item, size, options.backend, out)
        running[item] = spawn.Process(target=child, args=arguments, daemon=True)
        running[item].start()
    found = []
    while running and time.perf_counter() - begin < options.limit:
        try:
            said = out.get(timeout=1.0)
        except Exception:  # noqa: BLE001
            continue
        running.pop(said["item"])
        found.append(said)
        good = sum(c["passed"] for c in said["checks"])
        print(
            f"{said['item']} ({said['size']}): {good} of {len(said['checks'])} in "
            f"{said['seconds']:.0f} s {said['error']}",
            flush=True,
        )
        for c in said["checks"]:
            print(f"  {c['level']:10s} {c['error']} / {c['limit']} {c['quantity']}")
        write(options, found, list(running), time.perf_counter() - begin)
    for process in running.values():
        process.terminate()
    write(options, found, list(running), time.perf_counter() - begin)


def write(options, found, missing, seconds):
    """Write what there is."""
    if options.json is None:
        return
    from afterslip_solver.benchmarks.record import device_name

    checks = [c for said in found for c in said["checks"]]
    items = [{k: v for k, v in said.items() if k != "checks"} for said in found]
    content = {
        "device": device_name() if options.backend == "gpu" else "CPU",
        "commit": options.commit,
        "backend": options.backend,
        "seconds": round(seconds, 1),
        "passed": not missing and all(c["passed"] for c in checks),
        "unfinished": missing,
        "items": items,
        "checks": checks,
    }
    options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
