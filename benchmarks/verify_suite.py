"""The verification suite on a machine without gmsh, parts of items side by side.

    python benchmarks/verify_suite.py --meshes DIR --record      # here, with gmsh
    python benchmarks/verify_suite.py --meshes DIR --backend gpu --json FILE   # there

A few processes share the cores and the GPU, and take one part after the other, those
that take longest first. What fails or does not end within the limit is written down as
such. The record holds this run alone.
"""

import argparse
import importlib
import json
import multiprocessing as mp
import os
import queue
import subprocess
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from afterslip_solver.mesh import builder
from afterslip_solver.mesh.mesher import Mesher, RawMesh, quiet_gmsh
from afterslip_solver.model import GroupResult
from afterslip_solver.verification import names, parts, run

# meshed by gmsh, and solved nowhere else in between
MESHED = ("patch", "conservation", "reciprocity", "halfspace", "curved", "strata")
# begun first, longest first; the others follow from the last of the list to the first
LONG = ("strata", "halfspace", "curved", "scec", "robustness", "plates", "restoring")


def tasks(items: list[str]) -> list[tuple[str, str]]:
    """(item, part), the longest first."""
    rest = [name for name in reversed(names()) if name not in LONG]
    order = [name for name in (*LONG, *rest) if name in items]
    return [(name, part) for name in order for part in parts(name)]


def stem(folder: Path, item: str, part: str, number: int) -> Path:
    """File of a part's mesh."""
    words = "-".join(filter(None, (item, part.replace(",", "").replace(" ", "-"))))
    return folder / f"{words}-{number}.npz"


def play(folder: Path, item: str, part: str) -> None:
    """Let meshes of this part come from files."""
    number = iter(range(1000))

    class Player:
        """Stands in for the mesher."""

        def __init__(self, box, size):
            self.box, self.size, self.surfaces = box, size, ()

        def mesh(self, layers=()):
            del layers
            data = np.load(stem(folder, item, part, next(number)))
            surfaces = {k[2:]: data[k].astype(np.int64) for k in data if k[:2] == "s_"}
            return RawMesh(data["vertices"], data["cells"].astype(np.int64), surfaces)

        def __getattr__(self, name):
            return lambda *_, **__: None

    builder.Mesher, builder.quiet_gmsh = Player, nullcontext


class Unsolved:
    """Stands in for the solver while meshes are recorded."""

    def __init__(self, model, settings):
        del model, settings

    def solve(self, slip, trace):
        """Zeros."""
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


def record(folder: Path, item: str, part: str, size: str) -> None:
    """Mesh what the part needs; refine and solve nothing."""
    number = iter(range(1000))

    class Writer(Mesher):
        """Keeps what it meshed."""

        def mesh(self, layers=()):
            raw = Mesher.mesh(self, layers)
            surfaces = {f"s_{k}": v.astype(np.int32) for k, v in raw.surfaces.items()}
            np.savez_compressed(
                stem(folder, item, part, next(number)),
                vertices=raw.vertices,
                cells=raw.cells.astype(np.int32),
                **surfaces,
            )
            return raw

    builder.Mesher = Writer
    builder.refine_uniformly = lambda mesh, triangles, curved: (mesh, triangles, 0)  # noqa: ARG005
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
        run(item, size, part=part)


def measure(folder, item, part, size, backend) -> dict:
    """Run one part; its entry of the record, checks included."""
    begin = time.perf_counter()
    if item in MESHED:
        play(folder, item, part)
    else:
        builder.Mesher, builder.quiet_gmsh = Mesher, quiet_gmsh
    try:
        checks = [c.record() for c in run(item, size, backend, part)]
        said = ""
    except Exception as error:  # noqa: BLE001
        checks, said = [], f"{type(error).__name__}: {error}"
    seconds = round(time.perf_counter() - begin, 1)
    entry = {"item": item, "part": part, "size": size, "seconds": seconds}
    return {**entry, "error": said, "checks": checks}


def work(folder, sizes, backend, todo, out):
    """Take parts until there are none."""
    while True:
        task = todo.get()
        if task is None:
            return
        item, part = task
        out.put(measure(folder, item, part, sizes[item], backend))


def start(options, sizes, todo):
    """Begin processes that share what is to do."""
    cores = len(os.sched_getaffinity(0))
    # libraries read these when a process begins
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(max(1, cores // options.workers))
    spawn = mp.get_context("spawn")
    line, out = spawn.Queue(), spawn.Queue()
    for task in [*todo, *[None] * options.workers]:
        line.put(task)
    arguments = (options.meshes, sizes, options.backend, line, out)
    processes = [
        spawn.Process(target=work, args=arguments, daemon=True)
        for _ in range(options.workers)
    ]
    for process in processes:
        process.start()
    return processes, line, out


def main() -> None:
    """Mesh, or run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--meshes", type=Path, required=True)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--items", nargs="*", default=names())
    parser.add_argument("--small", nargs="*", default=[], help="items at small size")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds in all")
    parser.add_argument("--commit", help="default: what git says")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = {i: "small" if i in options.small else "full" for i in options.items}
    todo = tasks(options.items)
    if options.record:
        options.meshes.mkdir(exist_ok=True)
        for item, part in todo:
            if item in MESHED:
                record(options.meshes, item, part, sizes[item])
        return
    options.commit = options.commit or head()
    begin, missing = time.perf_counter(), list(todo)
    # the line of tasks lives as long as this name
    processes, _line, out = start(options, sizes, todo)
    found = []
    while missing and time.perf_counter() - begin < options.limit:
        alive = any(process.is_alive() for process in processes)
        try:
            said = out.get(timeout=1.0)
        except queue.Empty:
            if not alive:
                break
            continue
        missing.remove((said["item"], said["part"]))
        found.append(said)
        show(said)
        write(options, found, missing, time.perf_counter() - begin)
    for process in processes:
        process.terminate()
    write(options, found, missing, time.perf_counter() - begin)
    print(f"{time.perf_counter() - begin:.0f} s, unfinished: {missing or 'none'}")


def show(said) -> None:
    """Say how a part went."""
    good = sum(c["passed"] for c in said["checks"])
    print(
        f"{said['item']} {said['part']} ({said['size']}): {good} of "
        f"{len(said['checks'])} in {said['seconds']:.0f} s {said['error']}",
        flush=True,
    )
    for c in said["checks"]:
        print(f"  {c['level']:10s} {c['error']} / {c['limit']} {c['quantity']}")


def head() -> str:
    """Commit of the working tree; --commit names that of a copy without history."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    here = Path(__file__).parent
    try:
        said = subprocess.run(
            command, cwd=here, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit("--commit: git knows none here; name it") from error
    return said.stdout.strip()


def write(options, found, missing, seconds):
    """Write what there is, in the suite's order."""
    if options.json is None:
        return
    from afterslip_common.record import device_name

    order = {
        task: k for k, task in enumerate((n, p) for n in names() for p in parts(n))
    }
    found = sorted(found, key=lambda said: order[said["item"], said["part"]])
    checks = [c for said in found for c in said["checks"]]
    failed = any(said["error"] for said in found)
    content = {
        "device": device_name() if options.backend == "gpu" else "CPU",
        "cores": len(os.sched_getaffinity(0)),
        "processes": options.workers,
        "commit": options.commit,
        "backend": options.backend,
        "seconds": round(seconds, 1),
        "passed": not missing and not failed and all(c["passed"] for c in checks),
        "unfinished": [" ".join(filter(None, task)) for task in missing],
        "parts": [{k: v for k, v in s.items() if k != "checks"} for s in found],
        "checks": checks,
    }
    options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
