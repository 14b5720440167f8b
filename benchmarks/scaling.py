"""One group over GPUs, or on one with more unknowns, on the benchmarks' trench.

    python benchmarks/scaling.py --mesh MESH.npz --refine 3 --gpus 4,1,2 [--json FILE]
    python benchmarks/scaling.py --unknowns MESH.npz:0 MESH.npz:1 [--json FILE]

The second form takes meshes with the number of their refinements, smallest first; of
the first that fills a GPU the cost of other numbers of functions is measured too.
Aggregates are made once and the parts anew for each number of GPUs. After each number
the figures so far are written, so a run that is cut short still says something.
"""

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path

from trench import load

from afterslip_common.record import Record, record, write_records
from afterslip_solver import backend as backends
from afterslip_solver.benchmarks import growth, scaling
from afterslip_solver.model import SolverSettings

DAY = 86400.0
Tell = Callable[[str], None]
Keep = Callable[[list[Record]], None]


def over_gpus(options: argparse.Namespace, say: Tell, keep: Keep) -> list[Record]:
    """Measure one group on several numbers of GPUs."""
    settings = SolverSettings(times=(0.0, 30 * DAY), until=30 * DAY)
    counts = [int(count) for count in options.gpus.split(",")]
    # kernels compile
    scaling.records(*load(options.mesh, 1), settings, [max(counts)], say=say)
    model, slip = load(options.mesh, options.refine)
    say(f"{len(model.mesh.elements)} elements, {3 * len(model.mesh.nodes)} unknowns")
    return scaling.records(model, slip, settings, counts, say=say, keep=keep)


def over_unknowns(options: argparse.Namespace, say: Tell, keep: Keep) -> list[Record]:
    """Measure one group on several sizes of the model."""
    found: list[Record] = []
    filled = False
    for size in options.unknowns:
        path, _, refine = size.rpartition(":")
        begin = time.perf_counter()
        model, slip = load(Path(path), int(refine))
        seconds = time.perf_counter() - begin
        unknowns = 3 * len(model.mesh.nodes)
        note = f"{unknowns} unknowns: {Path(path).name} refined {refine} times"
        found.append(record("growth_model_s", seconds, "s", None, note))
        say(f"{note}, {seconds:.1f} s")
        # larger models would only take longer to say the same
        fills = growth.FULL <= unknowns < 4 * growth.FULL and not filled
        filled |= fills
        settings, name = SolverSettings(), options.backend
        curve = options.curve and size == options.unknowns[-1]
        more = growth.records(
            model, slip, settings, name, found, lanes=fills, curve=curve
        )
        say(", ".join(f"{m['metric']} {m['value']:.4g} {m['unit']}" for m in more))
        found += more
        keep(found)
        del model, slip
        release(name)
    return found


def release(name: str) -> None:
    """Let the device's memory go, so that each size has its own peak."""
    gc.collect()
    backend = backends.get(name)
    if backend.name == "gpu":
        backend.xp.get_default_memory_pool().free_all_blocks()


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path)
    parser.add_argument("--refine", type=int, default=3)
    parser.add_argument("--gpus", default="1,2,4")
    parser.add_argument("--unknowns", nargs="+", metavar="MESH:REFINE")
    parser.add_argument("--curve", action="store_true", help="of the last size")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not options.unknowns and not options.mesh:
        parser.error("give --mesh or --unknowns")
    begin = time.perf_counter()

    def say(what: str) -> None:
        print(f"[{time.perf_counter() - begin:6.1f} s] {what}", flush=True)

    def keep(found: list[Record]) -> None:
        write_records(options.json, found, options.commit)

    measure = over_unknowns if options.unknowns else over_gpus
    for entry in measure(options, say, keep):
        print(f"{entry['metric']:28} {entry['value']:9.4g} {entry['note']}")


if __name__ == "__main__":
    main()
