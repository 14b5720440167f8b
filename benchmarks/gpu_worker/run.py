"""What the service's GPU workers promise, watched on a GPU.

    python benchmarks/gpu_worker/run.py [--json FILE]             # on a GPU
    python benchmarks/gpu_worker/run.py --backend cpu             # its flow, without

A service with SQLite and one worker (LocalCUDACluster; for the last behaviour
dask-cuda's own worker) solves one group of four sources again and again, while its
solving process is cancelled, killed and broken, and another process takes the GPU's
memory. One line for each behaviour, with what came out; exit status 1 if any was not as
it should be. Checks that need a GPU are skipped, and named, where there is none.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from behaviours import BEHAVIOURS
from draining import drained
from gpu import Gpu
from stage import Stage, memory, opened, processes_below, spec, until, write_mesh
from watched import NEAR, Outcome, Watched

from afterslip_common.record import Record, device_name, document, record

HERE = Path(__file__).parent
SIZES = {"gpu": ((10, 10, 8), 2), "cpu": ((8, 8, 6), 0)}
CALIBRATION_STEPS = 60
# of one behaviour, of what follows it, and of everything; the last one keeps a share
LIMIT_S = 70
SETTLE_S = 30
WHOLE_S = 235.0
DRAIN_S = 60.0
SOON_S = 5


def calibrated(stage: Stage, options: argparse.Namespace) -> int:
    """Return the number of steps that take as long as asked."""
    cubes, refine = SIZES[options.backend]
    content = spec("calibration", cubes, refine, CALIBRATION_STEPS, options.backend)
    campaign = stage.submit(content)
    stage.accepted(campaign, 0, 150)
    before = stage.again(campaign)
    stage.accepted(campaign, before, 60)
    seconds = stage.attempts(campaign)[-1]["stats"]["seconds"]
    steps = int(options.seconds / seconds * CALIBRATION_STEPS)
    print(
        f"  {campaign.data['model']['n_unknowns']} unknowns; {CALIBRATION_STEPS} steps "
        f"take {seconds:.2f} s, so groups get {steps}",
        flush=True,
    )
    # no shorter, or they would be taken from what was solved here
    return max(steps, CALIBRATION_STEPS + 1)


def watched(
    name: str,
    do: Callable[[Outcome], None],
    left: float,
    settle: Callable[[], None] = lambda: None,
) -> list[Record]:
    """Watch one behaviour, print its line and return its records.

    Parameters
    ----------
    left : s that it may take at most.
    """
    if left < SOON_S:
        print(f"FAIL {name:14}    0.0 s  there was no time left for it", flush=True)
        return [record(f"{name}_passed", 0.0, "1", 1.0, "there was no time left")]
    began = time.perf_counter()
    outcome, failure = Outcome(), ""
    signal.alarm(int(left))
    try:
        do(outcome)
    except Exception as error:  # noqa: BLE001 - the others are watched all the same
        failure = f"{type(error).__name__}: {error}; "
        if not isinstance(error, AssertionError):
            traceback.print_exc()
    seconds = time.perf_counter() - began
    word = "FAIL" if failure else "PASS"
    note = failure + outcome.summary()
    print(f"{word} {name:14} {seconds:6.1f} s  {note}", flush=True)
    signal.alarm(SETTLE_S)
    try:
        settle()
    except Exception as error:  # noqa: BLE001 - as above
        print(f"     {name:14} left the campaign unfinished: {error}", flush=True)
    signal.alarm(0)
    return [
        record(f"{name}_passed", float(not failure), "1", 1.0, note),
        *(record(f"{name}_{k}", v, unit) for k, (v, unit) in outcome.figures.items()),
        record(f"{name}_whole_s", seconds, "s", None, "with its set-up"),
    ]


def _too_late(_number: int, _frame: object) -> None:
    raise AssertionError("it took too long")


def main() -> None:
    """Watch all behaviours and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--seconds", type=float, default=5.0, help="a group's steps")
    parser.add_argument("--only", help="behaviours, separated by commas")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, _too_late)
    gpu = Gpu() if options.backend == "gpu" else None
    with tempfile.TemporaryDirectory(prefix="afterslip-gpu-worker-") as made:
        folder = Path(made)
        (folder / "harm").mkdir()
        path = [str(HERE / "plant"), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        os.environ["GPU_WORKER_HARM"] = str(folder / "harm")
        os.environ["AFTERSLIP_SPOOL"] = str(folder / "spool")
        write_mesh(folder, SIZES[options.backend][0])
        began = time.perf_counter()
        try:
            records = _all(folder, gpu, options, began + WHOLE_S)
        finally:
            left = processes_below()
            for process in left:
                with suppress(Exception):
                    process.kill()
    records.append(record("whole_s", time.perf_counter() - began, "s"))
    failed = [
        r["metric"].removesuffix("_passed")
        for r in records
        if r["metric"].endswith("_passed") and not r["value"]
    ]
    took = time.perf_counter() - began
    print(f"{took:.0f} s in all; failed: {', '.join(failed) or 'none'}", flush=True)
    if options.json:
        content = document(records, device_name())
        options.json.write_text(json.dumps(content, indent=1) + "\n")
    raise SystemExit(1 if failed else 0)


def _all(
    folder: Path, gpu: Gpu | None, options: argparse.Namespace, end: float
) -> list[Record]:
    def left(reserve: float = 0.0) -> float:
        return min(end - reserve - time.perf_counter(), LIMIT_S)

    wanted = options.only.split(",") if options.only else [*BEHAVIOURS, "drain"]
    before = memory(gpu)
    began = time.perf_counter()
    stage = opened(folder, gpu)
    records = [record("start_s", time.perf_counter() - began, "s")]
    base = memory(gpu)
    records.append(record("worker_bytes", base - before, "B"))

    def close(_outcome: Outcome) -> None:
        stage.close()
        until(lambda: not processes_below(), 20, "its processes have ended")
        until(lambda: memory(gpu) <= before + NEAR, 10, "the GPU's memory is free")

    try:
        steps = calibrated(stage, options)
        content = spec("watched", *SIZES[options.backend], steps, options.backend)
        watch = Watched(stage, content, base)
        for name, behaviour in BEHAVIOURS.items():
            if name in wanted:
                records += watched(
                    name,
                    lambda outcome, do=behaviour: do(watch, outcome),
                    left(DRAIN_S),
                    watch.settle,
                )
    finally:
        records += watched("close", close, LIMIT_S)
    if "drain" in wanted:
        records += watched(
            "drain",
            lambda outcome: drained(folder, gpu, content, watch.reference, outcome),
            left(),
        )
    return records


if __name__ == "__main__":
    main()
